// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/movement/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rewire::kernel::cpu {
namespace {

struct Bytes16 {
  std::uint64_t low;
  std::uint64_t high;
};

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

// Squares whose columns fill a vector register of 16 bytes are transposed in registers.
template <typename T>
class Square {
 public:
  static constexpr std::int64_t kSide = 16 / sizeof(T);

  // Each of log2(kSide) rounds interleaves every column with the one half a square further on. After all of
  // them the columns have become rows.
  static void Transpose(T* out, std::int64_t out_row, const T* in, std::int64_t in_column) {
    Vector lines[kSide];
    for (std::int64_t c = 0; c < kSide; ++c) std::memcpy(&lines[c], in + c * in_column, sizeof(Vector));
    for (std::int64_t round = 1; round < kSide; round *= 2) {
      Vector next[kSide];
      for (std::int64_t i = 0; i < kSide / 2; ++i) {
        next[2 * i] = Interleave<0>(lines[i], lines[i + kSide / 2], Lanes());
        next[2 * i + 1] = Interleave<kSide / 2>(lines[i], lines[i + kSide / 2], Lanes());
      }
      for (std::int64_t i = 0; i < kSide; ++i) lines[i] = next[i];
    }
    for (std::int64_t r = 0; r < kSide; ++r) std::memcpy(out + r * out_row, &lines[r], sizeof(Vector));
  }

 private:
  typedef T Vector __attribute__((vector_size(16)));
  using Lanes = std::make_integer_sequence<int, kSide>;

  // a[first], b[first], a[first + 1], b[first + 1] and so on.
  template <int first, int... i>
  static Vector Interleave(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (first + i / 2 + i % 2 * static_cast<int>(kSide))...);
  }
};

// Of a number of columns that the compiler knows, so that it unrolls the loop over them.
template <int columns, typename T>
void CopyFewColumns(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out[r * out_row + c] = in[r + c * in_column];
  }
}

// Rows and columns change places, one element after the other.
template <typename T>
void CopyElements(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
                  std::int64_t columns) {
  switch (columns) {
    case 1:
      return CopyFewColumns<1>(out, out_row, in, in_column, rows);
    case 2:
      return CopyFewColumns<2>(out, out_row, in, in_column, rows);
    case 3:
      return CopyFewColumns<3>(out, out_row, in, in_column, rows);
    case 4:
      return CopyFewColumns<4>(out, out_row, in, in_column, rows);
    default:
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) out[r * out_row + c] = in[r + c * in_column];
      }
  }
}

// Squares as far as they fit, and the rest in elements.
template <typename T>
void CopyBlock(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
               std::int64_t columns) {
  std::int64_t square_rows = 0;
  std::int64_t square_columns = 0;
  if constexpr (sizeof(T) < 8) {
    constexpr std::int64_t kSide = Square<T>::kSide;
    square_rows = rows / kSide * kSide;
    square_columns = columns / kSide * kSide;
    for (std::int64_t c = 0; c < square_columns; c += kSide) {
      for (std::int64_t r = 0; r < square_rows; r += kSide) {
        Square<T>::Transpose(out + r * out_row + c, out_row, in + r + c * in_column, in_column);
      }
    }
  }
  CopyElements(out + square_rows * out_row, out_row, in + square_rows, in_column, rows - square_rows,
               square_columns);
  CopyElements(out + square_columns, out_row, in + square_columns * in_column, in_column, rows,
               columns - square_columns);
}

// Rows and columns change places: in blocks that fit the first cache, so that every line is used whole.
template <typename T>
void CopyTransposed(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
                    std::int64_t columns, Pace& pace) {
  constexpr std::int64_t kColumns = 16;
  const std::int64_t block_rows = columns < kColumns ? 16 * kColumns : 16;
  for (std::int64_t r = 0; r < rows; r += block_rows) {
    for (std::int64_t c = 0; c < columns; c += kColumns) {
      const std::int64_t height = std::min(block_rows, rows - r);
      const std::int64_t width = std::min(kColumns, columns - c);
      if (!pace.Spend(height * width)) return;
      CopyBlock(out + r * out_row + c, out_row, in + r + c * in_column, in_column, height, width);
    }
  }
}

template <typename T>
Status Copy(const Layout<2>& layout, T* out, const T* in) {
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
  return ForEachRow(blocks, columns, [&](const std::int64_t* offsets, std::int64_t rows, Pace& pace) {
    CopyTransposed(out + offsets[0], layout.strides[last - 1][0], in + offsets[1], layout.strides[last][1],
                   rows, columns, pace);
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
