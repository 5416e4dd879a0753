// SPDX-License-Identifier: Apache-2.0
// The p-norm of the elements under each window of an image with one to three spatial axes.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/pool/narrow_planes.h"
#include "rewire/kernels/cpu/convolution/pool/window_loops.h"
#include "rewire/kernels/cpu/math/pair_math.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

struct LpPool : contract::LpPoolAttributes {
  static constexpr const char* kName = names::kLpPool;
  WindowAttributes attributes;
  static Status Make(Attributes& given, LpPool* pool) {
    pool->attributes.Read(given, true, true);
    pool->Read(given);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    Window window;
    if (Status s = CheckPool(attributes, x, out, &window); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (p > 2) return PoolPowers<T>(x, out, window);
      return p == 1 ? SumMagnitudes<T>(x, out, window) : PoolSquares<T>(x, out, window);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0);
    if (x == nullptr) return false;
    if (p > 2) sizes.Take(SizeOf(x), x->dtype.bits / 8);
    return true;
  }

 private:
  template <typename T>
  static Status PoolSquares(TensorView x, TensorView out, const Window& window) {
    const auto norm = [to = out.data<T>()](const Covered<T>& covered, std::int64_t o, std::int64_t) {
      T sum = 0;
      covered.ForEach([&](T value, std::int64_t) { sum += value * value; });
      to[o] = std::sqrt(sum);
    };
    return PoolPlanes<T>(x, out, window, PoolKind::kRootOfSquares, norm);
  }
  template <typename T>
  static Status SumMagnitudes(TensorView x, TensorView out, const Window& window) {
    const auto norm = [to = out.data<T>()](const Covered<T>& covered, std::int64_t o, std::int64_t) {
      T sum = 0;
      covered.ForEach([&](T value, std::int64_t) { sum += std::fabs(value); });
      to[o] = sum;
    };
    return PoolPlanes<T>(x, out, window, PoolKind::kSumOfMagnitudes, norm);
  }
  // Each power is computed once, not for each window that covers it.
  template <typename T>
  Status PoolPowers(TensorView x, TensorView out, const Window& window) const {
    T* powers = nullptr;
    if (Status s = Workspace(x.size(), &powers); !s.ok()) return s;
    if (Status s = p <= kFewProducts ? Multiply(x.data<T>(), x.size(), powers)
                                     : Raise(x.data<T>(), static_cast<T>(p), x.size(), powers);
        !s.ok())
      return s;
    DLTensor raised = *x.dl_tensor();
    raised.data = powers;
    raised.byte_offset = 0;
    if (Status s = SumMagnitudes<T>(TensorView(&raised), out, window); !s.ok()) return s;
    return Raise(out.data<T>(), 1 / static_cast<T>(p), out.size(), out.data<T>());
  }
  // The power as products, which are faster if they are few.
  static constexpr std::int64_t kFewProducts = 4;
  template <typename T>
  Status Multiply(const T* from, std::int64_t count, T* to) const {
    return ParallelFor(count, kGrain, [=, products = p](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t kSome = 1024;
      for (std::int64_t i = begin; i < end; i += kSome) {
        WideLoop([=, size = std::min(kSome, end - i)] {
          std::copy_n(from + i, size, to + i);
          for (std::int64_t k = 1; k < products; ++k) {
            for (std::int64_t j = i; j < i + size; ++j) to[j] *= from[j];
          }
        });
      }
    });
  }
  template <typename T>
  static Status Raise(const T* from, T power, std::int64_t count, T* to) {
    return ParallelFor(count, kGrain / 16, [&](std::int64_t begin, std::int64_t end) {
      if constexpr (std::is_same_v<T, float>) {
        float exponents[256];
        std::fill(std::begin(exponents), std::end(exponents), power);
        for (std::int64_t i = begin; i < end; i += std::ssize(exponents)) {
          const std::int64_t size = std::min<std::int64_t>(end - i, std::ssize(exponents));
          BestPairMath().pow(from + i, exponents, to + i, size);
        }
      } else {
        for (std::int64_t i = begin; i < end; ++i) to[i] = std::pow(from[i], power);
      }
    });
  }
};

}  // namespace

std::span<const Kernel> LpPoolKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<LpPool>("x -> out", "f32 f64",
                       "kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
                       "ceil_mode = 0, p = 2",
                       "the p-norm of the elements under each window of x [N, C, ...]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
