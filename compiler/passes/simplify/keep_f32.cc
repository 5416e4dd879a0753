// SPDX-License-Identifier: Apache-2.0
//
// A kernel without 16-bit floats is called in f32, with casts around it (lower/call_casts.h). This pass
// leaves out the casts between such kernels, and has the kernels between them compute in f32, too. So a model
// of 16-bit floats runs like one of f32, with the same fused kernels, and rounds only where a tensor of 16
// bits is needed: at inputs, results, loops, and kernels that stay with 16 bits.
//
// Its results are not those of rounding after each operator, but closer to the exact ones. A cast to 16 bits
// that the model asks for is kept: it may be there for its rounding.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/call_arguments.h"
#include "rewire/compiler/ir/half.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

bool HasHalves(const Value* value) {
  return value != nullptr && value->type.IsTensor() && IsHalf(value->type.dtype);
}

class KeepingF32 {
 public:
  explicit KeepingF32(Graph* graph) : graph_(*graph) {}

  void Run() {
    RunBlock(&graph_.main);
    graph_.MoveSymbols(moved_);
    RemoveDeadCode(&graph_);  // casts that nothing reads any more
  }

 private:
  void RunBlock(Block* block) {
    const std::size_t outer = casts_.size();
    std::vector<Node*> nodes;
    nodes.swap(block->nodes);
    for (Node* node : nodes) {
      for (Value*& input : node->inputs) input = Representative(input);
      for (Node::Extent& extent : node->extents) extent.shape = Representative(extent.shape);
      for (Block& inner : node->blocks) RunBlock(&inner);
      if (Replaces(*node)) continue;
      const bool wide = Widens(*node);
      if (wide) WidenInputs(node, block);
      block->nodes.push_back(node);
      if (wide) {
        NarrowOutputs(node, block);
      } else {
        Learn(*node);
      }
    }
    for (Value*& result : block->results) result = Representative(result);
    // Casts of an inner block do not reach the nodes behind it.
    for (; casts_.size() > outer; casts_.pop_back()) wide_.erase(casts_.back());
  }

  Value* Representative(Value* value) const {
    const auto found = moved_.find(value);
    return found == moved_.end() || found->second->type.dtype != value->type.dtype ? value : found->second;
  }

  // A value of the same numbers in f32, or null.
  Value* Wide(const Value* half) const {
    const auto found = wide_.find(half);
    return found == wide_.end() ? nullptr : found->second;
  }

  // A cast to f32 of a value that there is in f32 already.
  bool Replaces(const Node& node) {
    if (node.kernel != names::kCast || node.kind != NodeKind::kKernel) return false;
    if (!HasHalves(node.inputs[0]) || node.outputs[0]->type.dtype != kFloat32) return false;
    Value* wide = Wide(node.inputs[0]);
    if (wide == nullptr) return false;
    moved_[node.outputs[0]] = wide;
    return true;
  }

  // Remembers what a cast that was added says about a value.
  void Learn(const Node& node) {
    if (node.kernel != names::kCast || node.kind != NodeKind::kKernel) return;
    Value* from = node.inputs[0];
    Value* to = node.outputs[0];
    if (HasHalves(from) && to->type.dtype == kFloat32) {
      Remember(from, to, false);
    } else if (node.added && HasHalves(to) && from->type.dtype == kFloat32) {
      Remember(to, from, true);
    }
  }

  void Remember(const Value* half, Value* wide, bool rounded) {
    if (!wide_.try_emplace(half, wide).second) return;
    casts_.push_back(half);
    if (rounded) rounded_[half] = true;
  }

  // True if the value was computed in f32 and then rounded.
  bool IsRounded(const Value* value) const { return rounded_.count(value) != 0 && Wide(value) != nullptr; }

  // True if the node shall compute in f32: it reads a rounded value, and its row allows f32 for all that has
  // 16 bits. A kernel that moves elements of several tensors does so only if all of them are there in f32.
  bool Widens(const Node& node) const {
    // A cast of a value of unknown rank would need its shape.
    const auto unranked = [](const Value* value) { return HasHalves(value) && !value->type.ranked; };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), unranked)) return false;
    if (std::any_of(node.outputs.begin(), node.outputs.end(), unranked)) return false;
    if (node.kind == NodeKind::kReshape) return HasHalves(node.inputs[0]) && IsRounded(node.inputs[0]);
    if (node.kind != NodeKind::kKernel || node.returns || node.kernel == names::kCast) return false;
    if ((node.flags & kKernelObjects) != 0 || graph_.kernels == nullptr) return false;
    const RewireKernelRow* row = graph_.kernels->Row(node.kernel);
    if (row == nullptr || row->arguments == nullptr) return false;
    std::size_t rounded = 0, others = 0, written = 0;
    bool fits = true;
    CallSide(*row, false, node.inputs.size())
        .ForEach([&](const RewireKernelArgument& argument, std::size_t i) {
          const Value* value = node.inputs[i];
          if (!HasHalves(value)) return;
          fits = fits && Accepts(argument, kFloat32);
          ++(IsRounded(value) ? rounded : others);
          if (value->IsConstant()) --others;
        });
    CallSide(*row, true, node.outputs.size())
        .ForEach([&](const RewireKernelArgument& argument, std::size_t i) {
          if (!HasHalves(node.outputs[i])) return;
          fits = fits && Accepts(argument, kFloat32);
          ++written;
        });
    const bool elementwise = (row->traits & REWIRE_KERNEL_ELEMENTWISE) != 0;
    return fits && written > 0 && rounded > 0 && (elementwise || others == 0);
  }

  void WidenInputs(Node* node, Block* block) {
    for (Value*& input : node->inputs) {
      if (!HasHalves(input)) continue;
      Value* wide = Wide(input);
      if (wide == nullptr) {
        wide = input->IsConstant() ? WideConstant(input) : Cast(input, kFloat32, node->source, block);
        Remember(input, wide, false);
      }
      input = wide;
    }
  }

  void NarrowOutputs(Node* node, Block* block) {
    for (Value*& output : node->outputs) {
      if (!HasHalves(output)) continue;
      Value* half = output;
      output = graph_.NewValue(half->name, half->type);
      output->type.dtype = kFloat32;
      output->model_name = half->model_name;
      output->producer = node;
      moved_[half] = output;  // its symbols
      AddCast(output, half, node->source, block);
      Remember(half, output, true);
    }
  }

  Value* Cast(Value* from, DLDataType dtype, const std::string& source, Block* block) {
    Value* to = graph_.NewValue(from->name, from->type);
    to->type.dtype = dtype;
    AddCast(from, to, source, block);
    return to;
  }

  void AddCast(Value* from, Value* to, const std::string& source, Block* block) {
    Node* cast = graph_.NewNode(NodeKind::kKernel);
    cast->kernel = names::kCast;
    cast->added = true;
    cast->inputs = {from};
    cast->outputs = {to};
    cast->extents.push_back({to->type.dims, nullptr});
    cast->source = source;
    to->producer = cast;
    block->nodes.push_back(cast);
  }

  Value* WideConstant(Value* half) {
    if (half->at_load) return FoldedAtLoad(&graph_, names::kCast, {half}, half->constant->shape);
    return NewWidened(&graph_, half);
  }

  Graph& graph_;
  std::unordered_map<const Value*, Value*> wide_;   // of 16 bits, and the same in f32
  std::unordered_map<const Value*, bool> rounded_;  // those that are computed in f32
  std::vector<const Value*> casts_;                 // keys of wide_, in order
  std::unordered_map<const Value*, Value*> moved_;  // outputs, and what has taken their place
};

}  // namespace

void KeepF32(Graph* graph) { KeepingF32(graph).Run(); }

}  // namespace rewire::compiler
