// SPDX-License-Identifier: Apache-2.0
// Arithmetic on small integer tensors whose elements are known as expressions: how a Reshape comes to know
// what Shape, Gather, Mul and Concat have computed for it.
#pragma once

#include <string>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// `result` holds `a op b` of equal lengths, or with a scalar. Add, Sub, Mul, Div where rounding down is
// rounding towards zero (by a positive constant, as dimensions are not negative), and Equal, which is 0 or 1
// where it can be told.
void PropagateBinary(const std::string& op_type, const Value* a, const Value* b, Value* result);
// `result` holds the elements of `a` where `condition` does not hold 0, of `b` otherwise; all of one length.
void PropagateWhere(const Value* condition, const Value* a, const Value* b, Value* result);

}  // namespace rewire::compiler
