// SPDX-License-Identifier: Apache-2.0
// Operations of a FusedProgram that are not in kernels/contract/scalar_functions.h, on vectors of floats;
// included as vector_functions-inl.h is. They do what the stock kernels of the same names do, also for NaN
// and infinities.
#if defined(REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_
#undef REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_
#else
#define REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_
#endif

#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

// 1 where the mask is set, else 0.
template <class D, class M>
HWY_INLINE hn::Vec<D> Truth(D d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0F));
}

#define REWIRE_FUNCTION_OF_ONE(name, ...)                      \
  struct name##OfVector {                                      \
    template <class D, class V = hn::Vec<D>>                   \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x) const { \
      return __VA_ARGS__;                                      \
    }                                                          \
  };
#define REWIRE_FUNCTION_OF_TWO(name, ...)                           \
  struct name##OfVectors {                                          \
    template <class D, class V = hn::Vec<D>>                        \
    HWY_INLINE V operator()([[maybe_unused]] D d, V a, V b) const { \
      return __VA_ARGS__;                                           \
    }                                                               \
  };

REWIRE_FUNCTION_OF_TWO(Add, hn::Add(a, b))
REWIRE_FUNCTION_OF_TWO(Sub, hn::Sub(a, b))
REWIRE_FUNCTION_OF_TWO(Mul, hn::Mul(a, b))
REWIRE_FUNCTION_OF_TWO(Div, hn::Div(a, b))
REWIRE_FUNCTION_OF_TWO(Equal, Truth(d, hn::Eq(a, b)))
REWIRE_FUNCTION_OF_TWO(NotEqual, Truth(d, hn::Not(hn::Eq(a, b))))  // Highway's Ne is false for NaN
REWIRE_FUNCTION_OF_TWO(Less, Truth(d, hn::Lt(a, b)))
REWIRE_FUNCTION_OF_TWO(LessEqual, Truth(d, hn::Le(a, b)))
REWIRE_FUNCTION_OF_TWO(And, Truth(d, hn::Not(hn::Or(hn::Eq(a, hn::Zero(d)), hn::Eq(b, hn::Zero(d))))))
REWIRE_FUNCTION_OF_TWO(Or, Truth(d, hn::Not(hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, hn::Zero(d))))))

REWIRE_FUNCTION_OF_ONE(Not, Truth(d, hn::Eq(x, hn::Zero(d))))
REWIRE_FUNCTION_OF_ONE(Round, RoundOf(d, x))
REWIRE_FUNCTION_OF_ONE(Floor, FloorOf(d, x))
REWIRE_FUNCTION_OF_ONE(Ceil, CeilOf(d, x))
REWIRE_FUNCTION_OF_ONE(Sqrt, hn::Sqrt(x))
REWIRE_FUNCTION_OF_ONE(Exp, ExpOf(d, x))
REWIRE_FUNCTION_OF_ONE(Log, LogOf(d, x))
REWIRE_FUNCTION_OF_ONE(Sin, SinOf(d, x))
REWIRE_FUNCTION_OF_ONE(Cos, CosOf(d, x))
REWIRE_FUNCTION_OF_ONE(Erf, ErfOf(d, x))

#undef REWIRE_FUNCTION_OF_ONE
#undef REWIRE_FUNCTION_OF_TWO

struct DequantizeOfVector {
  float scale, zero;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(hn::Sub(x, hn::Set(d, zero)), hn::Set(d, scale));
  }
};
struct QuantizeOfVector {
  float scale, zero;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Add(RoundOf(d, hn::Div(x, hn::Set(d, scale))), hn::Set(d, zero));
  }
};

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
