// SPDX-License-Identifier: Apache-2.0
//
// Makes weights 0 that are too small to count. Training with weight decay leaves some channels with nothing
// but such weights. Numbers below 1.2e-38 are subnormal, and Intel's CPUs take 150 cycles for a product of
// one. So a layer with a few of them takes ten times as long.
#include <cmath>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

constexpr float kTiny = 0x1p-100F;         // products with numbers up to 1e8 do not reach 1e-22
constexpr float kLeastLargest = 0x1p-40F;  // next to which they are nothing

// With the bias that may stand behind it.
bool AddsProducts(const Node& node) {
  if (node.kind != NodeKind::kKernel) return false;
  for (const char* kernel : {"rewire.conv", "rewire.conv_transpose", "rewire.matmul", "rewire.gemm",
                             "rewire.lstm", "rewire.gru", "rewire.rnn", "rewire.add"}) {
    if (node.kernel == kernel) return true;
  }
  return false;
}

class TinyWeights {
 public:
  explicit TinyWeights(Graph* graph) : graph_(*graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (!AddsProducts(*node)) continue;
        for (Value*& input : node->inputs) input = Without(input);
      }
    });
  }

 private:
  // The value, or one without tiny weights if it is a constant that has some.
  Value* Without(Value* value) {
    const float* floats = value == nullptr ? nullptr : FloatsOf(value);
    if (floats == nullptr) return value;
    const auto [at, is_new] = made_.try_emplace(value, value);
    if (!is_new) return at->second;
    const std::size_t count = value->constant->bytes.view.size() / sizeof(float);
    float largest = 0;
    bool has_tiny = false;
    for (std::size_t i = 0; i < count; ++i) {
      const float size = std::fabs(floats[i]);
      largest = std::fmax(largest, size);
      has_tiny = has_tiny || IsTiny(size);
    }
    if (!has_tiny || largest < kLeastLargest) return value;
    std::vector<float> elements(floats, floats + count);
    for (float& element : elements) {
      if (IsTiny(std::fabs(element))) element = 0;
    }
    at->second = NewFloats(&graph_, value->name, value->constant->shape, elements);
    return at->second;
  }
  static bool IsTiny(float size) { return size < kTiny && size != 0; }

  Graph& graph_;
  std::unordered_map<const Value*, Value*> made_;  // weights may be shared
};

}  // namespace

void DropTinyWeights(Graph* graph) { TinyWeights(graph).Run(); }

}  // namespace rewire::compiler
