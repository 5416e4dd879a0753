// SPDX-License-Identifier: Apache-2.0
//
// Conversions of float16, under the names that code compiled by TVM up to 0.13 calls. TVM's own runtime had
// them.
//
// Such code calls one of them for every element that it reads or writes. So they use the processor's
// instructions if it has them: VCVTPH2PS and VCVTPS2PH of F16C (Intel 64 manual, volume 2).
#include "rewire/vm/loader/ffi_shim/half.h"

#include "rewire/vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {

#ifdef REWIRE_FFI_SHIM_F16C
namespace {

// In assembly, because an intrinsic would require compiling the whole function for F16C.
float InstructionToFloat(std::uint16_t half) {
  float value;
  asm("vmovd %1, %0\n\tvcvtph2ps %0, %0" : "=x"(value) : "r"(std::uint32_t{half}));
  return value;
}

// Immediate 0: to the nearest, ties to even.
std::uint16_t InstructionToHalf(float value) {
  std::uint32_t half;
  float packed;
  asm("vcvtps2ph $0, %2, %1\n\tvmovd %1, %0" : "=r"(half), "=&x"(packed) : "x"(value));
  return static_cast<std::uint16_t>(half);
}

bool HasInstructions() {
  __builtin_cpu_init();  // resolvers run before constructors
  // Processors with AVX2 also have F16C. Not all compilers know its name here.
  return __builtin_cpu_supports("avx2") != 0;
}

}  // namespace

// The dynamic linker binds the two names to one of these once. A test at every element would make such
// kernels a tenth slower.
extern "C" {
[[gnu::visibility("hidden")]] float (*rewire_resolve_h2f())(std::uint16_t) {
  return HasInstructions() ? InstructionToFloat : HalfToFloat;
}
[[gnu::visibility("hidden")]] std::uint16_t (*rewire_resolve_f2h())(float) {
  return HasInstructions() ? InstructionToHalf : FloatToHalf;
}
}

REWIRE_FFI_API float __gnu_h2f_ieee(std::uint16_t half) __attribute__((ifunc("rewire_resolve_h2f")));
REWIRE_FFI_API std::uint16_t __gnu_f2h_ieee(float value) __attribute__((ifunc("rewire_resolve_f2h")));
#else
REWIRE_FFI_API float __gnu_h2f_ieee(std::uint16_t half) { return HalfToFloat(half); }
REWIRE_FFI_API std::uint16_t __gnu_f2h_ieee(float value) { return FloatToHalf(value); }
#endif

}  // namespace rewire::ffi_shim
