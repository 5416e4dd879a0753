// SPDX-License-Identifier: Apache-2.0
//
// Einstein summations that are no products of matrices: sums of one operand, and products of elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rewire/kernels/cpu/product/einsum_labels.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Integers wrap.
template <typename T, bool = std::is_integral_v<T>>
struct EinsumNumber {
  using type = T;
};
template <typename T>
struct EinsumNumber<T, true> {
  using type = std::make_unsigned_t<T>;
};

// Rows of one or two operands. The second one is absent where `kTwo` is false.
template <typename T, bool kTwo>
struct EinsumRows {
  using Number = typename EinsumNumber<T>::type;
  const T* a;
  const T* b;
  std::int64_t a_step, b_step;

  Number At(std::int64_t i) const { return At(i, a_step, b_step); }

  // to[i * step] = the product, or is added to it.
  template <bool kAdds>
  void Into(std::int64_t count, T* to, std::int64_t step) const {
    if (step == 1 && a_step == 1 && b_step == 1) return Into<kAdds, 1, 1>(count, to);
    if (kTwo && step == 1 && a_step == 1 && b_step == 0) return Into<kAdds, 1, 0>(count, to);
    if (kTwo && step == 1 && a_step == 0 && b_step == 1) return Into<kAdds, 0, 1>(count, to);
    for (std::int64_t i = 0; i < count; ++i) {
      T& out = to[i * step];
      out = static_cast<T>(kAdds ? static_cast<Number>(out) + At(i) : At(i));
    }
  }
  Number Sum(std::int64_t count) const {
    if (a_step == 1 && b_step == 1) return Sum<1, 1>(count);
    if (kTwo && a_step == 1 && b_step == 0) return Sum<1, 0>(count);
    if (kTwo && a_step == 0 && b_step == 1) return Sum<0, 1>(count);
    Number sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += At(i);
    return sum;
  }

 private:
  Number At(std::int64_t i, std::int64_t step_of_a, std::int64_t step_of_b) const {
    const auto left = static_cast<Number>(a[i * step_of_a]);
    if constexpr (kTwo) return left * static_cast<Number>(b[i * step_of_b]);
    return left;
  }
  template <bool kAdds, int kOfA, int kOfB>
  void Into(std::int64_t count, T* to) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const Number value = At(i, kOfA, kOfB);
      to[i] = static_cast<T>(kAdds ? static_cast<Number>(to[i]) + value : value);
    }
  }
  // In several lanes, because each sum waits for the one before it.
  template <int kOfA, int kOfB>
  Number Sum(std::int64_t count) const {
    constexpr std::int64_t kLanes = 64 / sizeof(T);
    Number lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += At(i + lane, kOfA, kOfB);
    }
    Number sum = 0;
    if (i > 0) {
      for (const Number& each : lanes) sum += each;
    }
    for (; i < count; ++i) sum += At(i, kOfA, kOfB);
    return sum;
  }
};

// The loops over the labels of one or two operands, and of a dense result. Operand 0 is the result, then come
// the operands. The innermost loop is the one along which most tensors are contiguous.
struct EinsumLoops {
  Layout<3> outer;    // the labels of the result, then the innermost one
  Layout<3> sums;     // the other labels that are summed
  bool keeps = true;  // whether the innermost label is the result's

  // `a` and `b` are columns of `labels`. `b` may be -1: the second operand is then the first one again, or
  // one element if `repeats`. At most kMaxKernelRank labels are larger than 1.
  void Init(const Labels& labels, int a, int b, bool repeats) {
    const Dims of_out = DenseStrides(labels.Result().view());
    std::int64_t strides[kMaxLabels][3];
    int inner = -1, least = std::numeric_limits<int>::max();
    for (int l = 0; l < labels.count; ++l) {
      strides[l][0] = l < labels.kept ? of_out[l] : 0;
      strides[l][1] = labels.strides[l][a];
      strides[l][2] = b < 0 ? strides[l][1] : labels.strides[l][b];
      if (labels.sizes[l] == 1) continue;
      int apart = 0;
      for (const std::int64_t stride : strides[l]) apart += stride > 1 ? 1 : 0;
      // The operands' last axes stand behind the others.
      if (apart > least || (apart == least && labels.sizes[l] < labels.sizes[inner])) continue;
      inner = l;
      least = apart;
    }
    for (int l = 0; l < labels.count; ++l) {
      if (b < 0 && repeats) strides[l][2] = 0;
      if (l != inner) (l < labels.kept ? outer : sums).Append(labels.sizes[l], strides[l]);
    }
    keeps = inner < labels.kept;
    if (inner >= 0) outer.Append(labels.sizes[inner], strides[inner]);
    outer.Finish();
    sums.Finish();
  }
};

template <typename T, bool kTwo>
class EinsumSums {
 public:
  EinsumSums(const Labels& labels, int a, int b, const T* of_a, const T* of_b, T* out)
      : a_(of_a), b_(of_b), out_(out) {
    loops_.Init(labels, a, b, kTwo);
  }

  Status Run() const {
    const Layout<3>& outer = loops_.outer;
    if (loops_.keeps && Sums() == 1) {
      return ForEachRow(outer, [this](const std::int64_t* offsets, std::int64_t count) {
        WideLoop([this, offsets, count] {
          RowsAt(offsets).template Into<false>(count, out_ + offsets[0], loops_.outer.inner_strides()[0]);
        });
      });
    }
    return ParallelFor(outer.rows(), GrainOf(kGrain, outer.inner(), Sums()),
                       [this](std::int64_t begin, std::int64_t end, Pace& pace) {
                         WideLoop([this, begin, end, &pace] { SumAll(begin, end, pace); });
                       });
  }

 private:
  using Rows = EinsumRows<T, kTwo>;
  using Number = typename EinsumNumber<T>::type;
  // Elements of a row that stay in the first cache while others are added to them.
  static constexpr std::int64_t kPart = 2048;

  std::int64_t Sums() const { return Times(loops_.sums.rows(), loops_.sums.inner()); }
  Rows RowsAt(const std::int64_t* offsets) const {
    const std::int64_t* steps = loops_.outer.inner_strides();
    return {a_ + offsets[1], kTwo ? b_ + offsets[2] : nullptr, steps[1], steps[2]};
  }

  void SumAll(std::int64_t begin, std::int64_t end, Pace& pace) const {
    const Layout<3>& outer = loops_.outer;
    bool done = true;
    if (Sums() == 1 && outer.inner() <= kPart) {
      done = ForRows(outer, begin, end, 1, pace, [this](const std::int64_t* offsets, std::int64_t count) {
        out_[offsets[0]] = static_cast<T>(RowsAt(offsets).Sum(count));
      });
    } else {
      done = ForRows(outer, begin, end, 1, pace,
                     [this](const std::int64_t* offsets, std::int64_t count, Pace& asked) {
                       SumOne(offsets, count, asked);
                     });
    }
    static_cast<void>(done);  // the Pace knows
  }

  // One row of the result, or one element.
  void SumOne(const std::int64_t* offsets, std::int64_t inner, Pace& pace) const {
    const Layout<3>& sums = loops_.sums;
    const std::int64_t* steps = loops_.outer.inner_strides();
    const std::int64_t* next = sums.inner_strides();
    Number sum = 0;
    for (std::int64_t first = 0; first < inner; first += kPart) {
      const std::int64_t count = std::min(kPart, inner - first);
      bool adds = false;
      const auto row = [&](const std::int64_t* at, std::int64_t runs) {
        std::int64_t from[3];
        for (int k = 0; k < 3; ++k) from[k] = offsets[k] + first * steps[k] + at[k];
        for (std::int64_t i = 0; i < runs; ++i, from[1] += next[1], from[2] += next[2]) {
          T* to = out_ + from[0];
          if (!loops_.keeps)
            sum += RowsAt(from).Sum(count);
          else if (adds)
            RowsAt(from).template Into<true>(count, to, steps[0]);
          else
            RowsAt(from).template Into<false>(count, to, steps[0]);
          adds = true;
        }
      };
      if (!ForRows(sums, 0, sums.rows(), count, pace, row)) return;
    }
    if (!loops_.keeps) out_[offsets[0]] = static_cast<T>(sum);
  }

  EinsumLoops loops_;
  const T *a_, *b_;
  T* out_;
};

// The sums over labels that the result lacks of column `a`, or of its products with column `b` if that is at
// least 0. `out` is dense in the order of the result's labels.
template <typename T>
Status SumProducts(const Labels& labels, int a, const T* of_a, int b, const T* of_b, T* out) {
  // Sums of one operand have loops of their own where they are frequent, or products slow. Others multiply by
  // one.
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::int64_t>) {
    if (b < 0) return EinsumSums<T, false>(labels, a, b, of_a, of_b, out).Run();
  }
  static constexpr T kOne = 1;
  if (b < 0) of_b = &kOne;
  return EinsumSums<T, true>(labels, a, b, of_a, of_b, out).Run();
}

}  // namespace rewire::kernel::cpu
