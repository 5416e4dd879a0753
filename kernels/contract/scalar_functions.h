// SPDX-License-Identifier: Apache-2.0
//
// The functions of one element that elementwise kernels compute: the one definition that every form of them
// uses. The forms are numbers in C++ (kernels/cpu/math/scalar_forms.h), vectors of each instruction set
// (kernels/cpu/math/vector_functions-inl.h), which kernels, fused chains and the ends of products share, and
// device code (kernels/device/code/dialect.h). The text is C without types, because OpenCL C has no
// templates.
//
// A form expands a list with macros that make a function of a name, its operands and its formula. Formulas
// use the form's own words:
//
//   NUMBER(c)                            a constant
//   ADD SUB MUL DIV(a, b), NEG ABS(a)    integers wrap
//   PRODUCT(a, b)                        a product that is rounded before something is added to it
//   MUL_ADD(a, b, c)                     a * b + c, rounded once where that is faster
//   LESS(a, b), IS_NAN(a), EITHER(p, q)  truth values
//   SELECT(p, a, b)                      a where p holds, else b
//   AT_LEAST(x, low), AT_MOST(x, high)   the bound where x is beyond it, else x: also if either is NaN
//   EXP EXPM1 LOG1P TANH ERF(a)          functions of the form's library; EXPM1 where a is no NaN
//   CALL(Name, a, ...)                   another function of the lists
#ifndef REWIRE_KERNELS_CONTRACT_SCALAR_FUNCTIONS_H_
#define REWIRE_KERNELS_CONTRACT_SCALAR_FUNCTIONS_H_

// Functions of any numbers. Min and Max give NaN if either operand is NaN; Clip with swapped bounds gives
// `high`.
#define REWIRE_FUNCTIONS_OF_NUMBERS(OF_ONE, OF_TWO, OF_THREE)           \
  OF_TWO(AtLeast, x, low, AT_LEAST(x, low))                             \
  OF_TWO(AtMost, x, high, AT_MOST(x, high))                             \
  OF_THREE(Clip, x, low, high, AT_MOST(AT_LEAST(x, low), high))         \
  OF_TWO(Min, x, y, SELECT(EITHER(LESS(x, y), IS_NAN(x)), x, y))        \
  OF_TWO(Max, x, y, SELECT(EITHER(LESS(y, x), IS_NAN(x)), x, y))        \
  OF_ONE(Relu, x, AT_LEAST(x, NUMBER(0)))                               \
  OF_TWO(PRelu, x, slope, SELECT(LESS(x, NUMBER(0)), MUL(x, slope), x)) \
  OF_ONE(Neg, x, NEG(x))                                                \
  OF_ONE(Abs, x, ABS(x))                                                \
  OF_ONE(Sign, x,                                                       \
         SELECT(LESS(NUMBER(0), x), NUMBER(1),                          \
                SELECT(LESS(x, NUMBER(0)), NUMBER(-1), SELECT(IS_NAN(x), x, NUMBER(0)))))

// Functions of real numbers. LeakyRelu is PRelu. As ONNX has it, ThresholdedRelu and Shrink give 0 for NaN.
//
// Gelu is x / 2 (1 + erf(x / sqrt(2))), and GeluTanh is x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
//
// Mish is x tanh(log(1 + p)) with p = exp(x). That is x p (p + 2) / (p (p + 2) + 2), and x itself from 20 on.
// p is r squared, and x r comes first: so results that are small but normal do not become 0 with p.
#define REWIRE_FUNCTIONS_OF_REALS(OF_ONE, OF_TWO, OF_THREE)                                              \
  OF_ONE(Reciprocal, x, DIV(NUMBER(1), x))                                                               \
  OF_ONE(Softsign, x, DIV(x, ADD(NUMBER(1), ABS(x))))                                                    \
  OF_ONE(Sigmoid, x, DIV(NUMBER(1), ADD(NUMBER(1), EXP(NEG(x)))))                                        \
  OF_ONE(Swish, x, DIV(x, ADD(NUMBER(1), EXP(NEG(x)))))                                                  \
  OF_ONE(Softplus, x, ADD(AT_LEAST(x, NUMBER(0)), LOG1P(EXP(NEG(ABS(x))))))                              \
  OF_THREE(HardSigmoid, x, alpha, beta,                                                                  \
           AT_MOST(AT_LEAST(ADD(PRODUCT(alpha, x), beta), NUMBER(0)), NUMBER(1)))                        \
  OF_ONE(HardSwish, x, MUL(x, CALL(HardSigmoid, x, NUMBER(1.0 / 6), NUMBER(0.5))))                       \
  OF_TWO(ThresholdedRelu, x, alpha, SELECT(LESS(alpha, x), x, NUMBER(0)))                                \
  OF_THREE(Shrink, x, limit, bias,                                                                       \
           SELECT(LESS(x, NEG(limit)), ADD(x, bias), SELECT(LESS(limit, x), SUB(x, bias), NUMBER(0))))   \
  OF_TWO(Elu, x, alpha, SELECT(LESS(x, NUMBER(0)), MUL(alpha, EXPM1(x)), x))                             \
  OF_TWO(Celu, x, alpha, SELECT(LESS(x, NUMBER(0)), MUL(alpha, EXPM1(DIV(x, alpha))), x))                \
  OF_THREE(Selu, x, low, high, SELECT(LESS(x, NUMBER(0)), MUL(low, EXPM1(x)), MUL(high, x)))             \
  OF_ONE(Gelu, x, MUL(MUL(x, NUMBER(0.5)), ADD(NUMBER(1), ERF(MUL(x, NUMBER(0.70710678118654752440)))))) \
  OF_ONE(GeluTanh, x,                                                                                    \
         MUL(MUL(x, NUMBER(0.5)),                                                                        \
             ADD(NUMBER(1), TANH(MUL(x, MUL_ADD(MUL(x, x), NUMBER(0.79788456080286535588 * 0.044715),    \
                                                NUMBER(0.79788456080286535588)))))))                     \
  OF_TWO(MishOfRoot, x, r,                                                                               \
         MUL(MUL(x, r), DIV(MUL(r, MUL_ADD(r, r, NUMBER(2))),                                            \
                            MUL_ADD(MUL(r, r), MUL_ADD(r, r, NUMBER(2)), NUMBER(2)))))                   \
  OF_ONE(Mish, x,                                                                                        \
         SELECT(LESS(x, NUMBER(20)), CALL(MishOfRoot, x, EXP(MUL(AT_MOST(x, NUMBER(20)), NUMBER(0.5)))), x))

#endif  // REWIRE_KERNELS_CONTRACT_SCALAR_FUNCTIONS_H_
