// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/import/onnx_proto.h"

namespace rewire::compiler {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Its name, or its first output's when it has none.
std::string NodeName(const onnx::NodeProto& node);
// "Conv 'conv1'", or by its first output when it has no name.
std::string NodeText(const onnx::NodeProto& node);

// The nodes so that each stands after those whose outputs it reads, inside its subgraphs too; otherwise in
// the order given. `defined` says which names exist without them. kInvalidFile: a name that nothing defines,
// a name defined twice, a cycle.
Result<std::vector<const onnx::NodeProto*>> OrderNodes(
    const NodeList& nodes, const std::function<bool(const std::string&)>& defined);

}  // namespace rewire::compiler
