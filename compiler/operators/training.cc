// SPDX-License-Identifier: Apache-2.0
//
// Steps of optimizers. Inputs are learning rate and step number, then the tensors, their gradients and their
// states, each kind together. Each tensor becomes one kernel call.
#include "rewire/kernels/contract/training.h"
#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {
namespace {

Status LowerStep(Op& op, const Operator& row) {
  const int states = op.type() == "Adam" ? 2 : 1;
  const int kinds = 2 + states;
  if ((op.inputs() - 2) % kinds != 0) return op.Invalid("{} inputs do not go up", op.inputs());
  const int tensors = (op.inputs() - 2) / kinds;
  Attributes attributes;
  for (const char* name :
       {"decay_factor", "epsilon", "norm_coefficient", "norm_coefficient_post", "alpha", "beta"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Float(name, 0)});
  }
  if (op.HasAttribute("mode")) attributes.push_back({"mode", op.String("mode", "standard")});
  for (int i = 0; i < tensors; ++i) {
    Op::KernelCall call;
    call.kernel = row.kernel;
    call.attributes = attributes;
    call.inputs = {op.in(0), op.in(1)};
    for (int kind = 0; kind < kinds; ++kind) {
      Value* input = op.in(2 + kind * tensors + i);
      if (input == nullptr) return op.Invalid("input {} is missing", 2 + kind * tensors + i);
      call.inputs.push_back(input);
      if (kind != 1) call.outputs.push_back(input->type);
    }
    const std::vector<Value*> outputs = op.Call(std::move(call));
    for (std::size_t k = 0; k < outputs.size(); ++k) op.Set(static_cast<int>(k) * tensors + i, outputs[k]);
  }
  return {};
}

}  // namespace

std::span<const Operator> TrainingOperators() {
  static constexpr Operator kOperators[] = {
      {"Adagrad", 1, 0, 5, kAnyNumber, "decay_factor epsilon norm_coefficient", LowerStep, names::kAdagrad},
      {"Adam", 1, 0, 6, kAnyNumber, "alpha beta epsilon norm_coefficient norm_coefficient_post", LowerStep,
       names::kAdam},
      {"Momentum", 1, 0, 5, kAnyNumber, "alpha beta mode norm_coefficient", LowerStep, names::kMomentum},
  };
  return kOperators;
}

}  // namespace rewire::compiler
