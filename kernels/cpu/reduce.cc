// SPDX-License-Identifier: Apache-2.0
// Sums, products, means and extremes along axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/layout.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {
namespace {

// An operation has the value of nothing (Identity), takes an element in (Add) or another part of the result
// (Join), and completes the result from its `count` elements (Finish).
struct Sum {
  static constexpr const char kName[] = "rewire.reduce_sum";
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
  static constexpr const char kName[] = "rewire.reduce_mean";
  template <typename T>
  static T Finish(T sum, std::int64_t count) {
    if constexpr (std::is_integral_v<T>)
      return count == 0 ? T{0} : static_cast<T>(sum / count);
    else
      return sum / static_cast<T>(count);
  }
};

struct SumOfSquares : Sum {
  static constexpr const char kName[] = "rewire.reduce_sum_square";
  template <typename T>
  static T Add(T sum, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return sum + x * x;
    else
      return Sum::Add(sum, static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(x)));
  }
};

struct L1 : Sum {
  static constexpr const char kName[] = "rewire.reduce_l1";
  template <typename T>
  static T Add(T sum, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return sum + std::fabs(x);
    else
      return Sum::Add(sum, x < 0 ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x)) : x);
  }
};

struct L2 : SumOfSquares {
  static constexpr const char kName[] = "rewire.reduce_l2";
  template <typename T>
  static T Finish(T sum, std::int64_t) {
    return static_cast<T>(std::sqrt(sum));
  }
};

struct ProductOf : Sum {
  static constexpr const char kName[] = "rewire.reduce_prod";
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
  static constexpr const char kName[] = "rewire.reduce_max";
  template <typename T>
  static T Identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <typename T>
  static T Add(T most, T x) {
    return x > most || x != x ? x : most;
  }
  template <typename T>
  static T Join(T a, T b) {
    return Add(a, b);
  }
};

struct Smallest : Sum {
  static constexpr const char kName[] = "rewire.reduce_min";
  template <typename T>
  static T Identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <typename T>
  static T Add(T least, T x) {
    return x < least || x != x ? x : least;
  }
  template <typename T>
  static T Join(T a, T b) {
    return Add(a, b);
  }
};

// One run into one number. Contiguous runs go through lanes of their own, which the compiler makes vectors
// of; it also keeps the error of long float sums down.
template <typename Op, typename T>
T ReduceRun(const T* in, std::int64_t step, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  T result = Op::template Identity<T>();
  std::int64_t i = 0;
  if (step == 1 && count >= kLanes) {
    T lanes[kLanes];
    std::fill_n(lanes, kLanes, result);
    for (; i + kLanes <= count; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = Op::Add(lanes[l], in[i + l]);
    }
    for (T lane : lanes) result = Op::Join(result, lane);
  }
  for (; i < count; ++i) result = Op::Add(result, in[i * step]);
  return result;
}

template <typename Op, typename T>
void ReduceRows(const Layout<2>& layout, T* out, const T* in) {
  const std::int64_t* steps = layout.inner_strides();
  ForRows(layout, 0, layout.rows(), [&](const std::int64_t* offsets, std::int64_t count) {
    T* to = out + offsets[0];
    const T* from = in + offsets[1];
    if (steps[0] == 0) {
      *to = Op::Join(*to, ReduceRun<Op>(from, steps[1], count));
    } else {
      for (std::int64_t i = 0; i < count; ++i)
        to[i * steps[0]] = Op::Add(to[i * steps[0]], from[i * steps[1]]);
    }
  });
}

template <typename Op>
struct Reduce {
  static constexpr const char* kName = Op::kName;
  std::vector<std::int64_t> axes;
  bool keepdims = true;
  static Status Make(Attributes& attributes, Reduce* reduce) {
    reduce->axes = attributes.Ints("axes", {});
    reduce->keepdims = attributes.Bool("keepdims", true);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    bool reduced[kMaxRank];
    if (Status s = MarkAxes(axes, x.ndim(), reduced); !s.ok()) return s;
    if (Status s = CheckShape("out", out, ReducedDims(x.dims(), reduced, keepdims).view()); !s.ok()) return s;
    return ForType(Numbers(), "x", x, [&](auto tag) {
      Run<typename decltype(tag)::type>(x, reduced, out);
      return Status();
    });
  }

 private:
  template <typename T>
  static void Run(TensorView x, const bool (&reduced)[kMaxRank], TensorView out) {
    std::int64_t count = 1;
    Dims steps[2] = {Dims(x.dims()), Dims(x.dims())};  // of out, of x
    std::int64_t in_step = 1;
    std::int64_t out_step = 1;
    for (int i = x.ndim() - 1; i >= 0; --i) {
      steps[0][i] = reduced[i] ? 0 : out_step;
      steps[1][i] = in_step;
      in_step *= x.dim(i);
      (reduced[i] ? count : out_step) *= x.dim(i);
    }
    Layout<2> layout;
    for (int i = 0; i < x.ndim(); ++i) layout.Append(x.dim(i), {steps[0][i], steps[1][i]});
    layout.Finish();

    T* to = out.data<T>();
    const std::int64_t size = out.size();
    std::fill_n(to, size, Op::template Identity<T>());
    if (x.size() != 0) Accumulate<T>(layout, to, x.data<T>());
    for (std::int64_t i = 0; i < size; ++i) to[i] = Op::Finish(to[i], count);
  }

  // Threads share the outermost dimension where it is kept, so that each writes results of its own.
  template <typename T>
  static void Accumulate(const Layout<2>& layout, T* to, const T* from) {
    if (layout.rank == 1 || layout.strides[0][0] == 0) {
      ReduceRows<Op>(layout, to, from);
      return;
    }
    Layout<2> rest;
    for (int i = 1; i < layout.rank; ++i)
      rest.Append(layout.dims[i], {layout.strides[i][0], layout.strides[i][1]});
    rest.Finish();
    const std::int64_t work = rest.rows() * rest.inner();
    ParallelFor(layout.dims[0], std::max<std::int64_t>(1, kGrain / work),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    ReduceRows<Op>(rest, to + i * layout.strides[0][0], from + i * layout.strides[0][1]);
                  }
                });
  }
};

template <typename Op>
constexpr Kernel Row(const char* meaning) {
  return Describe<Reduce<Op>>("x, out", "f32 f64 i64 i32 i8 u8", "axes = all, keepdims = 1", meaning);
}

}  // namespace

std::span<const Kernel> ReduceKernels() {
  static constexpr Kernel kKernels[] = {
      Row<Sum>("sum; integers wrap"),
      Row<Mean>("mean; of integers truncated toward zero; NaN of no floats, 0 of no integers"),
      Row<ProductOf>("product; integers wrap"),
      Row<Largest>("largest, NaN if one is; of nothing -inf or the least integer"),
      Row<Smallest>("smallest, NaN if one is; of nothing inf or the greatest integer"),
      Row<SumOfSquares>("sum of squares; integers wrap"),
      Row<L1>("sum of magnitudes; integers wrap"),
      Row<L2>("square root of the sum of squares"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
