// SPDX-License-Identifier: Apache-2.0
// Elementwise operations on 16-bit floats: the CPU converts many numbers at once. Operations on elements run
// on floats in registers, functions of rows on blocks of floats. The results are those of single elements.
#pragma once

#include <hwy/detect_compiler_arch.h>

#if HWY_ARCH_X86_64
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/math/halves.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kHalfBlock = 256;

// OnElements of Float16, with the operation within reach of the loops below. `Out` is Float16, or what the
// operation itself returns.
template <typename Op, typename Out = Float16>
struct OnHalves {
  Op op;
  template <typename... Ins>
  Out operator()(Ins... x) const {
    return static_cast<Out>(op(static_cast<float>(x)...));
  }
};

// OnElements and OnRows, with 16-bit floats in blocks.
template <typename T, typename Op>
auto OnElementsInBlocks(const Op& op) {
  if constexpr (std::is_same_v<T, Float16>)
    return OnHalves<Op>{op};
  else
    return OnElements<T>(op);
}
template <typename T, typename Row>
auto OnRowsInBlocks(const Row& row) {
  if constexpr (std::is_same_v<T, Float16>) {
    return [row](const Float16* in, Float16* out, std::int64_t count) {
      float block[kHalfBlock];
      for (std::int64_t at = 0; at < count; at += kHalfBlock) {
        const std::int64_t size = std::min(count - at, kHalfBlock);
        BestHalfRows().widen(in + at, block, size);
        row(block, block, size);
        BestHalfRows().narrow(block, out + at, size);
      }
    };
  } else {
    return OnRows<T>(row);
  }
}

// The elements of a row as floats; its step is 1, or 0 for one that is repeated.
inline void WidenRow(RowOf<const Float16> row, std::int64_t at, std::int64_t count, float* block) {
  if (row.step == 0)
    std::fill_n(block, count, static_cast<float>(*row.data));
  else
    BestHalfRows().widen(row.data + at, block, count);
}

#if HWY_ARCH_X86_64
// Conversions by F16C, which every CPU has that HasWideLoops. Such arrays are a loop's own: the compiler
// keeps them in registers.
template <std::int64_t kLanes>
[[gnu::target("avx2,f16c")]] void LoadHalves(RowOf<const Float16> row, float (&lanes)[kLanes]) {
  for (std::int64_t i = 0; i < kLanes; i += 8) {
    const __m128i halves = row.step == 0 ? _mm_set1_epi16(static_cast<std::int16_t>(row.data->bits))
                                         : _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.data + i));
    _mm256_storeu_ps(lanes + i, _mm256_cvtph_ps(halves));
  }
}
template <std::int64_t kLanes>
[[gnu::target("avx2,f16c")]] void StoreHalves(const float (&lanes)[kLanes], Float16* out) {
  for (std::int64_t i = 0; i < kLanes; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(lanes + i), _MM_FROUND_TO_NEAREST_INT));
  }
}
template <std::int64_t kLanes, typename T>
[[gnu::target("avx2,f16c")]] void StoreHalves(const T (&lanes)[kLanes], T* out) {
  std::copy_n(lanes, kLanes, out);
}

// Stands before a loop of as many elements as a vector has: unrolled before it is a vector, its branches
// would stay.
#if defined(__GNUC__) && !defined(__clang__)
#define REWIRE_ONE_VECTOR _Pragma("GCC unroll 1")
#else
#define REWIRE_ONE_VECTOR
#endif

// The operation on one group of elements: a load converts, a store converts back, and no float is written to
// memory.
template <std::int64_t kLanes, typename Op, typename Out, std::size_t... I>
[[gnu::target("avx2,f16c")]] void RunHalfGroup(const Op& op, Out* out, std::index_sequence<I...>,
                                               const RowOf<const Float16> (&in)[sizeof...(I)]) {
  float lanes[sizeof...(I)][kLanes];
  std::conditional_t<std::is_same_v<Out, Float16>, float, Out> results[kLanes];
  (LoadHalves(in[I], lanes[I]), ...);
  REWIRE_ONE_VECTOR
  for (std::int64_t i = 0; i < kLanes; ++i) results[i] = op(lanes[I][i]...);
  StoreHalves(results, out);
}
#undef REWIRE_ONE_VECTOR

// The elements of the last group, which is not whole, behind each other.
inline RowOf<const Float16> PadHalves(RowOf<const Float16> row, std::int64_t count, Float16* padded) {
  if (row.step == 0) return row;
  std::copy_n(row.data, count, padded);
  return {padded, 1};
}

// A group fills a vector of floats or of results, if those are smaller.
template <typename Op, typename Out, typename... Ins, std::size_t... I>
[[gnu::target("avx2,f16c"), gnu::flatten, gnu::noinline]] void RunHalfGroups(const Op op, std::int64_t count,
                                                                             Out* out,
                                                                             std::index_sequence<I...> inputs,
                                                                             RowOf<Ins>... in) {
  constexpr std::int64_t kLanes =
      std::is_same_v<Out, Float16> ? 8 : std::max<std::int64_t>(8, 32 / sizeof(Out));
  std::int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes)
    RunHalfGroup<kLanes>(op, out + at, inputs, {{in.data + at * in.step, in.step}...});
  const std::int64_t rest = count - at;
  if (rest == 0) return;
  Float16 padded[sizeof...(I)][kLanes] = {};
  Out last[kLanes];
  RunHalfGroup<kLanes>(op, last, inputs, {PadHalves({in.data + at * in.step, in.step}, rest, padded[I])...});
  std::copy_n(last, rest, out + at);
}
#endif

// Rows of which the output's step is 1, and those of the inputs are 1 or 0.
template <typename Op, typename Out, typename... Ins>
void RunHalves(const OnHalves<Op, Out> op, std::int64_t count, Out* out, RowOf<Ins>... in) {
#if HWY_ARCH_X86_64
  if (HasWideLoops()) return RunHalfGroups(op.op, count, out, std::index_sequence_for<Ins...>(), in...);
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = op(in.data[i * in.step]...);
}

// The loops that Elementwise calls, of such operations.
template <typename Op, typename Out, typename... Ins>
void RunContiguous(const OnHalves<Op, Out> op, std::int64_t count, Out* out, const Ins*... in) {
  RunHalves(op, count, out, RowOf<const Float16>{in, 1}...);
}
template <typename Op, typename Out, typename A, typename B>
void RunRow(const OnHalves<Op, Out> op, std::int64_t count, RowOf<Out> out, RowOf<A> a, RowOf<B> b) {
  if (out.step == 1 && (a.step == 0 || a.step == 1) && (b.step == 0 || b.step == 1)) {
    RunHalves(op, count, out.data, a, b);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      out.data[i * out.step] = op(a.data[i * a.step], b.data[i * b.step]);
  }
}

}  // namespace rewire::kernel::cpu
