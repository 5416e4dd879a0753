// SPDX-License-Identifier: Apache-2.0
//
// The texts in the schemas of a host's operators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/base/status.h"
#include "rewire/compiler/operator_schema.h"

namespace rewire::compiler {

inline constexpr char kOpenSize[] = "?";
// The dtype of tensors of strings, which are three arguments of a kernel.
inline constexpr char kStringDType[] = "string";

// The name in "rest...", which stands for any number of dimensions.
std::optional<std::string> RestName(const std::string& dim);
std::optional<std::int64_t> NumberOf(const std::string& text);
// A dtype that values of a model can have: "f32", "float32".
std::optional<DLDataType> OnnxDTypeOf(const std::string& name);

// Errors: kInvalidArgument for a schema that no node can fit.
Status CheckSchema(const OperatorSchema& schema);

}  // namespace rewire::compiler
