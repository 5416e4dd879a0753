// SPDX-License-Identifier: Apache-2.0
//
// Rewire's own kernel libraries.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "rewire/kernels/contract/names.h"

namespace rewire::names {

inline constexpr char kCollectiveLibrary[] = "librewire_collective_mpi.so";
inline constexpr char kCollectiveDeviceLibrary[] = "librewire_collective_nccl.so";
inline constexpr char kCpuLibrary[] = "librewire_kernels_cpu.so";
inline constexpr char kDeviceLibrary[] = "librewire_kernels_device.so";
inline constexpr char kImageLibrary[] = "librewire_kernels_image.so";
inline constexpr char kOneDnnLibrary[] = "librewire_kernels_onednn.so";
inline constexpr char kRe2Library[] = "librewire_kernels_re2.so";

struct StockLibrary {
  std::string_view prefix;  // of its kernels' names
  const char* file;
  bool on_device = false;  // its kernels run on a device
  // Results of its kernels serve on every machine, so the compiler may compute with them. Weights that oneDNN
  // packs serve where they are packed.
  bool portable = true;
};

// The first prefix that fits a name counts.
inline constexpr StockLibrary kStockLibraries[] = {
    {"rewire.onednn.", kOneDnnLibrary, false, false},
    {"rewire.device.collective.", kCollectiveDeviceLibrary, true},
    {kDevice, kDeviceLibrary, true},
    {"rewire.re2.", kRe2Library},
    {"rewire.image.", kImageLibrary},
    {"rewire.collective.", kCollectiveLibrary},
    {kStock, kCpuLibrary},
};
inline constexpr std::size_t kNoLibrary = std::size(kStockLibraries);

// The position in kStockLibraries of the library that should have a kernel, or kNoLibrary.
constexpr std::size_t StockLibraryOf(std::string_view kernel) {
  std::size_t i = 0;
  while (i < kNoLibrary && !StartsWith(kernel, kStockLibraries[i].prefix)) ++i;
  return i;
}

}  // namespace rewire::names
