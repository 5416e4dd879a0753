// SPDX-License-Identifier: Apache-2.0
//
// A depthwise convolution and the product that alone reads it, a convolution by windows of one position,
// become one kernel. It hands over what lies between in parts, so that this is never in memory as a whole.
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/convolution.h"

namespace rewire::compiler {
namespace {

class SeparableFusing {
 public:
  explicit SeparableFusing(Graph* graph) : graph_(*graph), edit_(graph) {
    for (const auto& [name, source] : graph->symbols()) measured_.insert(source.value);
  }

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (!IsProduct(*node)) continue;
        Node* depthwise = node->inputs[0]->producer;
        if (depthwise != nullptr && CanFuse(*depthwise, node)) Fuse(depthwise, node);
      }
    });
    edit_.Finish();
  }

 private:
  // The most channels that the kernel takes.
  static constexpr std::int64_t kMostChannels = 4096;
  // The kernel reads all weights for each part, which takes longer where these fill the second cache.
  static constexpr std::int64_t kMostWeights = 131072;

  static bool IsFloat32(const Value& value) { return value.type.dtype == kFloat32; }

  static bool IsProduct(const Node& node) {
    if (node.kind != NodeKind::kKernel || node.kernel != names::kPackedConv) return false;
    const std::optional<std::int64_t> weights = ProductOf(node.inputs[1]->type.dims).constant();
    const bool fits = IsFloat32(*node.inputs[1]) || node.inputs[1]->type.dtype == kFloat16;
    return fits && weights && *weights <= kMostWeights && AreAll(node, "kernel_shape", 1) &&
           AreAll(node, "strides", 1) && AreAll(node, "pads", 0);
  }

  bool CanFuse(const Node& node, const Node* product) const {
    if (node.kind != NodeKind::kKernel || node.kernel != names::kPackedDepthwise) return false;
    const Value* between = node.outputs[0];
    return edit_.OnlyUser(between) == product && !measured_.contains(between) && IsFloat32(*between) &&
           IntAttribute(node, "multiplier", 1) == 1 && IntAttribute(node, "channels", 1) <= kMostChannels;
  }

  void Fuse(Node* depthwise, Node* product) {
    std::vector<Value*> inputs = depthwise->inputs;
    if (inputs.size() < 3) inputs.push_back(NewFloats(&graph_, "none", {0}, {}));
    inputs.insert(inputs.end(), product->inputs.begin() + 1, product->inputs.end());
    std::vector<Attribute> attributes;
    for (const Attribute& attribute : product->attributes) {
      if (!IsOfWindow(attribute.name)) attributes.push_back(attribute);
    }
    for (const Attribute& attribute : depthwise->attributes) {
      if (attribute.name == "channels" || attribute.name == "multiplier") continue;
      const std::string prefix = IsOfWindow(attribute.name) ? "" : "depthwise_";
      attributes.push_back({prefix + attribute.name, attribute.value});
    }
    product->kernel = names::kPackedSeparable;
    product->inputs = std::move(inputs);
    product->attributes = std::move(attributes);
    product->source = JoinNotes(depthwise->source, product->source);
    edit_.Erase(depthwise);
  }

  static bool IsOfWindow(const std::string& name) {
    return name == "kernel_shape" || name == "strides" || name == "dilations" || name == "pads" ||
           name == "auto_pad";
  }

  Graph& graph_;
  Edit edit_;
  std::unordered_set<const Value*> measured_;  // of which symbols are dimensions
};

}  // namespace

void FuseSeparable(Graph* graph) { SeparableFusing(graph).Run(); }

}  // namespace rewire::compiler
