// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/movement/strided_copy.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "rewire/kernels/cpu/movement/transposed_block.h"

namespace rewire::kernel::cpu {
namespace {

template <typename T>
void CopyRow(T* out, std::int64_t out_step, const T* in, std::int64_t in_step, std::int64_t count) {
  if (out_step == 1 && in_step == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(T));
  } else if (out_step == 1 && in_step == 0) {
    std::fill_n(out, count, *in);
  } else if (out_step == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = in[i * in_step];
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i * out_step] = in[i * in_step];
  }
}

// Rows and columns change places: in blocks that fit the first cache, so that every line is used whole. A
// block is as wide as a line of 32-bit elements. It goes on where the columns do, but over few pages.
template <typename T>
void CopyTransposed(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
                    std::int64_t columns, bool past_caches, Pace& pace) {
  constexpr std::int64_t kNarrow = 16, kTall = 32, kLong = 256;
  const std::int64_t block_rows = columns < kNarrow ? kLong : kTall;
  const std::int64_t block_columns = rows < kNarrow ? kLong : kNarrow;
  const auto transpose = std::get<TransposeBlock<T>>(BestBlockTransposes());
  for (std::int64_t r = 0; r < rows; r += block_rows) {
    for (std::int64_t c = 0; c < columns; c += block_columns) {
      const std::int64_t height = std::min(block_rows, rows - r);
      const std::int64_t width = std::min(block_columns, columns - c);
      if (!pace.Spend(height * width)) return;
      transpose(out + r * out_row + c, out_row, in + r + c * in_column, in_column, height, width,
                past_caches);
    }
  }
}

// The innermost dimension of the output may read a line of the cache for each element. Another one, whose
// elements lie side by side in the input, is moved next to it then, so that such lines are used whole.
// Returns false if there is none.
bool MoveRowsInside(const Layout<2>& given, Layout<2>* moved) {
  constexpr std::int64_t kFewRows = 4;
  const int last = given.rank - 1;
  if (last < 2 || given.strides[last][0] != 1 || given.strides[last][1] <= 1) return false;
  for (int i = 0; i < last - 1; ++i) {
    if (given.strides[i][1] != 1 || given.dims[i] < kFewRows) continue;
    *moved = given;
    for (int k = i; k < last - 1; ++k) {
      std::swap(moved->dims[k], moved->dims[k + 1]);
      std::swap(moved->strides[k], moved->strides[k + 1]);
    }
    return true;
  }
  return false;
}

template <typename T>
Status Copy(const Layout<2>& given, T* out, const T* in) {
  Layout<2> moved;
  const Layout<2>& layout = MoveRowsInside(given, &moved) ? moved : given;
  const int last = layout.rank - 1;
  const bool transposed = last > 0 && layout.strides[last][0] == 1 && layout.strides[last - 1][1] == 1;
  if (!transposed) {
    return ForEachRow(layout, [&](const std::int64_t* offsets, std::int64_t count) {
      CopyRow(out + offsets[0], layout.strides[last][0], in + offsets[1], layout.strides[last][1], count);
    });
  }
  // The two innermost dimensions together are what the body of the loop does.
  Layout<2> blocks = layout;
  blocks.rank = last;
  const std::int64_t columns = layout.dims[last];
  // A tensor that is larger than the second cache would not stay in it.
  constexpr std::int64_t kLarge = std::int64_t{8} << 20;  // bytes
  const bool past_caches = Times(layout.rows(), layout.inner()) >= kLarge / std::int64_t{sizeof(T)};
  return ForEachRow(blocks, columns, [&](const std::int64_t* offsets, std::int64_t rows, Pace& pace) {
    CopyTransposed(out + offsets[0], layout.strides[last - 1][0], in + offsets[1], layout.strides[last][1],
                   rows, columns, past_caches, pace);
    if (past_caches) hwy::FlushStream();
  });
}

}  // namespace

Status CheckMovable(const char* what, TensorView tensor) {
  const std::int64_t bytes = tensor.element_bytes();
  if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16) [[likely]]
    return Status();
  return TypeError(what, " has dtype ", DTypeName(tensor.dtype()),
                   ", expected elements of 1, 2, 4, 8 or 16 bytes");
}

Status CopyStrided(const Layout<2>& layout, std::int64_t element_bytes, void* out, const void* in) {
  if (Times(layout.rows(), layout.inner()) == 0) return Status();
  const auto copy = [&](auto element) {
    using T = decltype(element);
    return Copy(layout, static_cast<T*>(out), static_cast<const T*>(in));
  };
  switch (element_bytes) {
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    case 8:
      return copy(std::uint64_t{});
    case 16:
      return copy(Bytes16{});
  }
  return Status();  // CheckMovable has refused it
}

}  // namespace rewire::kernel::cpu
