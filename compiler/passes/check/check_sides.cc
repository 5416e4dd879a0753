// SPDX-License-Identifier: Apache-2.0
//
// Whether each node reads and gives values on the side, host or device, where it works with them.
#include <string>

#include "rewire/compiler/ir/call_arguments.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/check/checks.h"
#include "rewire/kernels/contract/names.h"

namespace rewire::compiler {
namespace {

class SidesCheck {
 public:
  explicit SidesCheck(const Graph& graph) : graph_(graph) {}

  Status Run() const {
    for (const std::vector<Value*>* list : {&graph_.main.parameters, &graph_.main.results}) {
      for (const Value* value : *list) {
        if (Status ok = On(nullptr, value, false); !ok) return ok;
      }
    }
    const auto visit = [this](const Node& node) { return CheckNode(node); };
    if (Status ok = ForEachNode(graph_.init, visit); !ok) return ok;
    return ForEachNode(graph_.main, visit);
  }

 private:
  static const char* Name(bool device) { return device ? "a value on the device" : "a value on the host"; }

  Status On(const Node* node, const Value* value, bool device) const {
    if (value == nullptr || value->on_device == device) return {};
    return Broken(node, value, Name(device),
                  graph_.device ? Name(!device) : "one on a device, which the program has none of");
  }

  Status CheckNode(const Node& node) const {
    for (const Node::Extent& extent : node.extents) {
      if (Status ok = On(&node, extent.shape, false); !ok) return ok;
    }
    switch (node.kind) {
      case NodeKind::kKernel:
        return CheckCall(node);
      case NodeKind::kReshape:
        return On(&node, node.outputs[0], node.inputs[0]->on_device);
      case NodeKind::kDeviceCopy:
        return On(&node, node.outputs[0], !node.inputs[0]->on_device);
      case NodeKind::kShapeOf:
      case NodeKind::kDims:
        return On(&node, node.outputs[0], false);
      case NodeKind::kMakeAdt:
      case NodeKind::kField:
        for (const std::vector<Value*>* list : {&node.inputs, &node.outputs}) {
          for (const Value* value : *list) {
            if (Status ok = On(&node, value, false); !ok) return ok;
          }
        }
        return {};
      case NodeKind::kIf:
        return CheckIf(node);
      case NodeKind::kLoop:
        return CheckLoop(node);
    }
    return {};
  }

  Status CheckCall(const Node& node) const {
    const bool device = names::IsOnDevice(node.kernel);
    for (const Value* output : node.outputs) {
      if (Status ok = On(&node, output, device); !ok) return ok;
    }
    const RewireKernelRow* row = device ? graph_.kernels->Row(node.kernel) : nullptr;
    if (row == nullptr) {
      for (const Value* input : node.inputs) {
        if (Status ok = On(&node, input, device); !ok) return ok;
      }
      return {};
    }
    Status checked;
    CallSide(*row, false, node.inputs.size())
        .ForEach([&](const RewireKernelArgument& argument, std::size_t i) {
          if (checked) checked = On(&node, node.inputs[i], (argument.flags & REWIRE_ARGUMENT_ON_HOST) == 0);
        });
    return checked;
  }

  Status CheckIf(const Node& node) const {
    for (const Block& branch : node.blocks) {
      for (std::size_t i = 0; i < branch.results.size(); ++i) {
        if (Status ok = On(&node, branch.results[i], node.outputs[i]->on_device); !ok) return ok;
      }
    }
    return On(&node, node.inputs[0], false);
  }

  Status CheckLoop(const Node& node) const {
    const Block& body = node.blocks[0];
    for (const Value* number : {node.inputs[0], node.inputs[1], body.parameters[0], body.results[0]}) {
      if (Status ok = On(&node, number, false); !ok) return ok;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      for (const Value* value : {node.inputs[i + 2], body.parameters[i + 1], body.results[i + 1]}) {
        if (Status ok = On(&node, value, node.outputs[i]->on_device); !ok) return ok;
      }
    }
    return {};
  }

  const Graph& graph_;
};

}  // namespace

Status CheckSides(const Graph& graph) { return SidesCheck(graph).Run(); }

}  // namespace rewire::compiler
