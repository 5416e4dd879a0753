// SPDX-License-Identifier: Apache-2.0
//
// Makes subnormal weights of products 0. Training with weight decay leaves some channels with nothing but
// such weights, and Intel's CPUs take 150 cycles for a product of one. So a layer with a few of them takes
// ten times as long. What a sum loses by this is less than 1.2e-38 times what the weight would multiply.
// Biases and other terms stay: they are no factors, and a sum of nothing else would lose all of its digits.
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/factors.h"

namespace rewire::compiler {
namespace {

constexpr float kLeastNormal = std::numeric_limits<float>::min();
constexpr float kLeastLargest = 0x1p-40F;  // next to which subnormal weights are nothing

class TinyWeights {
 public:
  explicit TinyWeights(Graph* graph) : graph_(*graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (node->kind != NodeKind::kKernel) continue;
        const names::InputRange factors = names::FactorsOf(node->kernel);
        for (std::size_t i = 0; i < factors.count && factors.first + i < node->inputs.size(); ++i) {
          Value*& factor = node->inputs[factors.first + i];
          factor = Without(factor, *node);
        }
      }
    });
  }

 private:
  // The value, or one without subnormal weights if it is a constant that has some.
  Value* Without(Value* value, const Node& node) {
    const float* floats = value == nullptr ? nullptr : FloatsOf(value);
    if (floats == nullptr) return value;
    const auto [at, is_new] = made_.try_emplace(value, value);
    if (!is_new) return at->second;
    const std::size_t count = value->constant->bytes.view.size() / sizeof(float);
    float largest = 0;
    std::size_t subnormal = 0;
    for (std::size_t i = 0; i < count; ++i) {
      largest = std::fmax(largest, std::fabs(floats[i]));
      subnormal += IsSubnormal(floats[i]) ? 1 : 0;
    }
    if (subnormal == 0 || largest < kLeastLargest) return value;
    std::vector<float> elements(floats, floats + count);
    for (float& element : elements) {
      if (IsSubnormal(element)) element = 0;
    }
    at->second = NewFloats(&graph_, value->name, value->constant->shape, elements);
    graph_.zeroed_weights.push_back({value->name, node.source, subnormal});
    return at->second;
  }
  static bool IsSubnormal(float x) { return std::fabs(x) < kLeastNormal && x != 0; }

  Graph& graph_;
  std::unordered_map<const Value*, Value*> made_;  // weights may be shared
};

}  // namespace

void DropTinyWeights(Graph* graph) { TinyWeights(graph).Run(); }

}  // namespace rewire::compiler
