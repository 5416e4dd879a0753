// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on small integer tensors whose elements are known as expressions. So a Reshape knows what Shape,
// Gather, Mul and Concat have computed for it.
#pragma once

#include <string>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Sets the elements of `result` to `a op b`, for equal lengths or a scalar. Supports Add, Sub, Mul, Equal
// where the answer is known, and Div where rounding down equals rounding towards zero (by a positive
// constant, since dimensions are not negative).
void PropagateBinary(const std::string& op_type, const Value* a, const Value* b, Value* result);
// Sets the elements of `result` to those of `a` with the other sign.
void PropagateNegation(const Value* a, Value* result);
// Sets the elements of `result`: those of `a` where `condition` is not 0, otherwise those of `b`. All have
// one length.
void PropagateWhere(const Value* condition, const Value* a, const Value* b, Value* result);

}  // namespace rewire::compiler
