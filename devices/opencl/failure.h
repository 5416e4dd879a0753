// SPDX-License-Identifier: Apache-2.0
//
// The functions of this library return these after an error of the driver.
#pragma once

#include <string>

#include "rewire/devices/opencl/driver.h"
#include "rewire/devices/support/words.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire::opencl {

// "CL_OUT_OF_RESOURCES", or the number of a code that is not known.
std::string ErrorName(cl_int code);

using devices::FailWith;
using devices::LastWords;

// Sets the thread's words for an error of the driver's in `function`, and returns the code for the caller.
int FailIn(const char* function, cl_int error);
// Success, or FailIn.
inline int CodeOf(const char* function, cl_int error) {
  return error == CL_SUCCESS ? REWIRE_DEVICE_OK : FailIn(function, error);
}

}  // namespace rewire::opencl
