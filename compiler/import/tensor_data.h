// SPDX-License-Identifier: Apache-2.0
// Elements of a TensorProto, inside the model or in a file beside it.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "compiler/import/onnx_proto.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

// `owner` keeps the proto alive: raw data is used where it lies. External data is mapped, and must lie in
// `folder` or below it, links followed; an empty folder refuses it. kInvalidFile: sizes that do not fit the
// shape, a path that leads out. kNotFound: the file is missing. kUnsupported: strings, unknown types.
Result<HostTensor> ReadTensorProto(const onnx::TensorProto& proto, const std::string& folder,
                                   const std::shared_ptr<const void>& owner);

}  // namespace rewire::compiler
