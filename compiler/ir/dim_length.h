// SPDX-License-Identifier: Apache-2.0
//
// Limits the length of expressions of dimensions.
//
// The normal form of a product of sums has every product of their terms. So a few operations of a model could
// make an expression of any length. An expression whose text would be longer than kMostDimText becomes "too
// long": a symbol with a special name that no shape uses. Everything computed from it is too long as well.
// Code that allocates or computes with dimensions calls IsTooLong and refuses them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rewire/compiler/ir/dim_expr.h"

namespace rewire::compiler {

inline constexpr std::size_t kMostDimText = 1024;  // bytes
// No dimension of a model has this name.
inline constexpr const char kTooLong[] = "?";

inline bool IsTooLong(const DimExpr& dim) { return dim.text() == kTooLong; }
inline bool IsTooLong(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const DimExpr& dim) { return IsTooLong(dim); });
}

}  // namespace rewire::compiler
