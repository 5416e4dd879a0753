// SPDX-License-Identifier: Apache-2.0
//
// The symbols that the loader looks for in the shared library. They are not part of the static form, where
// tables of several libraries would have the same name.
#include <string>

#include "rewire/kernels/cuda_libraries/libraries.h"
#include "rewire/kernels/device/kernels_device.h"
#include "rewire/vm/kernel/work.h"

extern "C" REWIRE_KERNEL_EXPORT const RewireKernelWorkTable __rewire_kernel_table;
const RewireKernelWorkTable __rewire_kernel_table = {*RewireDeviceKernels(),
                                                     RewireWorkOf(RewireDeviceKernels())};

// Names NVIDIA's libraries that were found, for `vm-run --devices`. Lives as long as this library is loaded.
extern "C" REWIRE_KERNEL_EXPORT const char* rewire_device_kernel_libraries() {
  static const std::string kText = rewire::kernel::cuda_libraries::LibrariesText();
  return kText.c_str();
}
