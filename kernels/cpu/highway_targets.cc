// SPDX-License-Identifier: Apache-2.0
//
// Two functions of Highway's library that run-time dispatch needs, for the shared library of kernels. libhwy
// itself is not linked, because it measures a clock's resolution whenever it is loaded. That takes several
// milliseconds, more than the rest of loading a model.
#include <hwy/targets.h>

namespace hwy {

// The compilers' functions also check whether the operating system supports the registers.
int64_t SupportedTargets() {
#if HWY_ARCH_X86
  int64_t targets = HWY_ENABLED_BASELINE;
  const auto add = [&](int64_t target, bool supported) {
    if (supported) targets |= target;
    return supported;
  };
  const bool sse4 = __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0 &&
                    __builtin_cpu_supports("aes") != 0;
  if (!add(HWY_SSE4, sse4)) return targets;
  // CPUs with these features also have LZCNT and F16C, which Highway's AVX2 code uses. Not all compilers can
  // query those.
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  if (!add(HWY_AVX2, avx2)) return targets;
  add(HWY_AVX3, __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
                    __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                    __builtin_cpu_supports("avx512cd") != 0);
  return targets;
#else
  return HWY_ENABLED_BASELINE;
#endif
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
