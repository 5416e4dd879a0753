// SPDX-License-Identifier: Apache-2.0
//
// Rows of elementwise kernels (rewire_embedded.h), and the macros that make one of an expression:
//
//   REWIRE_EMBEDDED_ROW_2(my_chain, float, float, float, rewire_embedded_Tanh(rewire_embedded_Mul(a, b)))
//
// defines the row my_chain of two inputs of floats, whose elements the expression names a and b. The types
// are those of the inputs, then the output's; bool is uint8_t. Steps of rewire.fused are the functions of
// functions.h, named as in kernels/contract/fused_operations.h. A chain of several steps is a
// function:
//
//   static float chain(float x0, float x1) {
//     const float r0 = rewire_embedded_Mul(x0, x1);
//     const float r1 = rewire_embedded_Add(r0, 0.5F);
//     return rewire_embedded_Tanh(r1);
//   }
//   REWIRE_EMBEDDED_ROW_2(static_row, float, float, float, chain(a, b))
#ifndef REWIRE_EMBEDDED_ROWS_H_
#define REWIRE_EMBEDDED_ROWS_H_

#include "rewire/kernels/embedded/functions.h"
#include "rewire/kernels/embedded/rewire_embedded.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REWIRE_EMBEDDED_ROW(name) \
  void name(int32_t count, const void* const* x, const int32_t* steps, void* out)

#define REWIRE_EMBEDDED_ROW_1(name, A, T, ...)   \
  REWIRE_EMBEDDED_ROW(name) {                    \
    const A* x0 = (const A*)x[0];                \
    T* to = (T*)out;                             \
    for (; count > 0; --count, x0 += steps[0]) { \
      const A a = *x0;                           \
      *to++ = (T)(__VA_ARGS__);                  \
    }                                            \
  }
#define REWIRE_EMBEDDED_ROW_2(name, A, B, T, ...)                \
  REWIRE_EMBEDDED_ROW(name) {                                    \
    const A* x0 = (const A*)x[0];                                \
    const B* x1 = (const B*)x[1];                                \
    T* to = (T*)out;                                             \
    for (; count > 0; --count, x0 += steps[0], x1 += steps[1]) { \
      const A a = *x0;                                           \
      const B b = *x1;                                           \
      *to++ = (T)(__VA_ARGS__);                                  \
    }                                                            \
  }
#define REWIRE_EMBEDDED_ROW_3(name, A, B, C, T, ...)                             \
  REWIRE_EMBEDDED_ROW(name) {                                                    \
    const A* x0 = (const A*)x[0];                                                \
    const B* x1 = (const B*)x[1];                                                \
    const C* x2 = (const C*)x[2];                                                \
    T* to = (T*)out;                                                             \
    for (; count > 0; --count, x0 += steps[0], x1 += steps[1], x2 += steps[2]) { \
      const A a = *x0;                                                           \
      const B b = *x1;                                                           \
      const C c = *x2;                                                           \
      *to++ = (T)(__VA_ARGS__);                                                  \
    }                                                                            \
  }

// The rows of this library, as LIST(kernel, function): rewire.kernel on f32 is rewire_embedded_kernel_f32. An
// attribute of a kernel is one more input, in the order of its row in docs/kernels.md, a number with step 0.
#define REWIRE_EMBEDDED_ROWS_OF_ONE(ROW) \
  ROW(neg, Neg)                          \
  ROW(abs, Abs)                          \
  ROW(sign, Sign)                        \
  ROW(relu, Relu)                        \
  ROW(sigmoid, Sigmoid)                  \
  ROW(softplus, Softplus)                \
  ROW(softsign, Softsign)                \
  ROW(reciprocal, Reciprocal)            \
  ROW(round, Round)                      \
  ROW(floor, Floor)                      \
  ROW(ceil, Ceil)                        \
  ROW(sqrt, Sqrt)                        \
  ROW(exp, Exp)                          \
  ROW(log, Log)                          \
  ROW(sin, Sin)                          \
  ROW(cos, Cos)                          \
  ROW(tanh, Tanh)                        \
  ROW(erf, Erf)                          \
  ROW(mish, Mish)                        \
  ROW(swish, Swish)                      \
  ROW(hard_swish, HardSwish)             \
  ROW(gelu, Gelu)                        \
  ROW(gelu_tanh, GeluTanh)
#define REWIRE_EMBEDDED_ROWS_OF_TWO(ROW) \
  ROW(add, Add)                          \
  ROW(sub, Sub)                          \
  ROW(mul, Mul)                          \
  ROW(div, Div)                          \
  ROW(min, Min)                          \
  ROW(max, Max)                          \
  ROW(at_least, AtLeast)                 \
  ROW(at_most, AtMost)                   \
  ROW(prelu, PRelu)                      \
  ROW(leaky_relu, PRelu)                 \
  ROW(elu, Elu)                          \
  ROW(celu, Celu)                        \
  ROW(thresholded_relu, ThresholdedRelu)
#define REWIRE_EMBEDDED_ROWS_OF_THREE(ROW) \
  ROW(clip, Clip)                          \
  ROW(hard_sigmoid, HardSigmoid)           \
  ROW(shrink, Shrink)
// Comparisons give bool.
#define REWIRE_EMBEDDED_COMPARISONS(ROW) \
  ROW(equal, a == b)                     \
  ROW(not_equal, a != b)                 \
  ROW(less, a < b)                       \
  ROW(less_equal, a <= b)                \
  ROW(greater, a > b)                    \
  ROW(greater_equal, a >= b)

#define REWIRE_EMBEDDED_DECLARE(kernel, function) REWIRE_EMBEDDED_ROW(rewire_embedded_##kernel##_f32);
REWIRE_EMBEDDED_ROWS_OF_ONE(REWIRE_EMBEDDED_DECLARE)
REWIRE_EMBEDDED_ROWS_OF_TWO(REWIRE_EMBEDDED_DECLARE)
REWIRE_EMBEDDED_ROWS_OF_THREE(REWIRE_EMBEDDED_DECLARE)
REWIRE_EMBEDDED_COMPARISONS(REWIRE_EMBEDDED_DECLARE)
#undef REWIRE_EMBEDDED_DECLARE

// rewire.where on elements of 1, 4 and 8 bytes; rewire.and, or, xor, not on bool.
REWIRE_EMBEDDED_ROW(rewire_embedded_where_1);
REWIRE_EMBEDDED_ROW(rewire_embedded_where_4);
REWIRE_EMBEDDED_ROW(rewire_embedded_where_8);
REWIRE_EMBEDDED_ROW(rewire_embedded_and);
REWIRE_EMBEDDED_ROW(rewire_embedded_or);
REWIRE_EMBEDDED_ROW(rewire_embedded_xor);
REWIRE_EMBEDDED_ROW(rewire_embedded_not);

#ifdef __cplusplus
}
#endif

#endif  // REWIRE_EMBEDDED_ROWS_H_
