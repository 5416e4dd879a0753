// SPDX-License-Identifier: Apache-2.0
// Operators that others extend: what a fused operator computes before its activation.
#pragma once

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// A constant of f32 times the factor, which becomes 1, if that is a power of two: then nothing is rounded
// otherwise. Other values and factors stay.
Value* TakeFactor(Op& op, Value* x, double* factor);
// numpy's matmul.
Result<Value*> MatMulOf(Op& op, Value* a, Value* b);
// Gemm of inputs 0 to 2, by the node's attributes alpha, beta, transA and transB.
Result<Value*> GemmOf(Op& op);
// Conv of inputs 0 to 2, by the node's attributes.
Result<Value*> ConvOf(Op& op);
// x over the root of its mean square along the axes from `axis` on, times the scale.
Value* RmsNormOf(Op& op, Value* x, Value* scale, int axis, double epsilon);

}  // namespace rewire::compiler
