// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::compiler {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// The node's name, or the name of its first output if it has none.
std::string NodeName(const onnx::NodeProto& node);
// "Conv 'conv1'", or by its first output when it has no name.
std::string NodeText(const onnx::NodeProto& node);

// Sorts the nodes so that each comes after those whose outputs it reads, also inside its subgraphs. Otherwise
// keeps their order. `defined` tells which names exist without these nodes. Errors: kInvalidFile for an
// undefined name, a name defined twice, or a cycle.
Result<std::vector<const onnx::NodeProto*>> OrderNodes(
    const NodeList& nodes, const std::function<bool(const std::string&)>& defined);

// The nodes of such an order without which one of these values cannot be computed.
std::vector<const onnx::NodeProto*> NodesFor(const std::vector<std::string>& values,
                                             const std::vector<const onnx::NodeProto*>& order);

}  // namespace rewire::compiler
