// SPDX-License-Identifier: Apache-2.0
//
// What the functions of this library return, and the words for the last failure of each thread.
#pragma once

#include <string>

#include "rewire/devices/opencl/driver.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire::opencl {

// "CL_OUT_OF_RESOURCES", or the number of a code that is not known.
std::string ErrorName(cl_int code);

// Sets the thread's words and returns the code for the caller.
int FailWith(int code, std::string words);
// The same for an error of the driver's in `function`.
int FailIn(const char* function, cl_int error);
// Success, or FailIn.
inline int CodeOf(const char* function, cl_int error) {
  return error == CL_SUCCESS ? REWIRE_DEVICE_OK : FailIn(function, error);
}

const char* LastWords();

}  // namespace rewire::opencl
