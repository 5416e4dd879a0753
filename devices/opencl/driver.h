// SPDX-License-Identifier: Apache-2.0
//
// The functions of OpenCL that this library calls, found in libOpenCL.so.1 when a program first uses a
// device. Nothing links against that library, so the same build runs where it is missing.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
// Later versions call deprecated what OpenCL 1.2 calls the usual way.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <string>

namespace rewire::opencl {

struct Driver {
#define REWIRE_OPENCL_FUNCTION(function) decltype(&::function) function = nullptr;
#define REWIRE_OPENCL_OPTIONAL(function) decltype(&::function) function = nullptr;
#include "rewire/devices/opencl/functions.def"

  // Opens the library. False, with the words for it, if it or one of its functions is missing. The library is
  // never closed.
  bool Open(std::string* reason);
};

}  // namespace rewire::opencl
