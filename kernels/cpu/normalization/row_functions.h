// SPDX-License-Identifier: Apache-2.0
// The functions of normalization over rows of numbers, in vectors.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// The moments of numbers less a shift, which is one of them. So one pass gives a variance that does not drown
// in the square of a large mean.
struct Moments {
  double sum = 0;
  double squares = 0;

  void Add(const Moments& other) {
    sum += other.sum;
    squares += other.squares;
  }
};

// Functions of one instruction set. T is float or double. `to` may be `x`, or does not overlap it.
template <typename T>
struct RowFunctions {
  Moments (*moments)(const T* x, std::int64_t count, double shift);
  // Adds the moments of `width` columns of `rows` rows, which lie `stride` elements apart, to sums[c] and
  // squares[c]. The shift of column c is shifts[c].
  void (*add_column_moments)(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                             const T* shifts, double* sums, double* squares);
  // to[i] = (x[i] - center) * factor + bias
  void (*scale)(const T* x, std::int64_t count, T center, T factor, T bias, T* to);
  // to[i] = (x[i] - center) * factor * scales[i] + biases[i]; `biases` may be null.
  void (*scale_each)(const T* x, std::int64_t count, T center, T factor, const T* scales, const T* biases,
                     T* to);
  // to[i] = (x[i] - centers[i]) * factors[i] + biases[i]
  void (*scale_columns)(const T* x, std::int64_t count, const T* centers, const T* factors, const T* biases,
                        T* to);
};

// For the best instruction set that this CPU and the build support.
template <typename T>
RowFunctions<T> ChooseRowFunctions();

}  // namespace rewire::kernel::cpu
