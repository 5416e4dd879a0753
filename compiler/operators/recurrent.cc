// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM: one kernel each, over all steps.
#include "rewire/compiler/operators/registry.h"

namespace rewire::compiler {
namespace {

Attributes RecurrentAttributes(const Op& op) {
  Attributes attributes = {{"direction", op.String("direction", "forward")}, {"layout", op.Int("layout", 0)}};
  for (const char* name : {"hidden_size", "linear_before_reset", "input_forget"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Int(name, 0)});
  }
  if (op.HasAttribute("clip")) attributes.push_back({"clip", op.Float("clip", 0)});
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.FloatList(name)});
  }
  std::string activations;
  for (const std::string& name : op.StringList("activations"))
    activations += (activations.empty() ? "" : ",") + name;
  if (!activations.empty()) attributes.push_back({"activations", activations});
  return attributes;
}

Status LowerRecurrent(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const Shape& r = op.in(2)->type.dims;
  if (x->type.rank() != 3 || r.size() != 3)
    return op.Invalid("x {} and r {}, expected rank 3", ShapeText(x->type.dims), ShapeText(r));
  const bool batch_first = op.Int("layout", 0) != 0;
  const DimExpr steps = x->type.dims[batch_first ? 1 : 0], batch = x->type.dims[batch_first ? 0 : 1];
  const DimExpr &directions = r[0], &hidden = r[2];
  const DLDataType dtype = x->type.dtype;
  const Type state =
      TensorOf(dtype, batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden});
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = op.Arguments(0, op.type() == "LSTM" ? 7 : 5);
  call.attributes = RecurrentAttributes(op);
  call.outputs = {TensorOf(dtype, batch_first ? Shape{batch, steps, directions, hidden}
                                              : Shape{steps, directions, batch, hidden}),
                  state};
  if (op.type() == "LSTM") call.outputs.push_back(state);
  if (!op.Wants(0)) call.outputs[0] = TensorOf(dtype, {0});
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  return {};
}

}  // namespace

std::span<const Operator> RecurrentOperators() {
  static constexpr Operator kOperators[] = {
      {"GRU", 7, 0, 3, 6,
       "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset",
       LowerRecurrent, "rewire.gru"},
      {"LSTM", 7, 0, 3, 8,
       "activation_alpha activation_beta activations clip direction hidden_size input_forget layout",
       LowerRecurrent, "rewire.lstm"},
      {"RNN", 7, 0, 3, 6, "activation_alpha activation_beta activations clip direction hidden_size layout",
       LowerRecurrent, "rewire.rnn"},
  };
  return kOperators;
}

}  // namespace rewire::compiler
