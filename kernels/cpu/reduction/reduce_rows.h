// SPDX-License-Identifier: Apache-2.0
// The operations of reductions, and their loops over rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu::reduction {

// An operation has the value of nothing (Identity), takes an element in (Add) or another part of the result
// (Join), and completes the result from its `count` elements (Finish). Its loops are those of Rows, which
// only Finish may set apart from it; kSignless says that they give the same bits for signed integers and for
// unsigned ones.
struct Sum {
  static constexpr const char* kName = names::kReduceSum;
  static constexpr bool kSignless = true;
  template <typename T>
  using Rows = Sum;
  template <typename T>
  static T Identity() {
    return 0;
  }
  template <typename T>
  static T Add(T sum, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return sum + x;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(sum) + static_cast<Wrapping<T>>(x));
  }
  template <typename T>
  static T Join(T a, T b) {
    return Add(a, b);
  }
  template <typename T>
  static T Finish(T sum, std::int64_t) {
    return sum;
  }
};

struct Mean : Sum {
  static constexpr const char* kName = names::kReduceMean;
  template <typename T>
  static T Finish(T sum, std::int64_t count) {
    if constexpr (std::is_integral_v<T>)
      return count == 0 ? T{0} : static_cast<T>(sum / count);
    else
      return sum / static_cast<T>(count);
  }
};

struct SumOfSquares : Sum {
  static constexpr const char* kName = names::kReduceSumSquare;
  template <typename T>
  using Rows = SumOfSquares;
  template <typename T>
  static T Add(T sum, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return sum + x * x;
    else
      return Sum::Add(sum, static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(x)));
  }
};

struct L1 : Sum {
  static constexpr const char* kName = names::kReduceL1;
  static constexpr bool kSignless = false;
  template <typename T>
  using Rows = std::conditional_t<std::is_unsigned_v<T>, Sum, L1>;
  template <typename T>
  static T Add(T sum, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return sum + std::fabs(x);
    else
      return Sum::Add(sum, x < 0 ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x)) : x);
  }
};

struct L2 : SumOfSquares {
  static constexpr const char* kName = names::kReduceL2;
  template <typename T>
  static T Finish(T sum, std::int64_t) {
    return ToType<T>(std::sqrt(sum));  // a sum that has wrapped may be negative
  }
};

struct ProductOf : Sum {
  static constexpr const char* kName = names::kReduceProd;
  template <typename T>
  using Rows = ProductOf;
  template <typename T>
  static T Identity() {
    return 1;
  }
  template <typename T>
  static T Add(T product, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return product * x;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(product) * static_cast<Wrapping<T>>(x));
  }
  template <typename T>
  static T Join(T a, T b) {
    return Add(a, b);
  }
};

struct Largest : Sum {
  static constexpr const char* kName = names::kReduceMax;
  static constexpr bool kSignless = false;
  template <typename T>
  using Rows = Largest;
  template <typename T>
  static T Identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <typename T>
  static T Add(T most, T x) {
    return ((x > most) | (x != x)) ? x : most;
  }
  template <typename T>
  static T Join(T a, T b) {
    return Add(a, b);
  }
};

struct Smallest : Sum {
  static constexpr const char* kName = names::kReduceMin;
  static constexpr bool kSignless = false;
  template <typename T>
  using Rows = Smallest;
  template <typename T>
  static T Identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <typename T>
  static T Add(T least, T x) {
    return ((x < least) | (x != x)) ? x : least;
  }
  template <typename T>
  static T Join(T a, T b) {
    return Add(a, b);
  }
};

// Results that are computed side by side, which the compiler makes vectors of. They lie in the first cache.
// They also keep the error of long float sums down.
template <typename T>
inline constexpr std::int64_t kLanes = 256 / static_cast<std::int64_t>(sizeof(T));

// Joins the lanes that are `stride` apart, for lane 0 to stride - 1. `lanes` is a power of two times stride.
template <typename Op, typename T>
void JoinLanes(T* results, std::int64_t lanes, std::int64_t stride) {
  for (std::int64_t half = lanes / 2; half >= stride; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) results[l] = Op::Join(results[l], results[l + half]);
  }
}

// Lanes of one run, in two groups because each sum waits for the one before it. They are so few that
// compilers keep them in registers.
template <typename T>
inline constexpr std::int64_t kRunLanes = 64 / static_cast<std::int64_t>(sizeof(T));

template <typename Op, typename T, typename In>
T ReduceLanes(const In* in, std::int64_t count) {
  constexpr std::int64_t kGroup = kRunLanes<T>;
  T first[kGroup], second[kGroup];
  std::fill_n(first, kGroup, Op::template Identity<T>());
  std::fill_n(second, kGroup, Op::template Identity<T>());
  std::int64_t i = 0;
  for (; i + 2 * kGroup <= count; i += 2 * kGroup) {
    for (std::int64_t l = 0; l < kGroup; ++l) first[l] = Op::Add(first[l], static_cast<T>(in[i + l]));
    for (std::int64_t l = 0; l < kGroup; ++l)
      second[l] = Op::Add(second[l], static_cast<T>(in[i + kGroup + l]));
  }
  if (i + kGroup <= count) {
    for (std::int64_t l = 0; l < kGroup; ++l) first[l] = Op::Add(first[l], static_cast<T>(in[i + l]));
    i += kGroup;
  }
  for (std::int64_t l = 0; l < kGroup; ++l) first[l] = Op::Join(first[l], second[l]);
  JoinLanes<Op>(first, kGroup, 1);
  T result = first[0];
  for (; i < count; ++i) result = Op::Add(result, static_cast<T>(in[i]));
  return result;
}

// The lanes of a run. A product of some hundred floats leaves their range on its way. Numbers close to 0 take
// a CPU a hundred times as long, so the lanes of products are doubles.
template <typename Op, typename T>
using RunLane = std::conditional_t<std::is_same_v<Op, ProductOf> && std::is_same_v<T, float>, double, T>;

// Runs of `count` contiguous elements. Each begins `next` elements behind the one before.
template <typename Op, typename T, typename In>
void ReduceRuns(const In* in, std::int64_t next, std::int64_t count, T* out, std::int64_t out_step,
                std::int64_t runs) {
  WideLoop([=] {
    for (std::int64_t r = 0; r < runs; ++r) {
      T& result = out[r * out_step];
      result = Op::Join(result, static_cast<T>(ReduceLanes<Op, RunLane<Op, T>>(in + r * next, count)));
    }
  });
}

// The smallest of some elements side by side, and of these the opposite of the largest opposite: there are
// functions for both.
inline float SmallestOf(const float* in, std::int64_t count) {
  constexpr std::int64_t kBlock = 256;
  float block[kBlock];
  const std::int64_t size = std::min(kBlock, count);
  std::copy_n(in, size, block);
  for (std::int64_t i = kBlock; i < count; i += kBlock)
    BestVectorMath().smaller(in + i, block, std::min(kBlock, count - i));
  for (std::int64_t k = 0; k < size; ++k) block[k] = -block[k];
  return -BestVectorMath().largest(block, size);
}

// Extremes of floats have a function for a run, which is fast for shorter ones, too.
template <typename Op, typename In>
inline constexpr bool kHasFunction = (std::is_same_v<Op, Largest> ||
                                      std::is_same_v<Op, Smallest>)&&std::is_same_v<In, float>;

// One run into one number.
template <typename Op, typename T, typename In>
T ReduceRun(const In* in, std::int64_t step, std::int64_t count) {
  constexpr std::int64_t kWorthwhile = 24;  // elements that are worth lanes
  T result = Op::template Identity<T>();
  if constexpr (std::is_same_v<Op, Largest> && std::is_same_v<In, float>) {
    if (step == 1 && count >= kWorthwhile) return BestVectorMath().largest(in, count);
  }
  if constexpr (std::is_same_v<Op, Smallest> && std::is_same_v<In, float>) {
    if (step == 1 && count >= kWorthwhile) return SmallestOf(in, count);
  }
  if (step == 1 && count >= kWorthwhile) {
    ReduceRuns<Op>(in, 0, count, &result, 0, 1);
    return result;
  }
  for (std::int64_t i = 0; i < count; ++i) result = Op::Add(result, static_cast<T>(in[i * step]));
  return result;
}

// Takes each element into its result, side by side.
template <typename Op, typename T, typename In>
void AddElements(const In* in, T* results, std::int64_t count) {
  constexpr bool kAdds = std::is_same_v<Op, Sum>;
  constexpr std::int64_t kLeast = 16;  // elements that are worth a call
  if constexpr (kAdds && std::is_same_v<In, float>) {
    if (count >= kLeast) return BestVectorMath().add(in, results, count);
  } else if constexpr (std::is_same_v<Op, Largest> && std::is_same_v<In, float>) {
    if (count >= kLeast) return BestVectorMath().larger(in, results, count);
  } else if constexpr (std::is_same_v<Op, Smallest> && std::is_same_v<In, float>) {
    if (count >= kLeast) return BestVectorMath().smaller(in, results, count);
  } else if constexpr (kAdds && std::is_same_v<In, BFloat16>) {
    if (count >= kLeast)
      return BestVectorMath().add_bf16(reinterpret_cast<const std::uint16_t*>(in), results, count);
  }
  WideLoop([=] {
    for (std::int64_t i = 0; i < count; ++i) results[i] = Op::Add(results[i], static_cast<T>(in[i]));
  });
}

// Takes `runs` rows of `count` elements that follow each other into the `count` results. So short rows that a
// call for each would take longer than their sums are taken in several at a time.
template <typename Op, typename T, typename In>
void AddShortRows(const In* in, T* results, std::int64_t count, std::int64_t runs) {
  std::int64_t rows = 1;
  while (rows * 2 * count <= kLanes<T> && rows * 2 <= runs) rows *= 2;
  WideLoop([=] {
    const std::int64_t width = rows * count, end = runs / rows * rows;
    T lanes[kLanes<T>];
    std::fill_n(lanes, width, Op::template Identity<T>());
    for (std::int64_t r = 0; r < end; r += rows) {
      const In* from = in + r * count;
      for (std::int64_t l = 0; l < width; ++l) lanes[l] = Op::Add(lanes[l], static_cast<T>(from[l]));
    }
    JoinLanes<Op>(lanes, width, count);
    for (std::int64_t r = end; r < runs; ++r) {
      for (std::int64_t l = 0; l < count; ++l)
        lanes[l] = Op::Add(lanes[l], static_cast<T>(in[r * count + l]));
    }
    for (std::int64_t l = 0; l < count; ++l) results[l] = Op::Join(results[l], lanes[l]);
  });
}

// Runs of so few elements that a call for each would take longer than their sums.
template <typename Op, typename In>
inline constexpr std::int64_t kFewElements = kHasFunction<Op, In> ? 23 : 128;

// Runs of kCount elements, or of `count`. Several runs are summed side by side: sums of one wait for each
// other.
template <int kCount, typename Op, typename T, typename In>
void ReduceShortRuns(const In* in, std::int64_t run_step, std::int64_t step, T* out, std::int64_t out_step,
                     std::int64_t runs, std::int64_t given) {
  constexpr std::int64_t kRuns = 8;
  const std::int64_t count = kCount == 0 ? given : kCount;
  std::int64_t r = 0;
  for (; kCount == 0 && r + kRuns <= runs; r += kRuns, in += kRuns * run_step, out += kRuns * out_step) {
    T results[kRuns];
    for (std::int64_t k = 0; k < kRuns; ++k) results[k] = out[k * out_step];
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t k = 0; k < kRuns; ++k)
        results[k] = Op::Add(results[k], static_cast<T>(in[k * run_step + j * step]));
    }
    for (std::int64_t k = 0; k < kRuns; ++k) out[k * out_step] = results[k];
  }
  for (; r < runs; ++r, in += run_step, out += out_step) {
    T result = *out;
    for (std::int64_t j = 0; j < count; ++j) result = Op::Add(result, static_cast<T>(in[j * step]));
    *out = result;
  }
}

// Whether there are loops for each way in which elements lie. Products, squares and magnitudes of bytes are
// no operators of ONNX: they go one by one.
template <typename Op, typename T>
inline constexpr bool kHasLoops =
    sizeof(T) > 1 || std::is_same_v<Op, Sum> || std::is_same_v<Op, Largest> || std::is_same_v<Op, Smallest>;

// `In` is how elements of type T lie in memory.
template <typename Op, typename T, typename In>
void ReduceRows(const Layout<2>& layout, T* out, const In* in, Pace& pace) {
  const std::int64_t *steps = layout.inner_strides(), *next = layout.next_strides();
  if constexpr (!kHasLoops<Op, T>) {
    ForRows(layout, 0, layout.rows(), 1, pace, [&](const std::int64_t* offsets, std::int64_t count) {
      T* to = out + offsets[0];
      const In* from = in + offsets[1];
      for (std::int64_t i = 0; i < count; ++i)
        to[i * steps[0]] = Op::Add(to[i * steps[0]], static_cast<T>(from[i * steps[1]]));
    });
    return;
  } else {
    const auto rows = [&](const std::int64_t* offsets, std::int64_t count, std::int64_t runs) {
      T* to = out + offsets[0];
      const In* from = in + offsets[1];
      constexpr std::int64_t kWorthLanes = kRunLanes<T> + 32;
      if (!kHasFunction<Op, In> && runs > 1 && steps[0] == 0 && next[0] != 0 && steps[1] == 1 &&
          count >= kWorthLanes)
        return ReduceRuns<Op>(from, next[1], count, to, next[0], runs);
      if (runs > 1 && steps[0] == 0 && next[0] != 0 && count <= kFewElements<Op, In>) {
        if constexpr (std::is_floating_point_v<T>) {
          if (count == 2 && steps[1] == 1)  // a real and an imaginary part
            return ReduceShortRuns<2, Op>(from, next[1], 1, to, next[0], runs, count);
        }
        return ReduceShortRuns<0, Op>(from, next[1], steps[1], to, next[0], runs, count);
      }
      if (runs > 1 && steps[0] == 1 && steps[1] == 1 && next[0] == 0 && next[1] == count &&
          count <= kLanes<T>)
        return AddShortRows<Op>(from, to, count, runs);
      for (std::int64_t r = 0; r < runs; ++r, to += next[0], from += next[1]) {
        if (steps[0] == 0) {
          *to = Op::Join(*to, ReduceRun<Op, T>(from, steps[1], count));
        } else if (steps[0] == 1 && steps[1] == 1) {
          AddElements<Op>(from, to, count);
        } else {
          for (std::int64_t i = 0; i < count; ++i)
            to[i * steps[0]] = Op::Add(to[i * steps[0]], static_cast<T>(from[i * steps[1]]));
        }
      }
    };
    ForRows(layout, 0, layout.rows(), 1, pace, rows);
  }
}

}  // namespace rewire::kernel::cpu::reduction
