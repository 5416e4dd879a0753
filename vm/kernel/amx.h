// SPDX-License-Identifier: Apache-2.0
//
// Whether the CPU has Intel's AMX: registers that hold tiles, and products of bf16 and of bytes with them.
// The operating system must also let the process use them (kernels/cpu/product/tiles/tiles.h).
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rewire {

inline bool CpuHasAmx() {
#if defined(__x86_64__)
  // CPUID leaf 7, register EDX. Not every compiler's __builtin_cpu_supports knows these.
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24, kInt8 = 1U << 25, kAll = kBf16 | kTile | kInt8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAll) == kAll;
#else
  return false;
#endif
}

}  // namespace rewire
