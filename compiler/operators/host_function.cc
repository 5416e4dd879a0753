// SPDX-License-Identifier: Apache-2.0
//
// Nodes of the domain rewire.host call functions of the host: `token` is the packed function host.token. It
// is called with the inputs, then the outputs, which have the types of the inputs. What the function does is
// not known, so equal calls are not merged. As with any node, a call is left out if nothing uses its outputs.
#include "rewire/compiler/operators/host_function.h"

namespace rewire::compiler {
namespace {

Status LowerHostFunction(Op& op, const Operator& /*row*/) {
  if (op.outputs() < 1 || op.outputs() > op.inputs())
    return op.Invalid("it has {} outputs, expected one at least, and at most one for each of its {} inputs",
                      op.outputs(), op.inputs());
  Op::KernelCall call;
  call.kernel = "host." + op.type();
  for (int i = 0; i < op.inputs(); ++i) call.inputs.push_back(op.in(i));
  for (int i = 0; i < op.outputs(); ++i) call.outputs.push_back(op.in(i)->type);
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  return {};
}

}  // namespace

const Operator& HostFunction() {
  static constexpr Operator kRow = {"", 1, 0, 1, 32, "", LowerHostFunction};
  return kRow;
}

}  // namespace rewire::compiler
