// SPDX-License-Identifier: Apache-2.0
//
// Device code for CUDA that was compiled when Rewire was built.
#pragma once

#include <cstddef>

#include "rewire/kernels/device/call/programs.h"

namespace rewire::kernel::device {

// A fatbin with machine code for several generations of GPUs, and PTX.
struct DeviceImage {
  Program program;
  Form form;
  const unsigned char* begin;
  const unsigned char* end;
};

// Null if there is none: Rewire was built without nvcc.
const DeviceImage* FindImage(Program program, Form form);
std::size_t ImageCount();

}  // namespace rewire::kernel::device
