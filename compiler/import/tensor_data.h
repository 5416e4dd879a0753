// SPDX-License-Identifier: Apache-2.0
//
// Reads the elements of a TensorProto, which lie in the model or in a file beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

// `owner` keeps the proto alive, because raw data is used in place. External data is mapped. It must lie in
// `folder` or below it, after links are followed; an empty `folder` refuses it.
//
// Errors: kInvalidFile if sizes do not match the shape or a path leaves the folder. kNotFound if the file is
// missing. kUnsupported for strings and unknown types.
Result<HostTensor> ReadTensorProto(const onnx::TensorProto& proto, const std::string& folder,
                                   const std::shared_ptr<const void>& owner);

// Bytes of the graph's weights, in the model and in the files beside it. Each byte counts once, even if
// several tensors share it.
std::uint64_t WeightBytes(const onnx::GraphProto& graph);

}  // namespace rewire::compiler
