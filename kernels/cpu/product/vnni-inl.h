// SPDX-License-Identifier: Apache-2.0
// VNNI, which not every CPU with AVX-512 has; included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_VNNI_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_VNNI_
#undef REWIRE_KERNELS_CPU_VNNI_
#else
#define REWIRE_KERNELS_CPU_VNNI_
#endif

#include <hwy/highway.h>

#if HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

inline bool HasVnni() { return __builtin_cpu_supports("avx512vnni") != 0; }

// Adds to each sum of 32 bits the products of four unsigned bytes by four signed ones, which do not saturate.
// Written as an instruction, since the target as a whole is compiled without it.
template <class Sum, class Bytes, class SignedBytes>
HWY_INLINE void AddVnni(Sum& sum, Bytes bytes, SignedBytes by) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(bytes.raw), "v"(by.raw));
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
