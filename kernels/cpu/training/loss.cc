// SPDX-License-Identifier: Apache-2.0
// Losses of training.
#include <algorithm>

#include "rewire/kernels/contract/training.h"
#include "rewire/kernels/cpu/indexing/indices.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct NegativeLogLikelihood {
  static constexpr const char* kName = names::kNllLoss;
  enum Reduction { kNone, kMean, kSum };
  Reduction reduction = kMean;
  bool ignores = false;
  std::int64_t ignored = 0;
  static Status Make(Attributes& attributes, NegativeLogLikelihood* loss) {
    loss->reduction = static_cast<Reduction>(attributes.Choice("reduction", {"none", "mean", "sum"}, kMean));
    loss->ignores = attributes.Has("ignore_index");
    loss->ignored = attributes.Int("ignore_index", 0);
    return Status();
  }

  Status operator()(TensorView x, TensorView target, std::optional<TensorView> weight, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "target", target, out).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected [N, C, ...]");
    const std::int64_t classes = x.dim(1);
    Dims expected(ShapeView(x.dims().data(), 1));
    for (int i = 2; i < x.ndim(); ++i) expected.push_back(x.dim(i));
    checks.Shape("target", target, expected.view());
    checks.Shape("out", out, reduction == kNone ? expected.view() : ShapeView());
    if (IsGiven(weight)) {
      checks.Dense("weight", *weight).SameDType("weight", *weight, "x", x);
      checks.Shape("weight", *weight, ShapeView(&classes, 1)).NoOverlap("out", out, "weight", *weight);
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* weights = IsGiven(weight) ? weight->data<T>() : nullptr;
      return ForType(Indices(), "target", target, [&](auto index_tag) {
        return Run<T, typename decltype(index_tag)::type>(x, target, weights, out);
      });
    });
  }

 private:
  template <typename T, typename I>
  Status Run(TensorView x, TensorView target, const T* weights, TensorView out) const {
    const std::int64_t classes = x.dim(1);
    const std::int64_t inner = Product(x.dims(), 2, x.ndim());
    const I* label = target.data<I>();
    double sum = 0;
    double weight_sum = 0;
    std::int64_t wrong = -1;  // the number of a target that is no class
    Pace pace;
    for (std::int64_t n = 0; n < x.dim(0); ++n) {
      const I* labels = label + n * inner;
      const T* values = x.data<T>() + n * classes * inner;
      T* losses = reduction == kNone ? out.data<T>() + n * inner : nullptr;
      const bool done = pace.For(inner, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end && wrong < 0; ++i) {
          T loss = 0;
          const auto c = static_cast<std::int64_t>(labels[i]);
          if (!ignores || c != ignored) {
            if (c < 0 || c >= classes) {
              wrong = n * inner + i;
              return;
            }
            const T weight = weights != nullptr ? weights[c] : T{1};
            loss = -weight * values[c * inner + i];
            weight_sum += static_cast<double>(weight);
          }
          sum += static_cast<double>(loss);
          if (losses != nullptr) losses[i] = loss;
        }
      });
      if (wrong >= 0) {
        return ValueError("element ", wrong, " of target is ", static_cast<std::int64_t>(label[wrong]),
                          ", expected 0 to ", classes - 1, " as x has shape ", x.dims());
      }
      if (!done) return Stopped();
    }
    if (reduction == kSum) *out.data<T>() = static_cast<T>(sum);
    if (reduction == kMean) *out.data<T>() = static_cast<T>(sum / weight_sum);
    return Status();
  }
};

}  // namespace

std::span<const Kernel> LossKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<NegativeLogLikelihood>(
          "x, target, weight? -> out", "x, weight, out f32 f64; target i64 i32",
          "reduction = none, mean (the default) or sum, ignore_index = none",
          "for log-probabilities x [N, C, ...] and classes target [N, ...] the weighted negative ones of the "
          "targets, each in out [N, ...], their sum, or their sum over the weights' as a scalar"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
