// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/runs/invoke.h"

#include <algorithm>

namespace rewire::onnxruntime_api {
namespace {

bool IsSameTensor(const TensorView& a, const TensorView& b) {
  return a.data() == b.data() && a.bytes() != 0 && a.dtype() == b.dtype() &&
         std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
}

Status BindAndInvoke(const Model& model, VirtualMachine& vm, const std::vector<Value>& inputs,
                     const std::vector<OutputBinding>& bindings, const std::vector<Donation>& donations) {
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    if (Status set = vm.TrySetInput(InputHandle{model.function(), i}, inputs[i]); !set) return set;
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const auto donation = std::find_if(donations.begin(), donations.end(),
                                       [&](const Donation& each) { return each.binding == i; });
    // A model that returns the input as another output, too, cannot take its memory: then there is a copy.
    if (donation != donations.end() &&
        vm.TryDonate(InputHandle{model.function(), donation->input}, bindings[i].output))
      continue;
    if (Status bound = vm.TrySetOutput(bindings[i].output, bindings[i].tensor); !bound) return bound;
  }
  return vm.TryInvoke(model.function());
}

}  // namespace

std::vector<Donation> DonationsOf(const std::vector<Value>& inputs,
                                  const std::vector<OutputBinding>& bindings) {
  std::vector<Donation> donations;
  for (std::size_t binding = 0; binding < bindings.size(); ++binding) {
    for (std::uint32_t input = 0; input < inputs.size(); ++input) {
      if (inputs[input].kind() != ValueKind::kTensor ||
          !IsSameTensor(inputs[input].tensor().view(), bindings[binding].tensor))
        continue;
      donations.push_back({input, binding});
      break;
    }
  }
  return donations;
}

Status Invoke(const Model& model, VirtualMachine& vm, const std::vector<Value>& inputs,
              const std::vector<OutputBinding>& bindings, const std::vector<Donation>& donations) {
  const std::string& name = model.program().executable().module().functions[model.function()].name;
  if (donations.empty())
    return vm.TryInvoke(name, Span<const Value>(inputs), Span<const OutputBinding>(bindings));
  Status ran = BindAndInvoke(model, vm, inputs, bindings, donations);
  // The VM is used again: nothing of this run may stay bound.
  const Status outputs = vm.TryClearOutputs(name);
  const Status cleared = vm.TryClearInputs(name);
  if (ran && !outputs) return outputs;
  if (ran && !cleared) return cleared;
  return ran;
}

}  // namespace rewire::onnxruntime_api
