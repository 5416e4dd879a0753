// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewire/base/dtype.h"

namespace rewire::compiler {

// The dtype of a TensorProto.DataType. nullopt for strings and unknown types.
std::optional<DLDataType> DTypeOfOnnx(std::int32_t data_type);
// Whether a TensorProto can have this dtype.
bool IsOnnxDType(DLDataType dtype);
// "STRING", "FLOAT8E4M3FN", "data type 99": for messages.
std::string OnnxTypeName(std::int32_t data_type);

}  // namespace rewire::compiler
