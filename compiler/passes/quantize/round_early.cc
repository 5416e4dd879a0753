// SPDX-License-Identifier: Apache-2.0
//
// Lets a kernel write bf16 where all kernels that read what it writes can read that. Half of the memory is
// then written and read. Products in bf16 would round it in any case, so results stay the same. Those that
// add it to their sums would not: they get a term with an error of 2^-9, as the factors of products have.
//
// In between may be kernels that only move elements, or take the largest of them: rounding never changes an
// order. So may elementwise kernels, which rewire.fused computes in f32 between bf16. They read bf16 only
// where they write it, so that what leads to an output and not to a product is computed in f32.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/elementwise_program.h"
#include "rewire/compiler/passes/match/movement.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

bool IsPackedProduct(const Node& node) {
  return node.kind == NodeKind::kKernel &&
         (node.kernel == names::kPackedConv || node.kernel == names::kPackedMatMul);
}

// The kernels that can write bf16.
bool CanRound(const Node& node) {
  if (IsFusible(node)) return true;
  return (IsPackedProduct(node) ||
          (node.kind == NodeKind::kKernel && node.kernel == names::kPackedDepthwise)) &&
         node.outputs.size() == 1 && node.extents.size() == 1;
}

// Whether the node can read this input as bf16. A product in bf16 reads whole pairs, and any product can add
// such a term.
bool ReadsRounded(const Node& node, std::size_t i) {
  // A repeated tensor, such as a slope for each channel, saves no time as bf16.
  if (IsFusible(node)) return ShapeText(node.inputs[i]->type.dims) == ShapeText(node.outputs[0]->type.dims);
  if (node.kind == NodeKind::kKernel && node.kernel == names::kReduceMean) return i == 0;
  if (!IsPackedProduct(node)) return false;
  if (i == 3) return true;
  const Shape& dims = node.inputs[i]->type.dims;
  return i == 0 && node.inputs[1]->type.dtype == kBFloat16 && !dims.empty() &&
         dims.back().constant().value_or(1) % 2 == 0;
}

class Rounding {
 public:
  explicit Rounding(Graph* graph) : graph_(*graph) {}

  void Run() {
    if (!graph_.bf16) return;
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Value* result : block->results) {
        if (result != nullptr) kept_.insert(result);
      }
      for (Node* node : block->nodes) {
        nodes_.push_back(node);
        for (const Node::Extent& extent : node->extents) {
          if (extent.shape != nullptr) kept_.insert(extent.shape);
        }
      }
    });
    for (const Node* node : nodes_) {
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        const Value* input = node->inputs[i];
        if (input != nullptr && !ReadsRounded(*node, i) && i >= MovedInputs(*node)) kept_.insert(input);
      }
      if (CanRound(*node) || MovedInputs(*node) > 0) made_.insert(node->outputs.begin(), node->outputs.end());
    }
    // All that a node moves stays in f32 if any of it must, and all that an elementwise one reads if its
    // output must.
    for (bool changed = true; changed;) {
      changed = false;
      for (const Node* node : nodes_) {
        if (IsFusible(*node) && !CanBecome(node->outputs[0])) {
          for (const Value* input : node->inputs) changed = kept_.insert(input).second || changed;
        }
        const std::size_t moved = MovedInputs(*node);
        if (moved == 0) continue;
        std::vector<const Value*> values(node->inputs.begin(),
                                         node->inputs.begin() + static_cast<std::ptrdiff_t>(moved));
        values.insert(values.end(), node->outputs.begin(), node->outputs.end());
        if (std::all_of(values.begin(), values.end(), [&](const Value* value) { return CanBecome(value); }))
          continue;
        for (const Value* value : values)
          changed = (value != nullptr && kept_.insert(value).second) || changed;
      }
    }
    for (const Node* node : nodes_) {
      if (!CanRound(*node) && MovedInputs(*node) == 0) continue;
      for (Value* output : node->outputs) {
        if (output != nullptr && CanBecome(output)) Round(output);
      }
    }
  }

 private:
  bool CanBecome(const Value* value) const {
    return value != nullptr && made_.contains(value) && !kept_.contains(value) &&
           value->type.dtype == kFloat32 && !value->type.dims.empty();
  }

  static void Round(Value* value) {
    value->type.dtype = kBFloat16;
    // The model has no such value.
    value->model_name.clear();
  }

  Graph& graph_;
  std::vector<Node*> nodes_;
  std::unordered_set<const Value*> kept_;  // what something reads in f32
  std::unordered_set<const Value*> made_;  // what can be written in bf16
};

}  // namespace

void RoundEarly(Graph* graph) { Rounding(graph).Run(); }

}  // namespace rewire::compiler
