// SPDX-License-Identifier: Apache-2.0
//
// Plain loops that the compiler vectorizes, compiled for AVX2 beside the instruction set of the build.
//
// The build's instruction set is the oldest that x86-64 has: no integer products of 32 bits, no comparisons
// of 64, no blends, and vectors of half the length. Such a loop needs no source for each instruction set. The
// values are the same: AVX2 alone does not fuse products with sums.
#pragma once

#include <hwy/targets.h>

#include <cstddef>

namespace rewire::kernel::cpu {

#if HWY_ARCH_X86_64 && !defined(__AVX2__)

// Whether the chosen instruction set, which tests choose for themselves, has AVX2.
inline bool HasWideLoops() {
  auto& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  return (std::size_t{1} << chosen.GetIndex()) <= static_cast<std::size_t>(HWY_CHOSEN_TARGET_SHIFT(HWY_AVX2));
}

#if defined(REWIRE_WIDE_SUMS)
// The source is compiled by -O2, at two thirds of the time. Sums that are to stay in registers need -O3.
#define REWIRE_WIDE_LOOP [[gnu::target("avx2"), gnu::optimize("O3"), gnu::flatten, gnu::noinline]]
#else
#define REWIRE_WIDE_LOOP [[gnu::target("avx2"), gnu::flatten, gnu::noinline]]
#endif

// Inlined into this are all functions that the body calls and whose source is known. The body is a copy, so
// that what it captures stays in registers, where elements that are written cannot change it.
template <typename Body>
REWIRE_WIDE_LOOP void RunWideLoop(Body body) {
  body();
}

template <typename Body>
void WideLoop(const Body& body) {
  if (HasWideLoops()) return RunWideLoop(body);
  body();
}

#else

inline bool HasWideLoops() { return HWY_ARCH_X86_64 != 0; }

template <typename Body>
void WideLoop(const Body& body) {
  body();
}

#endif

}  // namespace rewire::kernel::cpu
