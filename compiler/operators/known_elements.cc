// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/known_elements.h"

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {
namespace {

// Nothing where it depends on the dimensions.
std::optional<bool> AreEqual(const DimExpr& a, const DimExpr& b) {
  const Interval difference = (a - b).Bounds();
  if (difference.least > 0 || difference.most < 0) return false;
  if (difference.least == 0 && difference.most == 0) return true;
  return std::nullopt;
}

// x / y for y above 0. Operators cut towards 0, and FloorDiv rounds down.
DimExpr Quotient(const DimExpr& x, const DimExpr& y) {
  DimExpr floor = DimExpr::FloorDiv(x, y);
  if (x.Bounds().least >= 0) return floor;
  return DimExpr::Max(floor, DimExpr::Min(0, DimExpr::CeilDiv(x, y)));
}

}  // namespace

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
      elements.push_back(Quotient(x, y));
    } else if (const std::optional<bool> equal = op_type == "Equal" ? AreEqual(x, y) : std::nullopt) {
      elements.emplace_back(*equal ? 1 : 0);
    } else {
      return;
    }
  }
  SetElements(result, std::move(elements));
}

void PropagateNegation(const Value* a, Value* result) {
  if (result->IsConstant() || IsFloat(result->type.dtype)) return;
  std::optional<Shape> elements = KnownElements(a);
  if (!elements) return;
  for (DimExpr& element : *elements) element = element * DimExpr(-1);
  SetElements(result, *std::move(elements));
}

void PropagateWhere(const Value* condition, const Value* a, const Value* b, Value* result) {
  if (result->IsConstant() || IsFloat(result->type.dtype)) return;
  const std::optional<Ints> takes_a = KnownInts(condition);
  const std::optional<Shape> first = KnownElements(a), second = KnownElements(b);
  if (!takes_a || !first || !second || first->size() != takes_a->size() ||
      second->size() != takes_a->size()) {
    return;
  }
  Shape elements;
  for (std::size_t i = 0; i < takes_a->size(); ++i) {
    elements.push_back((*takes_a)[i] != 0 ? (*first)[i] : (*second)[i]);
  }
  SetElements(result, std::move(elements));
}

}  // namespace rewire::compiler
