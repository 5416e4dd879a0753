// SPDX-License-Identifier: Apache-2.0
// Sums, products, means and extremes along axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/reduction/reduce.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

Layout<2> ReduceLayout(ShapeView dims, const bool (&reduced)[kMaxKernelRank], std::int64_t* count) {
  const int rank = static_cast<int>(dims.size());
  *count = 1;
  std::int64_t steps[kMaxKernelRank][2];
  std::int64_t out_step = 1;
  std::int64_t in_step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const std::int64_t dim = dims[static_cast<std::size_t>(i)];
    steps[i][0] = reduced[i] ? 0 : out_step;
    steps[i][1] = in_step;
    in_step *= dim;
    (reduced[i] ? *count : out_step) *= dim;
  }
  Layout<2> layout;
  for (int i = 0; i < rank; ++i) layout.Append(dims[static_cast<std::size_t>(i)], steps[i]);
  layout.Finish();
  return layout;
}

namespace {

// An operation has the value of nothing (Identity), takes an element in (Add) or another part of the result
// (Join), and completes the result from its `count` elements (Finish).
struct Sum {
  static constexpr const char* kName = names::kReduceSum;
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
  static T Add(T sum, T x) {
    if constexpr (std::is_floating_point_v<T>)
      return sum + x * x;
    else
      return Sum::Add(sum, static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(x)));
  }
};

struct L1 : Sum {
  static constexpr const char* kName = names::kReduceL1;
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

// One run into one number.
template <typename Op, typename T, typename In>
T ReduceRun(const In* in, std::int64_t step, std::int64_t count) {
  constexpr std::int64_t kWorthwhile = 24;  // elements that are worth lanes
  T result = Op::template Identity<T>();
  if constexpr (std::is_same_v<Op, Largest> && std::is_same_v<In, float>) {
    if (step == 1 && count >= kWorthwhile) return BestVectorMath().largest(in, count);
  }
  if (step == 1 && count >= kWorthwhile) {
    WideLoop([=, &result] {
      T lanes[kLanes<T>];
      std::fill_n(lanes, kLanes<T>, Op::template Identity<T>());
      std::int64_t i = 0;
      for (; i + kLanes<T> <= count; i += kLanes<T>) {
        for (std::int64_t l = 0; l < kLanes<T>; ++l) lanes[l] = Op::Add(lanes[l], static_cast<T>(in[i + l]));
      }
      for (std::int64_t l = 0; l < count - i; ++l) lanes[l] = Op::Add(lanes[l], static_cast<T>(in[i + l]));
      JoinLanes<Op>(lanes, kLanes<T>, 1);
      result = lanes[0];
    });
    return result;
  }
  for (std::int64_t i = 0; i < count; ++i) result = Op::Add(result, static_cast<T>(in[i * step]));
  return result;
}

// Takes each element into its result, side by side.
template <typename Op, typename T, typename In>
void AddElements(const In* in, T* results, std::int64_t count) {
  constexpr bool kAdds = std::is_same_v<Op, Sum> || std::is_same_v<Op, Mean>;
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
inline constexpr std::int64_t kFewElements =
    std::is_same_v<Op, Largest>&& std::is_same_v<In, float> ? 32 : 128;

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

// `In` is how elements of type T lie in memory.
template <typename Op, typename T, typename In>
void ReduceRows(const Layout<2>& layout, T* out, const In* in, Pace& pace) {
  const std::int64_t *steps = layout.inner_strides(), *next = layout.next_strides();
  const auto rows = [&](const std::int64_t* offsets, std::int64_t count, std::int64_t runs) {
    T* to = out + offsets[0];
    const In* from = in + offsets[1];
    if (runs > 1 && steps[0] == 0 && next[0] != 0 && count <= kFewElements<Op, In>) {
      if (count == 2 && steps[1] == 1)  // a real and an imaginary part
        return ReduceShortRuns<2, Op>(from, next[1], 1, to, next[0], runs, count);
      return ReduceShortRuns<0, Op>(from, next[1], steps[1], to, next[0], runs, count);
    }
    if (runs > 1 && steps[0] == 1 && steps[1] == 1 && next[0] == 0 && next[1] == count &&
        count <= kLanes<T> / 2)
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

template <typename Op>
struct Reduce {
  static constexpr const char* kName = Op::kName;
  ReduceAttributes attributes;
  static Status Make(Attributes& given, Reduce* reduce) {
    reduce->attributes.Read(given);
    return Status();
  }
  Status operator()(TensorView x, std::optional<TensorView> axes, TensorView out) const {
    bool reduced[kMaxKernelRank];
    const bool widens = std::is_same_v<Op, Mean> && x.Is<BFloat16>() && out.Is<float>();
    if (Status s = attributes.Check(x, axes, out, reduced, widens); !s.ok()) return s;
    if constexpr (std::is_same_v<Op, Mean>) {
      if (widens) return Run<float, BFloat16>(x, reduced, out);
    }
    return ForType(Numbers(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, reduced, out); });
  }

 private:
  template <typename T, typename In = T>
  static Status Run(TensorView x, const bool (&reduced)[kMaxKernelRank], TensorView out) {
    std::int64_t count = 1;
    const Layout<2> layout = ReduceLayout(x.dims(), reduced, &count);
    T* to = out.data<T>();
    const In* from = x.data<In>();
    const std::int64_t size = out.size();
    if (Status s = FillAll(to, size, Op::template Identity<T>()); !s.ok()) return s;
    if (x.size() != 0) {
      Status s = ForResultsApart(
          layout, [&](const Layout<2>& part, std::int64_t out_offset, std::int64_t in_offset, Pace& pace) {
            ReduceRows<Op>(part, to + out_offset, from + in_offset, pace);
          });
      if (!s.ok()) return s;
    }
    return SerialFor(size, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = Op::Finish(to[i], count);
    });
  }
};

// Shifted by the largest element, so that the sum of powers neither overflows nor vanishes.
struct LogSumExp {
  static constexpr const char* kName = names::kReduceLogSumExp;
  ReduceAttributes attributes;
  static Status Make(Attributes& given, LogSumExp* reduce) {
    reduce->attributes.Read(given);
    return Status();
  }
  Status operator()(TensorView x, std::optional<TensorView> axes, TensorView out) const {
    bool reduced[kMaxKernelRank];
    if (Status s = attributes.Check(x, axes, out, reduced); !s.ok()) return s;
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, reduced, out); });
  }
  // The largest element of each result.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0), *out = sizes.Tensor(-1);
    if (x == nullptr || out == nullptr) return false;
    sizes.Take(SizeOf(out), x->dtype.bits / 8);
    return true;
  }

 private:
  template <typename T>
  static Status Run(TensorView x, const bool (&reduced)[kMaxKernelRank], TensorView out) {
    std::int64_t count = 1;
    const Layout<2> layout = ReduceLayout(x.dims(), reduced, &count);
    const std::int64_t size = out.size();
    T* most = nullptr;
    if (Status s = Workspace(size, &most); !s.ok()) return s;
    T* sum = out.data<T>();
    const T* from = x.data<T>();
    if (Status s = FillAll(most, size, Largest::Identity<T>()); !s.ok()) return s;
    if (Status s = FillAll(sum, size, T{0}); !s.ok()) return s;
    if (x.size() != 0) {
      Status s = ForResultsApart(
          layout, [&](const Layout<2>& part, std::int64_t out_offset, std::int64_t in_offset, Pace& pace) {
            ReduceRows<Largest>(part, most + out_offset, from + in_offset, pace);
            AddPowers(part, sum + out_offset, most + out_offset, from + in_offset, pace);
          });
      if (!s.ok()) return s;
    }
    return SerialFor(size, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum[i] = Shift(most[i]) + std::log(sum[i]);
    });
  }
  // An infinite largest element would make infinity less infinity.
  template <typename T>
  static T Shift(T most) {
    return std::isinf(most) ? T{0} : most;
  }
  template <typename T>
  static void AddPowers(const Layout<2>& layout, T* sum, const T* most, const T* in, Pace& pace) {
    const std::int64_t *steps = layout.inner_strides(), *next = layout.next_strides();
    const auto rows = [&](const std::int64_t* offsets, std::int64_t count, std::int64_t runs) {
      std::int64_t o = offsets[0], i = offsets[1];
      if (std::is_same_v<T, float> && steps[0] == 0 && steps[1] == 1 && next[1] == count && count <= kFew) {
        for (const std::int64_t most_runs = kBlock / count; runs > 0;) {
          const std::int64_t some = std::min(runs, most_runs);
          AddPowersOfRuns(in + i, most + o, sum + o, count, some, next[0]);
          runs -= some, o += some * next[0], i += some * count;
        }
        return;
      }
      for (std::int64_t r = 0; r < runs; ++r, o += next[0], i += next[1])
        AddPowersOfRun(in + i, steps[1], most + o, sum + o, steps[0], count);
    };
    ForRows(layout, 0, layout.rows(), 4, pace, rows);
  }
  static constexpr std::int64_t kBlock = 256, kFew = 64, kWorthwhile = 8;
  // Short runs that follow each other; the result of each is `out_step` further.
  template <typename T>
  static void AddPowersOfRuns(const T* in, const T* most, T* sum, std::int64_t count, std::int64_t runs,
                              std::int64_t out_step) {
    T powers[kBlock];
    for (std::int64_t r = 0; r < runs; ++r) {
      const T shift = Shift(most[r * out_step]);
      for (std::int64_t k = 0; k < count; ++k) powers[r * count + k] = in[r * count + k] - shift;
    }
    Powers(powers, runs * count);
    ReduceShortRuns<0, Sum>(powers, count, 1, sum, out_step, runs, count);
  }
  template <typename T>
  static void AddPowersOfRun(const T* in, std::int64_t step, const T* most, T* sum, std::int64_t out_step,
                             std::int64_t count) {
    if (std::is_same_v<T, float> && count >= kWorthwhile && out_step <= 1) {
      T powers[kBlock];
      for (std::int64_t at = 0; at < count; at += kBlock) {
        const std::int64_t size = std::min(kBlock, count - at), o = at * out_step;
        const T* from = in + at * step;
        if (out_step == 0 && step == 1) {
          WideLoop([=, to = &powers[0], shift = Shift(*most)] {
            for (std::int64_t i = 0; i < size; ++i) to[i] = from[i] - shift;
          });
        } else {
          for (std::int64_t i = 0; i < size; ++i) powers[i] = from[i * step] - Shift(most[o + i * out_step]);
        }
        Powers(powers, size);
        if (out_step == 0)
          *sum += ReduceRun<Sum, T>(powers, 1, size);
        else
          AddElements<Sum>(powers, sum + o, size);
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i)
      sum[i * out_step] += std::exp(in[i * step] - Shift(most[i * out_step]));
  }
  static void Powers(float* x, std::int64_t count) { BestVectorMath().exp(x, x, count); }
  static void Powers(double*, std::int64_t) {}  // computed one by one
};

constexpr const char kAttributes[] =
    "axes = those of the argument or all, keepdims = 1, noop_with_empty_axes = 0";

template <typename Op>
constexpr Kernel Row(const char* meaning, const char* dtypes = "x, out f32 f64 i64 i32 i8 u8; axes i64 i32") {
  return Describe<Reduce<Op>>("x, axes? -> out", dtypes, kAttributes, meaning);
}

}  // namespace

std::span<const Kernel> ReduceKernels() {
  static constexpr Kernel kKernels[] = {
      Row<Sum>("sum; integers wrap"),
      Row<Mean>("mean; of integers truncated toward zero; NaN of no floats, 0 of no integers; of bf16 in f32",
                "x f32 f64 i64 i32 i8 u8 bf16; out f32 f64 i64 i32 i8 u8; axes i64 i32"),
      Row<ProductOf>("product; integers wrap"),
      Row<Largest>("largest, NaN if one is; of nothing -inf or the least integer"),
      Row<Smallest>("smallest, NaN if one is; of nothing inf or the greatest integer"),
      Row<SumOfSquares>("sum of squares; integers wrap"),
      Row<L1>("sum of magnitudes; integers wrap"),
      Row<L2>("square root of the sum of squares"),
      Describe<LogSumExp>("x, axes? -> out", "x, out f32 f64; axes i64 i32", kAttributes,
                          "logarithm of the sum of exp(x)"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
