// SPDX-License-Identifier: Apache-2.0
// The logarithm of sums of powers along axes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/reduction/reduce.h"
#include "rewire/kernels/cpu/reduction/reduce_rows.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// exp(-i) for a whole number i of at least 0, as doubles hold it.
class WholePowers {
 public:
  WholePowers() {
    for (int i = 0; i < kCount; ++i) powers_[i] = std::exp(-static_cast<double>(i));
  }
  static const WholePowers& Get() {
    static const WholePowers kPowers;
    return kPowers;
  }
  double operator[](std::uint64_t i) const { return powers_[std::min<std::uint64_t>(i, kCount - 1)]; }

 private:
  static constexpr int kCount = 747;  // the last one is 0
  double powers_[kCount];
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
    return ForType(Types<float, double, std::int64_t, std::int32_t>(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>)
        return RunWhole<T>(x, reduced, out);
      else
        return Run<T>(x, reduced, out);
    });
  }
  // The largest element of each result, and the sum of integers' powers.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0), *out = sizes.Tensor(-1);
    if (x == nullptr || out == nullptr) return false;
    sizes.Take(SizeOf(out), x->dtype.bits / 8);
    if (x->dtype.code == kDLInt) sizes.Take(SizeOf(out), sizeof(double));
    return true;
  }

 private:
  // Integers, whose differences are whole: their powers are looked up. The logarithm is truncated.
  template <typename T>
  static Status RunWhole(TensorView x, const bool (&reduced)[kMaxKernelRank], TensorView out) {
    std::int64_t count = 1;
    const Layout<2> layout = ReduceLayout(x.dims(), reduced, &count);
    const std::int64_t size = out.size();
    T* most = nullptr;
    double* sum = nullptr;
    if (Status s = Workspace(size, &most); !s.ok()) return s;
    if (Status s = Workspace(size, &sum); !s.ok()) return s;
    const T* from = x.data<T>();
    if (Status s = FillAll(most, size, reduction::Largest::Identity<T>()); !s.ok()) return s;
    if (Status s = FillAll(sum, size, 0.0); !s.ok()) return s;
    if (x.size() != 0) {
      Status s = ForResultsApart(
          layout, [&](const Layout<2>& part, std::int64_t out_offset, std::int64_t in_offset, Pace& pace) {
            reduction::ReduceRows<reduction::Largest>(part, most + out_offset, from + in_offset, pace);
            AddWholePowers(part, sum + out_offset, most + out_offset, from + in_offset, pace);
          });
      if (!s.ok()) return s;
    }
    T* to = out.data<T>();
    return SerialFor(size, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double shift = sum[i] == 0 ? 0 : static_cast<double>(most[i]);  // of no elements: -inf
        to[i] = ToType<T>(shift + std::log(sum[i]));
      }
    });
  }
  template <typename T>
  static void AddWholePowers(const Layout<2>& layout, double* sum, const T* most, const T* in, Pace& pace) {
    const std::int64_t* steps = layout.inner_strides();
    const WholePowers& powers = WholePowers::Get();
    const auto power = [&powers](T largest, T x) {
      return powers[static_cast<std::uint64_t>(largest) - static_cast<std::uint64_t>(x)];
    };
    const auto row = [&](const std::int64_t* offsets, std::int64_t count) {
      const T* from = in + offsets[1];
      if (steps[0] != 0) {
        double* to = sum + offsets[0];
        const T* largest = most + offsets[0];
        for (std::int64_t i = 0; i < count; ++i)
          to[i * steps[0]] += power(largest[i * steps[0]], from[i * steps[1]]);
        return;
      }
      // Several sums side by side: each waits for the one before it.
      double sums[4] = {};
      const T largest = most[offsets[0]];
      std::int64_t i = 0;
      for (; i + 4 <= count; i += 4) {
        for (std::int64_t k = 0; k < 4; ++k) sums[k] += power(largest, from[(i + k) * steps[1]]);
      }
      for (; i < count; ++i) sums[0] += power(largest, from[i * steps[1]]);
      sum[offsets[0]] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    };
    ForRows(layout, 0, layout.rows(), 2, pace, row);
  }

  template <typename T>
  static Status Run(TensorView x, const bool (&reduced)[kMaxKernelRank], TensorView out) {
    std::int64_t count = 1;
    const Layout<2> layout = ReduceLayout(x.dims(), reduced, &count);
    const std::int64_t size = out.size();
    T* most = nullptr;
    if (Status s = Workspace(size, &most); !s.ok()) return s;
    T* sum = out.data<T>();
    const T* from = x.data<T>();
    if (Status s = FillAll(most, size, reduction::Largest::Identity<T>()); !s.ok()) return s;
    if (Status s = FillAll(sum, size, T{0}); !s.ok()) return s;
    if (x.size() != 0) {
      Status s = ForResultsApart(
          layout, [&](const Layout<2>& part, std::int64_t out_offset, std::int64_t in_offset, Pace& pace) {
            reduction::ReduceRows<reduction::Largest>(part, most + out_offset, from + in_offset, pace);
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
      if (std::is_same_v<T, float> && steps[0] == 1 && steps[1] == 1 && next[0] == 0 && next[1] == count &&
          count <= kFew)
        return AddPowersOfRows(in + i, most + o, sum + o, count, runs);
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
    reduction::ReduceShortRuns<0, reduction::Sum>(powers, count, 1, sum, out_step, runs, count);
  }
  // Rows of few results side by side, several of which follow each other.
  template <typename T>
  static void AddPowersOfRows(const T* in, const T* most, T* sum, std::int64_t count, std::int64_t runs) {
    const std::int64_t rows = kBlock / count;
    T shifts[kBlock], powers[kBlock];
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t k = 0; k < count; ++k) shifts[r * count + k] = Shift(most[k]);
    }
    for (std::int64_t r = 0; r < runs; r += rows) {
      const std::int64_t some = std::min(rows, runs - r), size = some * count;
      const T* from = in + r * count;
      WideLoop([=, by = &shifts[0], to = &powers[0]] {
        for (std::int64_t k = 0; k < size; ++k) to[k] = from[k] - by[k];
      });
      Powers(powers, size);
      reduction::AddShortRows<reduction::Sum>(powers, sum, count, some);
    }
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
          *sum += reduction::ReduceRun<reduction::Sum, T>(powers, 1, size);
        else
          reduction::AddElements<reduction::Sum>(powers, sum + o, size);
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i)
      sum[i * out_step] += std::exp(in[i * step] - Shift(most[i * out_step]));
  }
  static void Powers(float* x, std::int64_t count) { BestVectorMath().exp(x, x, count); }
  static void Powers(double*, std::int64_t) {}  // computed one by one
};

}  // namespace rewire::kernel::cpu
