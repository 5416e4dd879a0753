// SPDX-License-Identifier: Apache-2.0
// A kernel that goes element by element writes over an input that nothing reads afterwards: no memory to take
// and less for the caches to hold.
#include <algorithm>
#include <string_view>

#include "compiler/passes/edit.h"
#include "compiler/passes/lives.h"
#include "compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

// The stock kernels of which docs/kernels.md says that their output may be an input of the same elements.
constexpr std::string_view kAnyInput[] = {
    "abs",        "acos",     "acosh",   "add",     "and",    "asin",         "asinh",
    "atan",       "atanh",    "bit_and", "bit_not", "bit_or", "bit_xor",      "bit_shift",
    "ceil",       "celu",     "clip",    "cos",     "cosh",   "div",          "elu",
    "erf",        "exp",      "floor",   "fmod",    "gelu",   "hard_sigmoid", "hard_swish",
    "leaky_relu", "log",      "max",     "min",     "mish",   "mod",          "mul",
    "neg",        "not",      "or",      "pow",     "prelu",  "reciprocal",   "relu",
    "round",      "selu",     "shrink",  "sigmoid", "sign",   "sin",          "sinh",
    "softplus",   "softsign", "sqrt",    "sub",     "tan",    "tanh",         "thresholded_relu",
    "where",      "xor"};
// Those where that is the first input alone.
constexpr std::string_view kFirstInput[] = {"batch_norm", "group_norm", "layer_norm", "log_softmax",
                                            "softmax"};

// How many of the node's inputs its output may lie over.
std::size_t Candidates(const Node& node) {
  constexpr std::string_view kStock = "rewire.";
  if (node.kind != NodeKind::kKernel || node.returns || node.outputs.size() != 1) return 0;
  std::string_view name = node.kernel;
  if (name.substr(0, kStock.size()) != kStock) return 0;
  name.remove_prefix(kStock.size());
  const auto is_in = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (is_in(kAnyInput)) return node.inputs.size();
  return is_in(kFirstInput) ? 1 : 0;
}

// Whether both are allocated, and the same.
bool SameMemory(const Value& value, const Node& node) {
  const Node* maker = value.producer;
  if (maker == nullptr || maker->kind != NodeKind::kKernel || maker->returns) return false;
  const auto output = std::find(maker->outputs.begin(), maker->outputs.end(), &value);
  const Node::Extent& made = maker->extents[static_cast<std::size_t>(output - maker->outputs.begin())];
  const Node::Extent& wanted = node.extents[0];
  return made.shape == nullptr && wanted.shape == nullptr && made.dims == wanted.dims &&
         value.type.dtype == node.outputs[0]->type.dtype;
}

}  // namespace

void WriteInPlace(Graph* graph) {
  const Lives lives(*graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      const std::size_t candidates = Candidates(*node);
      for (std::size_t i = 0; i < candidates && !node->in_place; ++i) {
        const Value* input = node->inputs[i];
        if (input == nullptr || !SameMemory(*input, *node)) continue;
        if (!lives.DiesAt(input, node) || lives.IsKept(input) || lives.IsShared(input)) continue;
        node->in_place = static_cast<std::uint32_t>(i);
      }
    }
  });
}

}  // namespace rewire::compiler
