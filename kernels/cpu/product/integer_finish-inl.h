// SPDX-License-Identifier: Apache-2.0
// Finishes sums of products of bytes (IntegerFinish); included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_INTEGER_FINISH_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_INTEGER_FINISH_
#undef REWIRE_KERNELS_CPU_INTEGER_FINISH_
#else
#define REWIRE_KERNELS_CPU_INTEGER_FINISH_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/cpu/elementwise/activated-inl.h"
#include "rewire/kernels/cpu/math/rounded-inl.h"
#include "rewire/kernels/cpu/product/integer_panels.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of the `used` elements that there are, all where that is more.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadSome(D d, const T* from, std::int64_t used) {
  if (used >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN T edge[hn::MaxLanes(D())] = {};
  std::copy_n(from, used, edge);
  return hn::Load(d, edge);
}
template <class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE void StoreSome(D d, V values, T* to, std::int64_t used) {
  if (used >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(values, d, to);
  HWY_ALIGN T edge[hn::MaxLanes(D())];
  hn::StoreU(values, d, edge);
  std::copy_n(edge, used, to);
}

// Stores what becomes of a vector of sums, of which `used` are wanted. T is the type of the result, `scale`
// and `bias` are those of the sums.
template <typename T, class D, class DF = hn::Rebind<float, D>>
HWY_INLINE void StoreFinished(D d, hn::Vec<D> sum, const IntegerFinish& finish, hn::Vec<DF> scale,
                              hn::Vec<DF> bias, T* to, std::int64_t used) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    StoreSome(d, sum, to, used);
  } else {
    auto value = hn::ConvertTo(DF(), sum);
    value = finish.bias != nullptr ? hn::MulAdd(value, scale, bias) : hn::Mul(value, scale);
    if constexpr (std::is_same_v<T, float>) {
      if (!finish.activation.IsNone()) value = Activated(DF(), value, finish.activation);
      StoreSome(DF(), value, to, used);
    } else {
      const hn::Rebind<T, D> narrow;
      const auto rounded = Rounded(DF(), value, finish.zero, finish.least, finish.most);
      StoreSome(narrow, hn::DemoteTo(narrow, rounded), to, used);
    }
  }
}

// Calls body(T()) with the type of the result.
template <class Body>
HWY_INLINE void ForFinishedType(IntegerFinish::Kind kind, const Body& body) {
  switch (kind) {
    case IntegerFinish::kSums:
      return body(std::int32_t());
    case IntegerFinish::kFloats:
      return body(float());
    case IntegerFinish::kUnsigned:
      return body(std::uint8_t());
    case IntegerFinish::kSigned:
      return body(std::int8_t());
  }
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
