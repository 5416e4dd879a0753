// SPDX-License-Identifier: Apache-2.0
//
// Reads dimensions from text: "2*N + ceil(M / stride)". It takes what DimExpr::text gives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/dim_expr.h"

namespace rewire::compiler {

// The meaning of a name, or of a name with an index: `N`, `pads[0]`, `x[-1]`. nullopt: it has none.
using DimOfName =
    std::function<std::optional<DimExpr>(const std::string& name, std::optional<std::int64_t> index)>;

// An expression has integers, names, + - * ( ), floor(a / b), ceil(a / b), max(a, b), min(a, b) and
// broadcast(a, b). Errors: kInvalidArgument with the place.
Result<DimExpr> ParseDimExpr(std::string_view text, const DimOfName& of_name);

}  // namespace rewire::compiler
