// SPDX-License-Identifier: Apache-2.0
//
// Device code, compiled once for each device in a process.
//
// The environment variable REWIRE_DEVICE_CACHE names a folder in which drivers keep what they have compiled.
// Threads may call this at once.
#pragma once

#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::device {

// A file of code/, compiled after scalar_functions.h, arguments.h, dialect.h and tiles.h.
enum class Program {
  kElementwise,
  kMovement,
  kProduct,
  kWindow,
  kReduction,
  kQuantization,
  kInteger,
  kLines,
  kRecurrent,
  kIndexing,
  kScatter,
  kTrees,
  kAttention
};

// How it is compiled. For kMovement and kIndexing the size of an element in bytes; for the others how real
// numbers are stored.
enum class Form { kF32 = 0, kF16 = 1, kBytes1 = 2, kBytes2 = 3, kBytes4 = 4, kBytes8 = 5 };

// Finds a kernel. `name` must be a literal: it is compared by its address first.
Status FindKernel(const RewireDeviceApi& api, DLDevice device, Program program, Form form, const char* name,
                  void** kernel);

}  // namespace rewire::kernel::device
