// SPDX-License-Identifier: Apache-2.0
//
// The rules of shapes (kernels/contract/shape.h) call these functions on sizes that are expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rewire/compiler/ir/dim_expr.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {

using ShapeSpan = std::span<const DimExpr>;

inline DimExpr Plus(const DimExpr& a, const DimExpr& b) { return a + b; }
inline DimExpr Times(const DimExpr& a, const DimExpr& b) { return a * b; }
inline bool IsSize(const DimExpr& size) { return !size.IsConstant() || contract::IsSize(*size.constant()); }
inline bool Is(const DimExpr& size, std::int64_t number) { return size.Is(number); }
// True if no run can give both the same size.
inline bool Differ(const DimExpr& a, const DimExpr& b) {
  if (a == b) return false;
  if (a.IsConstant() && b.IsConstant()) return true;
  const std::optional<std::int64_t> difference = (a - b).constant();
  return difference && *difference != 0;
}
inline bool CanBeOne(const DimExpr& size) { return !size.IsConstant() || size.Is(1); }
// Returns the one of two sizes that are equal in each run which says more: a number.
inline const DimExpr& KnownOf(const DimExpr& a, const DimExpr& b) { return b.IsConstant() ? b : a; }
inline DimExpr BroadcastSize(const DimExpr& a, const DimExpr& b) {
  // Decoders add rows of a table to as many tokens. A run whose only token lies behind the table would give
  // nothing; the kernel refuses its operands, and all other sizes stay simple.
  if (DimExpr::IsWindow(b, a)) return a;
  return DimExpr::IsWindow(a, b) ? b : DimExpr::Broadcast(a, b);
}

// Joins the parts of what a rule says of shapes that do not fit. A number is an expression, too.
inline void AppendPart(std::string* text, std::string_view part) { *text += part; }
inline void AppendPart(std::string* text, const DimExpr& size) { *text += size.text(); }
inline void AppendPart(std::string* text, ShapeSpan shape) {
  *text += ShapeText({shape.begin(), shape.end()});
}
inline void AppendPart(std::string* text, std::span<const std::int64_t> numbers) {
  *text += ShapeText({numbers.begin(), numbers.end()});
}
template <typename... Parts>
std::string RuleText(const Parts&... parts) {
  std::string text;
  (AppendPart(&text, parts), ...);
  return text;
}

}  // namespace rewire::compiler
