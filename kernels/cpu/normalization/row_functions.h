// SPDX-License-Identifier: Apache-2.0
// The functions of normalization over rows of numbers, in vectors.
#pragma once

#include <cmath>
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

// A mean and the inverse of a standard deviation.
template <typename T>
struct Spread {
  T center;
  T factor;
};

// The spread of `count` numbers with these moments about `shift`, one of the numbers.
template <typename T>
Spread<T> SpreadOf(const Moments& moments, std::int64_t count, double shift, double epsilon) {
  const double mean = moments.sum / static_cast<double>(count);
  // Rounding may make it negative. NaN stays.
  const double variance = moments.squares / static_cast<double>(count) - mean * mean;
  const double positive = variance < 0 ? 0 : variance;
  return {static_cast<T>(shift + mean), static_cast<T>(1 / std::sqrt(positive + epsilon))};
}

// How rows are normalized: their numbers less the mean, or less 0, times the inverse of what they deviate
// from it, times `scales`, plus `biases`, which may be null.
template <typename T>
struct RowNorm {
  bool is_centered;
  double epsilon;
  const T* scales;
  const T* biases;
  T* means;    // of each row, unless null
  T* factors;  // of each row, unless null

  Spread<T> SpreadOfRow(Moments moments, std::int64_t count, double shift) const {
    if (!is_centered) moments.sum = 0;
    return SpreadOf<T>(moments, count, shift, epsilon);
  }
  double ShiftOf(const T* row) const { return is_centered ? static_cast<double>(row[0]) : 0; }
  void Keep(std::int64_t row, const Spread<T>& spread) const {
    if (means != nullptr) means[row] = spread.center;
    if (factors != nullptr) factors[row] = spread.factor;
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
  // Rows [begin, end) of `count` numbers each, which follow each other.
  void (*normalize)(const T* x, std::int64_t begin, std::int64_t end, std::int64_t count,
                    const RowNorm<T>& by, T* to);
};

// For the best instruction set that this CPU and the build support.
template <typename T>
RowFunctions<T> ChooseRowFunctions();

}  // namespace rewire::kernel::cpu
