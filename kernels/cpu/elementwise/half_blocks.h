// SPDX-License-Identifier: Apache-2.0
// Elementwise operations on 16-bit floats, in blocks: the CPU converts many numbers at once, and the
// operation itself runs on rows of floats. The results are those of single elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/math/halves.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kHalfBlock = 256;

// OnElements of Float16, with the operation within reach of the loops below.
template <typename Op>
struct OnHalves {
  Op op;
  template <typename... Ins>
  Float16 operator()(Ins... x) const {
    return Float16(op(static_cast<float>(x)...));
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

template <typename Op, typename... Ins>
[[gnu::noinline]] void RunHalves(const Op op, std::int64_t count, Float16* out, RowOf<Ins>... in) {
  float blocks[1 + sizeof...(Ins)][kHalfBlock];
  for (std::int64_t at = 0; at < count; at += kHalfBlock) {
    const std::int64_t size = std::min(count - at, kHalfBlock);
    int next = 1;
    (WidenRow({in.data, in.step}, at, size, blocks[next++]), ...);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      for (std::int64_t i = 0; i < size; ++i) blocks[0][i] = op(blocks[I + 1][i]...);
    }
    (std::index_sequence_for<Ins...>());
    BestHalfRows().narrow(blocks[0], out + at, size);
  }
}

// The loops that Elementwise calls, of such operations.
template <typename Op, typename... Ins>
void RunContiguous(const OnHalves<Op> op, std::int64_t count, Float16* out, const Ins*... in) {
  RunHalves(op.op, count, out, RowOf<const Float16>{in, 1}...);
}
template <typename Op, typename A, typename B>
void RunRow(const OnHalves<Op> op, std::int64_t count, RowOf<Float16> out, RowOf<A> a, RowOf<B> b) {
  if (out.step == 1 && (a.step == 0 || a.step == 1) && (b.step == 0 || b.step == 1)) {
    RunHalves(op.op, count, out.data, a, b);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      out.data[i * out.step] = op(a.data[i * a.step], b.data[i * b.step]);
  }
}

}  // namespace rewire::kernel::cpu
