// SPDX-License-Identifier: Apache-2.0
// A vector of floats as whole numbers; included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_ROUNDED_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_ROUNDED_
#undef REWIRE_KERNELS_CPU_ROUNDED_
#else
#define REWIRE_KERNELS_CPU_ROUNDED_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Each value rounded to the nearest and even integer, plus `zero`, held in [least, most]; NaN gives least.
// What lies out of range is held in it first, then a number is added that leaves no room for fractions.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::Rebind<std::int32_t, D>> RoundedBy(D d, V value, V zero, float least, float most) {
  constexpr float kNoFractions = 12582912.0F;  // 1.5 * 2^23: the last bit of such numbers is worth 1
  const V low = hn::Sub(hn::Set(d, least), zero), high = hn::Sub(hn::Set(d, most), zero);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  // These CPUs' instructions give the second operand if one is NaN.
  value = hn::Min(hn::Max(value, low), high);
#else
  value = hn::IfThenElse(hn::Gt(value, low), value, low);
  value = hn::IfThenElse(hn::Lt(value, high), value, high);
#endif
  const hn::Rebind<std::int32_t, D> whole;
  const auto first = hn::BitCast(whole, hn::Sub(hn::Set(d, kNoFractions), zero));
  return hn::Sub(hn::BitCast(whole, hn::Add(value, hn::Set(d, kNoFractions))), first);
}

// The same with one zero for all.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::Rebind<std::int32_t, D>> Rounded(D d, V value, float zero, float least, float most) {
  return RoundedBy(d, value, hn::Set(d, zero), least, most);
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
