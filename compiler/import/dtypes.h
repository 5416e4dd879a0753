// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewire/base/dtype.h"

namespace rewire::compiler {

// The dtype of a TensorProto.DataType. nullopt for strings and unknown types.
std::optional<DLDataType> DTypeOfOnnx(std::int32_t data_type);
// "STRING", "FLOAT8E4M3FN", "data type 99": for messages.
std::string OnnxTypeName(std::int32_t data_type);
// True for floats of 8 and 4 bits and integers of 4 and 2. Kernels move and convert them, and compute with
// none. ONNX packs those of less than 8 bits; here each has a byte.
bool IsNarrow(DLDataType dtype);

}  // namespace rewire::compiler
