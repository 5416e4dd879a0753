// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one axis, shifted by the maximum so that nothing overflows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"

namespace rewire::kernel::cpu {
namespace {

template <bool kLog>
struct Softmax {
  static constexpr const char* kName = kLog ? "rewire.log_softmax" : "rewire.softmax";
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
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* in = x.data<T>();
      T* to = out.data<T>();
      // Columns side by side share a pass; a block of them fits on the stack.
      const std::int64_t blocks = (inner + kBlock - 1) / kBlock;
      const std::int64_t work = count * std::min(inner, kBlock) * 4;
      ParallelFor(outer * blocks, std::max<std::int64_t>(1, kGrain / work),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t first = i % blocks * kBlock;
                      const std::int64_t offset = i / blocks * count * inner + first;
                      if (inner == 1)
                        Line(in + offset, to + offset, count);
                      else
                        Columns(in + offset, to + offset, count, inner, std::min(kBlock, inner - first));
                    }
                  });
      return Status();
    });
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  template <typename T>
  static T Larger(T a, T b) {
    return a > b || a != a ? a : b;
  }

  template <typename T>
  static void Line(const T* in, T* out, std::int64_t count) {
    if constexpr (std::is_same_v<T, float>) {
      const VectorMath& math = BestVectorMath();
      const float largest = math.largest(in, count);
      if constexpr (kLog) {
        const float scale = std::log(math.sum_of_exp(in, largest, count));
        math.lowered(in, largest, scale, out, count);
      } else {
        const float share = 1 / math.shifted_exp(in, largest, out, count);
        math.scaled(out, share, out, count);
      }
      return;
    }
    T most = -std::numeric_limits<T>::infinity();
    for (std::int64_t i = 0; i < count; ++i) most = Larger(in[i], most);
    T sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const T power = std::exp(in[i] - most);
      sum += power;
      out[i] = kLog ? in[i] - most : power;
    }
    const T scale = kLog ? std::log(sum) : 1 / sum;
    for (std::int64_t i = 0; i < count; ++i) out[i] = kLog ? out[i] - scale : out[i] * scale;
  }

  template <typename T>
  static void Columns(const T* in, T* out, std::int64_t count, std::int64_t step, std::int64_t columns) {
    T most[kBlock];
    T sum[kBlock];
    std::fill_n(most, columns, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, columns, T{0});
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) most[j] = Larger(in[i * step + j], most[j]);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const T shifted = in[i * step + j] - most[j];
        const T power = std::exp(shifted);
        sum[j] += power;
        out[i * step + j] = kLog ? shifted : power;
      }
    }
    for (std::int64_t j = 0; j < columns; ++j) sum[j] = kLog ? std::log(sum[j]) : 1 / sum[j];
    for (std::int64_t i = 0; i < count; ++i) {
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
      Describe<Softmax<false>>("x, out", "f32 f64", "axis = -1", "exp(x) / sum of exp(x) along the axis"),
      Describe<Softmax<true>>("x, out", "f32 f64", "axis = -1", "the logarithm of rewire.softmax"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
