// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/vision/grid_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/vision/grid_sums.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

void SumGathered(const float* elements, const std::int32_t* offsets, const float* weights, std::int64_t step,
                 std::int64_t taps, std::int64_t points, float* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(di);
  std::int64_t p = 0;
  for (; p + lanes <= points; p += lanes) {
    auto sum = hn::Zero(d);
    for (std::int64_t k = 0; k < taps; ++k) {
      const auto offset = hn::LoadU(di, offsets + k * step + p);
      const auto element = hn::GatherIndex(d, elements, hn::Max(offset, zero));
      const auto held = hn::IfThenZeroElse(hn::RebindMask(d, hn::Lt(offset, zero)), element);
      sum = hn::MulAdd(hn::LoadU(d, weights + k * step + p), held, sum);
    }
    hn::StoreU(sum, d, to + p);
  }
  for (; p < points; ++p) {
    float sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const std::int32_t offset = offsets[k * step + p];
      sum += weights[k * step + p] * (offset < 0 ? 0 : elements[offset]);
    }
    to[p] = sum;
  }
}
SumGridTaps ChooseGathered() { return &SumGathered; }

#else

SumGridTaps ChooseGathered() { return nullptr; }

#endif

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(ChooseGathered);
SumGridTaps ChooseSumGridTaps() { return HWY_DYNAMIC_DISPATCH(ChooseGathered)(); }

}  // namespace rewire::kernel::cpu
#endif
