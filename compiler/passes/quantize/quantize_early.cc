// SPDX-License-Identifier: Apache-2.0
//
// Moves QuantizeLinear before nodes that only move elements, select them or take the largest of them. These
// then work on bytes, a quarter of the memory, and pack-integers lets the product write the bytes.
//
// The bytes stay the same. Division by a positive scale, rounding, and clamping are monotone functions, and
// the maximum of a monotone function's values is its value at the maximum. A window that lies outside of the
// image gives the lowest float, and that becomes the lowest byte. NaN alone has no order. So the pass takes
// sums of integers, cast to floats, times and plus constants, and bytes that were dequantized by a finite
// scale, and passes a maximum only where all constants are known to be finite: then there is no NaN. Bytes
// between two scales are looked up afterwards (map-bytes).
//
// A pool has fewer outputs than inputs, so quantization before it is more work by itself. The condition on
// sums sees to that as well: it names what a packed product does together with the quantization.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/movement.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

// A value of f32 that only the next node reads, by what it holds.
enum class Holding : std::uint8_t { kSums, kActivated, kMoved };
struct Held {
  Holding holding;
  bool never_nan;
};

// The inputs [first, last) whose elements are those of the node's output. None for other nodes.
struct MovedRange {
  std::size_t first, last;
  bool IsEmpty() const { return first == last; }
};
MovedRange MovedBy(const Node& node) {
  if (node.kind == NodeKind::kKernel && node.kernel == names::kWhere) return {1, node.inputs.size()};
  return {0, MovedInputs(node)};
}

bool AreFinite(const Value* value) {
  const float* elements = FloatsOf(value);
  return elements != nullptr &&
         std::all_of(elements, elements + value->constant->bytes.view.size() / sizeof(float),
                     [](float element) { return std::isfinite(element); });
}

class Early {
 public:
  explicit Early(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> quantizing;
      for (Node* node : block->nodes) {
        Judge(*node);
        if (node->kernel == names::kQuantizeLinear && holds_.contains(node->inputs[0]) && IsPlain(*node) &&
            QuantizationOf(*node)) {
          quantizing.push_back(node);
        }
      }
      for (Node* node : quantizing) Hoist(block, node);
    });
  }

 private:
  static bool IsPlain(const Node& node) {
    return node.outputs.size() == 1 && node.extents.size() == 1 && node.extents[0].shape == nullptr &&
           !node.returns;
  }

  // Whether this is such a value that `user` alone reads.
  bool IsHeld(const Value* value, const Node& user) const {
    return value != nullptr && holds_.contains(value) && edit_.OnlyUser(value) == &user;
  }

  bool IsSums(const Value* value, const Node& user) const {
    return IsHeld(value, user) && holds_.at(value).holding == Holding::kSums;
  }

  // Whether `user` alone reads these integers, and they are the sums of a product, perhaps plus constants.
  bool AreSums(const Value* value, const Node& user) const {
    const Node* maker = value->producer;
    if (maker == nullptr || maker->kind != NodeKind::kKernel || edit_.OnlyUser(value) != &user) return false;
    if (maker->kernel == names::kConvInteger || maker->kernel == names::kMatMulInteger) return true;
    return maker->kernel == names::kAdd && maker->inputs[1]->IsConstant() &&
           AreSums(maker->inputs[0], *maker);
  }

  // Notes what the node's output holds.
  void Judge(const Node& node) {
    const Value* output = node.outputs.empty() ? nullptr : node.outputs[0];
    if (output == nullptr || node.outputs.size() != 1 || !(output->type.dtype == kFloat32)) return;
    if (const MovedRange moved = MovedBy(node); !moved.IsEmpty()) {
      if (!HasExtent(node)) return;
      bool never_nan = true;
      for (std::size_t i = moved.first; i < moved.last; ++i) {
        if (!IsHeld(node.inputs[i], node)) return;
        never_nan = never_nan && holds_.at(node.inputs[i]).never_nan;
      }
      if (never_nan || node.kernel != names::kMaxPool)
        holds_.emplace(output, Held{Holding::kMoved, never_nan});
      return;
    }
    if (node.kind != NodeKind::kKernel || !IsPlain(node)) return;
    if (node.kernel == names::kDequantizeLinear) {
      const std::optional<Quantization> by = QuantizationOf(node);
      if (by && std::isfinite(by->scale)) holds_.emplace(output, Held{Holding::kSums, true});
    } else if (node.kernel == names::kCast) {
      if (AreSums(node.inputs[0], node)) holds_.emplace(output, Held{Holding::kSums, true});
    } else if (node.kernel == names::kMul || node.kernel == names::kAdd) {
      const std::size_t sums = node.inputs[0]->IsConstant() ? 1 : 0;
      const Value* constant = node.inputs[1 - sums];
      if (constant->IsConstant() && IsSums(node.inputs[sums], node)) {
        const bool never_nan = holds_.at(node.inputs[sums]).never_nan && AreFinite(constant);
        holds_.emplace(output, Held{Holding::kSums, never_nan});
      }
    } else if (node.kernel == names::kRelu || node.kernel == names::kClip) {
      if (node.inputs.size() == 1 && IsSums(node.inputs[0], node))
        holds_.emplace(output, Held{Holding::kActivated, holds_.at(node.inputs[0]).never_nan});
    }
  }

  // Whether the node says how large its output is. A reshape has no extent where its type does.
  static bool HasExtent(const Node& node) { return node.kind == NodeKind::kReshape || IsPlain(node); }

  // Moves the node before all nodes that moved its input.
  void Hoist(Block* block, Node* first) {
    if (!IsHeld(first->inputs[0], *first)) return;
    std::vector<Node*> waiting = {first};
    while (!waiting.empty()) {
      Node* quantize = waiting.back();
      waiting.pop_back();
      const Value* floats = quantize->inputs[0];
      if (holds_.at(floats).holding != Holding::kMoved) continue;
      for (Node* each : Exchange(block, floats->producer, quantize)) waiting.push_back(each);
    }
  }

  // `move` takes bytes, and gives those that `quantize` gave. Returns the nodes that quantize its inputs.
  std::vector<Node*> Exchange(Block* block, Node* move, Node* quantize) {
    Value* bytes = quantize->outputs[0];
    graph_.MoveSymbols({{move->outputs[0], bytes}});
    std::vector<Node*> made;
    const MovedRange moved = MovedBy(*move);
    for (std::size_t i = moved.first; i < moved.last; ++i) {
      Value* floats = move->inputs[i];
      Node* node = graph_.NewNode(NodeKind::kKernel);
      node->kernel = quantize->kernel;
      node->attributes = quantize->attributes;
      node->source = quantize->source;
      node->inputs = quantize->inputs;
      node->inputs[0] = floats;
      node->extents.push_back({floats->type.dims, nullptr});
      Value* stored = graph_.NewValue(floats->name, TensorOf(bytes->type.dtype, floats->type.dims));
      stored->producer = node;
      node->outputs.push_back(stored);
      move->inputs[i] = stored;
      made.push_back(node);
    }
    move->outputs[0] = bytes;
    bytes->producer = move;
    std::erase(block->nodes, quantize);
    block->nodes.insert(std::find(block->nodes.begin(), block->nodes.end(), move), made.begin(), made.end());
    return made;
  }

  Graph& graph_;
  const Edit edit_;
  std::unordered_map<const Value*, Held> holds_;
};

}  // namespace

void QuantizeEarly(Graph* graph) { Early(graph).Run(); }

}  // namespace rewire::compiler
