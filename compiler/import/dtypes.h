// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"

namespace rewire::compiler {

// The element type that a TensorProto.DataType stands for; nothing for strings and for types this compiler
// does not know.
std::optional<DLDataType> DTypeOfOnnx(std::int32_t data_type);
// "STRING", "FLOAT8E4M3FN", "data type 99": for messages.
std::string OnnxTypeName(std::int32_t data_type);

}  // namespace rewire::compiler
