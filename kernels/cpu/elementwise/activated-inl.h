// SPDX-License-Identifier: Apache-2.0
// An activation of a vector of floats; included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_ACTIVATED_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_ACTIVATED_
#undef REWIRE_KERNELS_CPU_ACTIVATED_
#else
#define REWIRE_KERNELS_CPU_ACTIVATED_
#endif

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V Activated(D d, V x, const Activation& activation) {
  const V alpha = hn::Set(d, activation.alpha);
  switch (activation.kind) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      // NaN stays.
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    case Activation::kClip: {
      const V beta = hn::Set(d, activation.beta);
      const V low = hn::IfThenElse(hn::Lt(x, alpha), alpha, x);
      return hn::IfThenElse(hn::Gt(low, beta), beta, low);
    }
    case Activation::kSigmoid:
      return SigmoidOf(d, x);
    case Activation::kTanh:
      return TanhOf(d, x);
    case Activation::kHardSwish: {
      const V gate = hn::MulAdd(x, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F));
      return hn::Mul(x, hn::Min(hn::Max(gate, hn::Zero(d)), hn::Set(d, 1.0F)));
    }
    case Activation::kGelu:
      return GeluOf(d, x);
    case Activation::kSwish:
      return SwishOf(d, x);
    case Activation::kLeakyRelu:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, alpha), x);
  }
  return x;
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
