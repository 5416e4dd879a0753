// SPDX-License-Identifier: Apache-2.0
//
// A node of the model as the attributes of a kernel: for operators of the host that read it themselves.
#pragma once

#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/operator_schema.h"

namespace rewire::compiler {

struct NodeOutput {
  Type type;
  bool strings = false;  // the type is that of the positions
};

// Adds the node's attributes that are not in the list, and "onnx.node", a text in JSON that
// docs/own-operators.md describes. Attributes that an executable cannot hold, tensors and lists of strings,
// are part of that text.
//
// Errors: kUnsupported for graphs, types, sparse tensors and strings that are no UTF-8; kInvalidFile.
Status AddNodeAttributes(Op& op, const OperatorSchema& schema, const std::vector<NodeOutput>& outputs,
                         Attributes* attributes);

}  // namespace rewire::compiler
