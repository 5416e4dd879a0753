// SPDX-License-Identifier: Apache-2.0
// What the operations of a FusedProgram compute of vectors of floats; included as vector_functions-inl.h is.
// They do what the stock kernels of the same names do, also for NaN and infinities.
#if defined(REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_
#undef REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_
#else
#define REWIRE_KERNELS_CPU_FUSED_FUNCTIONS_
#endif

#include <cmath>

#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

// 1 where the mask is set, else 0.
template <class D, class M>
HWY_INLINE hn::Vec<D> Truth(D d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0F));
}

// x held in [low, high]. NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V HeldIn(D d, V x, float low, float high) {
  const V least = hn::Set(d, low), most = hn::Set(d, high);
  const V raised = hn::IfThenElse(hn::Lt(x, least), least, x);
  return hn::IfThenElse(hn::And(hn::Gt(x, most), hn::Ge(x, least)), most, raised);
}

// A product that is rounded before something is added to it, as in the stock kernels. g++ would make one
// operation of both.
template <class V>
HWY_INLINE V Rounded(V product) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_TARGET != HWY_SCALAR && \
    HWY_TARGET != HWY_EMU128
  asm("" : "+v"(product.raw));
#endif
  return product;
}

// Highway's sine and cosine are exact for moderate x; others are rare and go to the standard library.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V OfModerate(D d, V x, V (*vector)(D, V), float (*scalar)(float)) {
  const V result = vector(d, x);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 30000.0F))))) return result;
  HWY_ALIGN float elements[hn::MaxLanes(D())];
  hn::Store(x, d, elements);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) elements[i] = scalar(elements[i]);
  return hn::Load(d, elements);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V VectorSin(D d, V x) {
  return hn::Sin(d, x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V VectorCos(D d, V x) {
  return hn::Cos(d, x);
}

#define REWIRE_FUNCTION_OF_ONE(name, ...)     \
  struct name##Of1 {                          \
    template <class D, class V = hn::Vec<D>>  \
    HWY_INLINE V operator()(D d, V x) const { \
      static_cast<void>(d);                   \
      return __VA_ARGS__;                     \
    }                                         \
  };
#define REWIRE_FUNCTION_OF_TWO(name, ...)          \
  struct name##Of2 {                               \
    template <class D, class V = hn::Vec<D>>       \
    HWY_INLINE V operator()(D d, V a, V b) const { \
      static_cast<void>(d);                        \
      return __VA_ARGS__;                          \
    }                                              \
  };

REWIRE_FUNCTION_OF_TWO(Add, hn::Add(a, b))
REWIRE_FUNCTION_OF_TWO(Sub, hn::Sub(a, b))
REWIRE_FUNCTION_OF_TWO(Mul, hn::Mul(a, b))
REWIRE_FUNCTION_OF_TWO(Div, hn::Div(a, b))
REWIRE_FUNCTION_OF_TWO(Min, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b))
REWIRE_FUNCTION_OF_TWO(Max, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b))
REWIRE_FUNCTION_OF_TWO(PRelu, hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a))
REWIRE_FUNCTION_OF_TWO(Equal, Truth(d, hn::Eq(a, b)))
REWIRE_FUNCTION_OF_TWO(NotEqual, Truth(d, hn::Not(hn::Eq(a, b))))  // Highway's Ne is false for NaN
REWIRE_FUNCTION_OF_TWO(Less, Truth(d, hn::Lt(a, b)))
REWIRE_FUNCTION_OF_TWO(LessEqual, Truth(d, hn::Le(a, b)))
REWIRE_FUNCTION_OF_TWO(And, Truth(d, hn::Not(hn::Or(hn::Eq(a, hn::Zero(d)), hn::Eq(b, hn::Zero(d))))))
REWIRE_FUNCTION_OF_TWO(Or, Truth(d, hn::Not(hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, hn::Zero(d))))))

REWIRE_FUNCTION_OF_ONE(Not, Truth(d, hn::Eq(x, hn::Zero(d))))
REWIRE_FUNCTION_OF_ONE(Neg, hn::Neg(x))
REWIRE_FUNCTION_OF_ONE(Abs, hn::Abs(x))
REWIRE_FUNCTION_OF_ONE(Sign, hn::IfThenElse(hn::IsNaN(x), x,
                                            hn::Sub(Truth(d, hn::Gt(x, hn::Zero(d))),
                                                    Truth(d, hn::Lt(x, hn::Zero(d))))))
REWIRE_FUNCTION_OF_ONE(Relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))
REWIRE_FUNCTION_OF_ONE(Reciprocal, hn::Div(hn::Set(d, 1.0F), x))
REWIRE_FUNCTION_OF_ONE(Round, hn::Round(x))
REWIRE_FUNCTION_OF_ONE(Floor, hn::Floor(x))
REWIRE_FUNCTION_OF_ONE(Ceil, hn::Ceil(x))
REWIRE_FUNCTION_OF_ONE(Sqrt, hn::Sqrt(x))
REWIRE_FUNCTION_OF_ONE(Exp, ExpOf(d, x))
REWIRE_FUNCTION_OF_ONE(Log, LogOf(d, x))
REWIRE_FUNCTION_OF_ONE(Sin, OfModerate(d, x, &VectorSin<D>, &std::sin))
REWIRE_FUNCTION_OF_ONE(Cos, OfModerate(d, x, &VectorCos<D>, &std::cos))
REWIRE_FUNCTION_OF_ONE(Tanh, TanhOf(d, x))
REWIRE_FUNCTION_OF_ONE(Erf, ErfOf(d, x))
REWIRE_FUNCTION_OF_ONE(Sigmoid, SigmoidOf(d, x))
REWIRE_FUNCTION_OF_ONE(Softsign, hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Abs(x))))
REWIRE_FUNCTION_OF_ONE(HardSwish,
                       hn::Mul(x, HeldIn(d, hn::Add(hn::Div(x, hn::Set(d, 6.0F)), hn::Set(d, 0.5F)), 0, 1)))
REWIRE_FUNCTION_OF_ONE(Swish, SwishOf(d, x))
REWIRE_FUNCTION_OF_ONE(Gelu, GeluOf(d, x))

#undef REWIRE_FUNCTION_OF_ONE
#undef REWIRE_FUNCTION_OF_TWO

// log(1 + exp(x)) without overflow.
struct SoftplusOf1 {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    const V tail = hn::Log1p(d, ExpOf(d, hn::Neg(hn::Abs(x))));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(hn::Max(x, hn::Zero(d)), tail));
  }
};

// x tanh(log(1 + p)) with p = exp(x), which is x (p^2 + 2p) / (p^2 + 2p + 2): x itself in floats from 20 on.
struct MishOf1 {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    const V power = ExpOf(d, hn::Min(x, hn::Set(d, 20.0F)));
    const V square = hn::MulAdd(power, power, hn::Add(power, power));
    const V gated = hn::Mul(x, hn::Div(square, hn::Add(square, hn::Set(d, 2.0F))));
    return hn::IfThenElse(hn::Lt(x, hn::Set(d, 20.0F)), gated, x);
  }
};

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
struct GeluTanhOf1 {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    const V half = hn::Mul(x, hn::Set(d, 0.5F));
    const V factor = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.79788456F * 0.044715F), hn::Set(d, 0.79788456F));
    return hn::MulAdd(half, TanhOf(d, hn::Mul(x, factor)), half);
  }
};

struct EluOf1 {
  float alpha;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    const V below = hn::Max(hn::Min(x, hn::Zero(d)), hn::Set(d, -100.0F));
    const V low = hn::Mul(hn::Set(d, alpha), hn::Expm1(d, below));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), low, x);
  }
};

struct ClipOf1 {
  float low, high;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return HeldIn(d, x, low, high);
  }
};

struct HardSigmoidOf1 {
  float alpha, beta;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return HeldIn(d, hn::Add(Rounded(hn::Mul(x, hn::Set(d, alpha))), hn::Set(d, beta)), 0, 1);
  }
};

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
