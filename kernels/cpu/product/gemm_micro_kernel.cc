// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set by Highway, which includes this file repeatedly.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/gemm_micro_kernel.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>
#include "rewire/kernels/cpu/product/gemm_micro_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a b + sum; integers wrap. Narrow ones are 64-bit integers of which 32 bits and their sign are all.
template <bool kNarrow, class V>
HWY_INLINE V MultiplyAdd(V a, V b, V sum) {
  if constexpr (kNarrow) {
    const hn::DFromV<V> d;
    const hn::Repartition<std::int32_t, decltype(d)> half;
    return hn::Add(hn::BitCast(d, hn::MulEven(hn::BitCast(half, a), hn::BitCast(half, b))), sum);
  } else if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::MulAdd(a, b, sum);
  } else {
    return hn::Add(hn::Mul(a, b), sum);
  }
}

// Two vectors a row, twelve sums in registers.
template <typename T, bool kNarrow = false>
void RunTile(std::int64_t depth, const T* const* rows, std::int64_t step, const T* HWY_RESTRICT b,
             T* HWY_RESTRICT tile) {
  const hn::CappedTag<T, kMaxMicroWidth / 2> d;
  const std::size_t lanes = hn::Lanes(d);
  auto s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00;
  auto s30 = s00, s31 = s00, s40 = s00, s41 = s00, s50 = s00, s51 = s00;
  const T *HWY_RESTRICT a0 = rows[0], *HWY_RESTRICT a1 = rows[1], *HWY_RESTRICT a2 = rows[2];
  const T *HWY_RESTRICT a3 = rows[3], *HWY_RESTRICT a4 = rows[4], *HWY_RESTRICT a5 = rows[5];
  for (std::int64_t k = 0, at = 0; k < depth; ++k, at += step) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    b += 2 * lanes;
    auto row = hn::Set(d, a0[at]);
    s00 = MultiplyAdd<kNarrow>(row, b0, s00);
    s01 = MultiplyAdd<kNarrow>(row, b1, s01);
    row = hn::Set(d, a1[at]);
    s10 = MultiplyAdd<kNarrow>(row, b0, s10);
    s11 = MultiplyAdd<kNarrow>(row, b1, s11);
    row = hn::Set(d, a2[at]);
    s20 = MultiplyAdd<kNarrow>(row, b0, s20);
    s21 = MultiplyAdd<kNarrow>(row, b1, s21);
    row = hn::Set(d, a3[at]);
    s30 = MultiplyAdd<kNarrow>(row, b0, s30);
    s31 = MultiplyAdd<kNarrow>(row, b1, s31);
    row = hn::Set(d, a4[at]);
    s40 = MultiplyAdd<kNarrow>(row, b0, s40);
    s41 = MultiplyAdd<kNarrow>(row, b1, s41);
    row = hn::Set(d, a5[at]);
    s50 = MultiplyAdd<kNarrow>(row, b0, s50);
    s51 = MultiplyAdd<kNarrow>(row, b1, s51);
  }
  const auto store = [&](int i, auto left, auto right) HWY_ATTR {
    hn::StoreU(left, d, tile + static_cast<std::size_t>(2 * i) * lanes);
    hn::StoreU(right, d, tile + static_cast<std::size_t>(2 * i + 1) * lanes);
  };
  store(0, s00, s01);
  store(1, s10, s11);
  store(2, s20, s21);
  store(3, s30, s31);
  store(4, s40, s41);
  store(5, s50, s51);
}

template <typename T>
MicroKernel<T> Widest() {
  return {static_cast<int>(2 * hn::Lanes(hn::CappedTag<T, kMaxMicroWidth / 2>())), &RunTile<T>};
}
MicroKernel<float> ForFloat() { return Widest<float>(); }
MicroKernel<double> ForDouble() { return Widest<double>(); }
MicroKernel<std::uint32_t> ForInt32() { return Widest<std::uint32_t>(); }
MicroKernel<std::uint64_t> ForInt64() {
  MicroKernel<std::uint64_t> kernel = Widest<std::uint64_t>();
#if HWY_TARGET != HWY_SCALAR
  kernel.run_narrow = &RunTile<std::uint64_t, true>;
#endif
  return kernel;
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(ForFloat);
HWY_EXPORT(ForDouble);
HWY_EXPORT(ForInt32);
HWY_EXPORT(ForInt64);

template <>
MicroKernel<float> ChooseMicroKernel<float>() {
  return HWY_DYNAMIC_DISPATCH(ForFloat)();
}
template <>
MicroKernel<double> ChooseMicroKernel<double>() {
  return HWY_DYNAMIC_DISPATCH(ForDouble)();
}
template <>
MicroKernel<std::uint32_t> ChooseMicroKernel<std::uint32_t>() {
  return HWY_DYNAMIC_DISPATCH(ForInt32)();
}
template <>
MicroKernel<std::uint64_t> ChooseMicroKernel<std::uint64_t>() {
  return HWY_DYNAMIC_DISPATCH(ForInt64)();
}

}  // namespace rewire::kernel::cpu
#endif
