// SPDX-License-Identifier: Apache-2.0
// Vectors of floats rounded to bf16, ties to even, and read from bf16; included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_BF16_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_BF16_
#undef REWIRE_KERNELS_CPU_BF16_
#else
#define REWIRE_KERNELS_CPU_BF16_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes(d) floats from memory, where they lie as floats or as bf16: the upper bits of the same floats.
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> WidenedBf16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> bf16) {
  const hn::RebindToUnsigned<D> u;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(u, bf16)));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const std::uint16_t* from) {
  return WidenedBf16(d, hn::LoadU(hn::Rebind<std::uint16_t, D>(), from));
}

// By the bits, on any CPU. NaN stays one.
struct Bf16ByBits {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE auto Round(D, V value) {
    const hn::RebindToUnsigned<D> u;
    const hn::RebindToSigned<D> i;
    const hn::Rebind<std::uint16_t, D> narrow;
    const auto bits = hn::BitCast(u, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(u, 0x7FFF)), odd);
    const auto quiet = hn::Or(bits, hn::Set(u, 0x400000));
    const auto chosen = hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(value)), quiet, rounded);
    return hn::DemoteTo(narrow, hn::BitCast(i, hn::ShiftRight<16>(chosen)));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void Store(D d, V value, std::uint16_t* to) {
    hn::StoreU(Round(d, value), hn::Rebind<std::uint16_t, D>(), to);
  }
};

#if HWY_TARGET == HWY_AVX3

// By AVX512-BF16, which not every CPU with AVX-512 has. Written as such, since the target as a whole is
// compiled without it.
struct Bf16ByInstruction {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE auto Round(D, V value) {
    auto rounded = hn::Zero(hn::Rebind<std::uint16_t, D>());
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(value.raw));
    return rounded;
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void Store(D d, V value, std::uint16_t* to) {
    hn::StoreU(Round(d, value), hn::Rebind<std::uint16_t, D>(), to);
  }
};

inline bool HasBf16Instructions() { return __builtin_cpu_supports("avx512bf16") != 0; }

#endif

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
