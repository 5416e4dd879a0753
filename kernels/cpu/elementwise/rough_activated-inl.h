// SPDX-License-Identifier: Apache-2.0
// Activations of vectors of floats that are rounded to bf16 afterwards. With AVX-512 their errors are below
// 2^-13 of the result, or for Gelu 2^-15 of 1, where a bf16 has 2^-9. On other CPUs they are those of
// activated-inl.h. Included as that is. NaN stays.
#if defined(REWIRE_KERNELS_CPU_ROUGH_ACTIVATED_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_ROUGH_ACTIVATED_
#undef REWIRE_KERNELS_CPU_ROUGH_ACTIVATED_
#else
#define REWIRE_KERNELS_CPU_ROUGH_ACTIVATED_
#endif

#include "rewire/kernels/cpu/elementwise/activated-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

using RoughVector = hn::Vec<hn::CappedTag<float, 16>>;

// 1 / (1 + 2^x). 2^x is that of the part of x behind the point, a polynomial with an error below 8e-5, by 2
// to the power of what stands before it. The reciprocal is the CPU's estimate of 14 bits.
HWY_INLINE RoughVector RoughFallOfPower(RoughVector x) {
  static constexpr float kTerms[] = {0.999925196F, 0.695833504F, 0.226067171F, 0.0780245289F};
  const hn::CappedTag<float, 16> d;
  constexpr int kBehindPoint = 1;  // x less the next integer below
  const RoughVector behind{_mm512_reduce_ps(x.raw, kBehindPoint)};
  const RoughVector power{_mm512_scalef_ps(Polynomial(d, behind, kTerms).raw, x.raw)};
  return hn::ApproximateReciprocal(hn::Add(power, hn::Set(d, 1.0F)));
}

constexpr float kLog2OfE = 1.44269504F;

struct RoughSigmoidOfVector {
  template <class D>
  HWY_INLINE RoughVector operator()(D d, RoughVector x) const {
    return RoughFallOfPower(hn::Mul(x, hn::Set(d, -kLog2OfE)));
  }
};
struct RoughSwishOfVector {
  template <class D>
  HWY_INLINE RoughVector operator()(D d, RoughVector x) const {
    return hn::Mul(x, RoughSigmoidOfVector()(d, x));
  }
};
// The normal distribution as a sigmoid of an odd polynomial, which was fitted for x up to 5. From 7 on both
// are 0 or 1 in floats.
struct RoughGeluOfVector {
  template <class D>
  HWY_INLINE RoughVector operator()(D d, RoughVector x) const {
    static constexpr float kTerms[] = {-1.59501517F * kLog2OfE, -7.40119889e-2F * kLog2OfE,
                                       7.03185221e-4F * kLog2OfE};
    const RoughVector limit = hn::Set(d, 7.0F);
    const RoughVector near = hn::Min(hn::Max(x, hn::Neg(limit)), limit);
    return hn::Mul(x, RoughFallOfPower(hn::Mul(near, Polynomial(d, hn::Mul(near, near), kTerms))));
  }
};

#else

using RoughSigmoidOfVector = SigmoidOfVector;
using RoughSwishOfVector = SwishOfVector;
using RoughGeluOfVector = GeluOfVector;

#endif

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
