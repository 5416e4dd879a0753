// SPDX-License-Identifier: Apache-2.0
//
// Reads the elements of a TensorProto, which lie in the model or in a file beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

// The folders in which external data may lie.
struct ExternalData {
  std::string folder;                // the model's; empty: there is no external data
  std::vector<std::string> allowed;  // where symbolic links in `folder` may lead, too
  // The folder in which the model itself lies, after links are followed: hubs keep the files of a model as
  // links to one folder. Empty: the same.
  std::string real_folder;
  // Receives the location of each file that is read; null: not noted.
  std::shared_ptr<std::set<std::string>> read = nullptr;
  // Files in memory by their location, which go before those in folders. Bytes without an owner are copied.
  std::map<std::string, SharedBytes> files = {};
};

// Returns the canonical path of the file that `location` names. Errors: as below.
Result<std::string> ExternalPath(const std::string& location, const ExternalData& external);

// `owner` keeps the proto alive, because raw data is used in place. External data is mapped. It must be named
// by a path in the model's folder. After links are followed, it must lie there, in the folder of the model
// itself, or in an allowed one.
//
// Errors: kInvalidFile if sizes do not match the shape or a path leaves the folder. kNotFound if the file is
// missing. kUnsupported for strings and unknown types.
Result<HostTensor> ReadTensorProto(const onnx::TensorProto& proto, const ExternalData& external,
                                   const std::shared_ptr<const void>& owner);

// The tensor with all its elements, which take at most *bytes. What they take is subtracted. A few bytes of a
// model may stand for many.
//
// Errors: as above. kInvalidFile if an index is outside the shape. kUnsupported if it would take more bytes.
Result<HostTensor> ReadSparseTensorProto(const onnx::SparseTensorProto& proto, const ExternalData& external,
                                         const std::shared_ptr<const void>& owner, std::uint64_t* bytes);

// Bytes of the graph's weights, in the model and in the files beside it. Each byte counts once, even if
// several tensors share it.
std::uint64_t WeightBytes(const onnx::GraphProto& graph);

}  // namespace rewire::compiler
