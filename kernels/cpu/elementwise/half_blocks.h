// SPDX-License-Identifier: Apache-2.0
// Elementwise operations on 16-bit floats, in blocks: the CPU converts many numbers at once, and the
// operation itself runs on rows of floats. The results are those of single elements.
#pragma once

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

template <typename Op, typename Out, typename... Ins>
[[gnu::noinline]] void RunHalves(const Op op, std::int64_t count, Out* out, RowOf<Ins>... in) {
  constexpr bool kNarrows = std::is_same_v<Out, Float16>;
  using Result = std::conditional_t<kNarrows, float, Out>;
  float blocks[sizeof...(Ins)][kHalfBlock];
  Result results[kHalfBlock];
  for (std::int64_t at = 0; at < count; at += kHalfBlock) {
    const std::int64_t size = std::min(count - at, kHalfBlock);
    int next = 0;
    (WidenRow({in.data, in.step}, at, size, blocks[next++]), ...);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      RunContiguous(op, size, results, static_cast<const float*>(blocks[I])...);
    }
    (std::index_sequence_for<Ins...>());
    if constexpr (kNarrows)
      BestHalfRows().narrow(results, out + at, size);
    else
      std::copy_n(results, size, out + at);
  }
}

// The loops that Elementwise calls, of such operations.
template <typename Op, typename Out, typename... Ins>
void RunContiguous(const OnHalves<Op, Out> op, std::int64_t count, Out* out, const Ins*... in) {
  RunHalves(op.op, count, out, RowOf<const Float16>{in, 1}...);
}
template <typename Op, typename Out, typename A, typename B>
void RunRow(const OnHalves<Op, Out> op, std::int64_t count, RowOf<Out> out, RowOf<A> a, RowOf<B> b) {
  if (out.step == 1 && (a.step == 0 || a.step == 1) && (b.step == 0 || b.step == 1)) {
    RunHalves(op.op, count, out.data, a, b);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      out.data[i * out.step] = op(a.data[i * a.step], b.data[i * b.step]);
  }
}

}  // namespace rewire::kernel::cpu
