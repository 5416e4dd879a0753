// SPDX-License-Identifier: Apache-2.0
// safetensors files: a JSON header, then the tensors' bytes without gaps.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire {

// All tensors, in the order of their bytes. The file is mapped, and stays so while a tensor uses it; only a
// tensor that lies misaligned is copied. Errors name the file: kNotFound, kIo; kInvalidFile: the header is no
// such JSON, or its ranges overlap, leave gaps, pass the end or do not fit dtype and shape; kUnsupported: a
// dtype that DLPack has not.
Result<std::vector<NamedTensor>> ReadSafetensors(const std::string& path);

// The same from bytes, which the tensors share. Errors name no file.
Result<std::vector<NamedTensor>> ParseSafetensors(const SharedBytes& bytes);

// The format's name for a dtype; empty when it has none.
std::string_view SafetensorsDType(DLDataType dtype);

// The key of the header that names no tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// Wide elements first, so that all are aligned. The file is whole or absent. kInvalidArgument: a name twice
// or not UTF-8, or bytes that do not fit the shape; kUnsupported: a dtype without a name; kIo.
Status WriteSafetensors(const std::string& path, Span<const NamedTensor> tensors);

}  // namespace rewire
