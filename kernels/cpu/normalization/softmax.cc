// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one axis, shifted by the maximum so that nothing overflows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

template <bool kLog>
struct Softmax {
  static constexpr const char* kName = kLog ? names::kLogSoftmax : names::kSoftmax;
  std::int64_t axis = -1;
  static Status Make(Attributes& attributes, Softmax* softmax) {
    softmax->axis = attributes.Int("axis", -1);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).SameDType("out", out, "x", x);
    if (out.raw_data() != x.raw_data()) checks.NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    const std::int64_t outer = Product(x.dims(), 0, along);
    const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
    const std::int64_t count = x.dim(along);
    if (x.size() == 0) return Status();
    if (x.Is<float>() && inner == 1 && count <= kShortLine) {
      return ParallelFor(outer, GrainOf(kGrain, count, 4), [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t at = begin * count;
        ShortLines(x.data<float>() + at, out.data<float>() + at, end - begin, count);
      });
    }
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* in = x.data<T>();
      T* to = out.data<T>();
      // Columns side by side share a pass; a block of them fits on the stack.
      const std::int64_t blocks = (inner + kBlock - 1) / kBlock;
      const std::int64_t work = Times(count, std::min(inner, kBlock), 4);
      return ParallelFor(
          Times(outer, blocks), GrainOf(kGrain, work), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
            for (std::int64_t i = begin; i < end && !pace.stopped(); ++i) {
              const std::int64_t first = i % blocks * kBlock;
              const std::int64_t offset = i / blocks * count * inner + first;
              if (inner == 1)
                Line(in + offset, to + offset, count, pace);
              else
                Columns(in + offset, to + offset, count, inner, std::min(kBlock, inner - first), pace);
            }
          });
    });
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  static constexpr std::int64_t kShortLine = 16;

  // Lines that are too short for vectors of their own: the powers of many of them are computed at once.
  static void ShortLines(const float* in, float* out, std::int64_t lines, std::int64_t count) {
    constexpr std::int64_t kElements = 512;
    float powers[kElements];
    const VectorMath& math = BestVectorMath();
    const std::int64_t most = kElements / count;
    for (std::int64_t first = 0; first < lines; first += most) {
      const std::int64_t rows = std::min(most, lines - first);
      for (std::int64_t i = 0; i < rows * count; i += count) {
        float largest = -std::numeric_limits<float>::infinity();
        for (std::int64_t j = i; j < i + count; ++j) largest = Larger(in[j], largest);
        for (std::int64_t j = i; j < i + count; ++j) out[j] = powers[j] = in[j] - largest;
      }
      math.exp(powers, powers, rows * count);
      for (std::int64_t i = 0; i < rows * count; i += count) {
        float sum = 0;
        for (std::int64_t j = i; j < i + count; ++j) sum += powers[j];
        const float by = kLog ? std::log(sum) : 1 / sum;
        for (std::int64_t j = i; j < i + count; ++j) out[j] = kLog ? out[j] - by : powers[j] * by;
      }
      in += rows * count;
      out += rows * count;
    }
  }

  template <typename T>
  static T Larger(T a, T b) {
    return a > b || a != a ? a : b;
  }

  // All passes over a long line go through it in the same pieces.
  template <typename T>
  static void Line(const T* in, T* out, std::int64_t count, Pace& pace) {
    if constexpr (std::is_same_v<T, float>) {
      const VectorMath& math = BestVectorMath();
      float largest = -std::numeric_limits<float>::infinity();
      float sum = 0;
      const auto for_pieces = [&](const auto& body) { return pace.For(count, 1, body); };
      bool goes = for_pieces([&](std::int64_t i, std::int64_t end) {
        largest = Larger(math.largest(in + i, end - i), largest);
      });
      goes = goes && for_pieces([&](std::int64_t i, std::int64_t end) {
               sum += kLog ? math.sum_of_exp(in + i, largest, end - i)
                           : math.shifted_exp(in + i, largest, out + i, end - i);
             });
      if (!goes) return;
      const float scale = kLog ? std::log(sum) : 1 / sum;
      static_cast<void>(for_pieces([&](std::int64_t i, std::int64_t end) {
        if constexpr (kLog)
          math.lowered(in + i, largest, scale, out + i, end - i);
        else
          math.scaled(out + i, scale, out + i, end - i);
      }));
    } else {
      Columns(in, out, count, 1, 1, pace);
    }
  }

  template <typename T>
  static void Columns(const T* in, T* out, std::int64_t count, std::int64_t step, std::int64_t columns,
                      Pace& pace) {
    T most[kBlock];
    T sum[kBlock];
    std::fill_n(most, columns, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, columns, T{0});
    for (std::int64_t i = 0; i < count; ++i) {
      if (!pace.Spend(columns)) return;
      for (std::int64_t j = 0; j < columns; ++j) most[j] = Larger(in[i * step + j], most[j]);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (!pace.Spend(4 * columns)) return;
      for (std::int64_t j = 0; j < columns; ++j) {
        const T shifted = in[i * step + j] - most[j];
        const T power = std::exp(shifted);
        sum[j] += power;
        out[i * step + j] = kLog ? shifted : power;
      }
    }
    for (std::int64_t j = 0; j < columns; ++j) sum[j] = kLog ? std::log(sum[j]) : 1 / sum[j];
    for (std::int64_t i = 0; i < count; ++i) {
      if (!pace.Spend(columns)) return;
      for (std::int64_t j = 0; j < columns; ++j) {
        T& value = out[i * step + j];
        value = kLog ? value - sum[j] : value * sum[j];
      }
    }
  }
};

}  // namespace

std::span<const Kernel> SoftmaxKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Softmax<false>>("x -> out over x", "f32 f64", "axis = -1",
                               "exp(x) / sum of exp(x) along the axis"),
      Describe<Softmax<true>>("x -> out over x", "f32 f64", "axis = -1", "the logarithm of rewire.softmax"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
