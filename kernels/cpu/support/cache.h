// SPDX-License-Identifier: Apache-2.0
// How large the CPU's caches are, by which kernels choose the parts that they work on.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace rewire::kernel::cpu {

// Bytes of the second cache of a CPU, from 256 KiB to 2 MiB; 512 KiB where the system does not tell.
inline std::int64_t SecondCacheBytes() {
  static const std::int64_t kBytes = [] {
    std::int64_t told = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    told = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return told <= 0 ? std::int64_t{512} << 10
                     : std::clamp(told, std::int64_t{256} << 10, std::int64_t{2} << 20);
  }();
  return kBytes;
}

}  // namespace rewire::kernel::cpu
