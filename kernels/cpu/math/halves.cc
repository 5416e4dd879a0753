// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/math/halves.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/math/halves.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// F16C comes with AVX2. Without it Highway computes conversions in ways that round otherwise.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
constexpr bool kHasInstructions = true;
#else
constexpr bool kHasInstructions = false;
#endif

void Widen(const Float16* in, float* out, std::int64_t count) {
  std::int64_t i = 0;
  if constexpr (kHasInstructions) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto* from = reinterpret_cast<const hwy::float16_t*>(in);
    for (; i + lanes <= count; i += lanes)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, from + i)), d, out + i);
  }
  for (; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

void Narrow(const float* in, Float16* out, std::int64_t count) {
  std::int64_t i = 0;
  if constexpr (kHasInstructions) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto* to = reinterpret_cast<hwy::float16_t*>(out);
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, in + i)), half, to + i);
  }
  for (; i < count; ++i) out[i] = Float16(in[i]);
}

HalfRows Choose() { return {&Widen, &Narrow}; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(Choose);
HalfRows ChooseHalfRows() { return HWY_DYNAMIC_DISPATCH(Choose)(); }

}  // namespace rewire::kernel::cpu
#endif
