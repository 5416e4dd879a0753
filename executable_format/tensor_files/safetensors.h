// SPDX-License-Identifier: Apache-2.0
// safetensors files: a JSON header, then the tensors' bytes without gaps.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire {

// Reads all tensors in the order of their bytes. The file is mapped and stays so while a tensor uses it; only
// misaligned tensors are copied.
//
// Errors name the file: kNotFound, kIo. kInvalidFile if the header is no valid JSON, or if its ranges
// overlap, leave gaps, exceed the file, or do not match dtype and shape. kUnsupported for a dtype that DLPack
// does not have.
Result<std::vector<NamedTensor>> ReadSafetensors(const std::string& path);

// The same from bytes, which the tensors share. Errors name no file.
Result<std::vector<NamedTensor>> ParseSafetensors(const SharedBytes& bytes);

// The format's name for a dtype. Empty if it has none.
std::string_view SafetensorsDType(DLDataType dtype);

// The key of the header that names no tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// Writes the tensors, those with wide elements first, so that all are aligned. The file is complete or
// absent. Errors: kInvalidArgument if a name occurs twice or is not UTF-8, or if bytes do not match the
// shape; kUnsupported for a dtype without a name; kIo.
Status WriteSafetensors(const std::string& path, Span<const NamedTensor> tensors);

}  // namespace rewire
