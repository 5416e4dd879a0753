// SPDX-License-Identifier: Apache-2.0
#include "compiler/operators/known_elements.h"

#include "compiler/operators/op.h"

namespace rewire::compiler {

void PropagateBinary(const std::string& op_type, const Value* a, const Value* b, Value* result) {
  if (result->IsConstant() || IsFloat(result->type.dtype)) return;
  const std::optional<Shape> left = KnownElements(a), right = KnownElements(b);
  if (!left || !right) return;
  const std::size_t size = std::max(left->size(), right->size());
  const bool fits =
      (left->size() == size || left->size() == 1) && (right->size() == size || right->size() == 1);
  if (!fits || left->empty() || right->empty()) return;
  Shape elements;
  for (std::size_t i = 0; i < size; ++i) {
    const DimExpr& x = (*left)[left->size() == 1 ? 0 : i];
    const DimExpr& y = (*right)[right->size() == 1 ? 0 : i];
    if (op_type == "Add") {
      elements.push_back(x + y);
    } else if (op_type == "Sub") {
      elements.push_back(x - y);
    } else if (op_type == "Mul") {
      elements.push_back(x * y);
    } else if (op_type == "Div" && y.IsConstant() && *y.constant() > 0) {
      elements.push_back(DimExpr::FloorDiv(x, y));
    } else {
      return;
    }
  }
  result->elements = std::move(elements);
}

}  // namespace rewire::compiler
