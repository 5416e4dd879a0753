// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/implied_ranks.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {
namespace {

constexpr int kUnknown = -1, kContradiction = -2;

const onnx::AttributeProto* AttributeOf(const onnx::NodeProto& node, std::string_view name) {
  const auto found = std::find_if(node.attribute().begin(), node.attribute().end(),
                                  [&](const onnx::AttributeProto& each) { return each.name() == name; });
  return found == node.attribute().end() ? nullptr : &*found;
}
int SizeOf(const onnx::AttributeProto* attribute) {
  return attribute == nullptr ? kUnknown : attribute->ints_size();
}

class Ranks {
 public:
  explicit Ranks(const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) weights_.emplace(tensor.name(), &tensor);
    // From the last node to the first, so that what follows a node is known.
    for (int i = graph.node_size() - 1; i >= 0; --i) Visit(graph.node(i));
    std::erase_if(ranks_, [](const auto& rank) { return rank.second < 0; });
  }
  std::map<std::string, int> Take() { return std::move(ranks_); }

 private:
  const onnx::TensorProto* Weight(const onnx::NodeProto& node, int input) const {
    const auto found = input < node.input_size() ? weights_.find(node.input(input)) : weights_.end();
    return found == weights_.end() ? nullptr : found->second;
  }
  int WeightRank(const onnx::NodeProto& node, int input) const {
    const onnx::TensorProto* weight = Weight(node, input);
    return weight == nullptr ? kUnknown : weight->dims_size();
  }

  void Imply(const onnx::NodeProto& node, int input, int rank) {
    if (rank < 0 || input >= node.input_size() || node.input(input).empty()) return;
    int& known = ranks_.emplace(node.input(input), rank).first->second;
    if (known != rank) known = kContradiction;
  }

  // The rank of input 0 that the node itself implies.
  int OwnRank(const onnx::NodeProto& node) const {
    const std::string& type = node.op_type();
    if (type == "Conv" || type == "ConvInteger" || type == "ConvTranspose") return WeightRank(node, 1);
    if (type == "QLinearConv") return WeightRank(node, 3);
    if (type == "Gemm") return 2;
    if (type == "GRU" || type == "LSTM" || type == "RNN") return 3;
    if (type == "DepthToSpace" || type == "MaxRoiPool" || type == "RoiAlign" || type == "SpaceToDepth")
      return 4;
    if (type == "Transpose") return SizeOf(AttributeOf(node, "perm"));
    if (type == "AveragePool" || type == "LpPool" || type == "MaxPool") {
      const int window = SizeOf(AttributeOf(node, "kernel_shape"));
      return window < 0 ? kUnknown : window + 2;
    }
    if (type == "Pad" && node.input_size() < 4) {
      const onnx::TensorProto* pads = Weight(node, 1);
      const bool counts = pads != nullptr && pads->dims_size() == 1;
      return counts ? static_cast<int>(std::clamp<std::int64_t>(pads->dims(0) / 2, 0, 64)) : kUnknown;
    }
    return kUnknown;
  }

  void Visit(const onnx::NodeProto& node) {
    if (!node.domain().empty() && node.domain() != "ai.onnx") return;
    Imply(node, 0, OwnRank(node));
    const auto result = node.output_size() == 0 ? ranks_.end() : ranks_.find(node.output(0));
    if (result == ranks_.end() || result->second < 0) return;
    const int rank = result->second;
    const std::uint8_t flags = FlagsOf(node.op_type());
    if ((flags & kKeepsRank) != 0) Imply(node, 0, rank);
    if ((flags & kJoinsRanks) == 0) return;
    // The higher rank of both operands is that of the result.
    for (int i = 0; i < 2; ++i) {
      const int other = WeightRank(node, 1 - i);
      if (other >= 0 && other < rank) Imply(node, i, rank);
    }
  }

  std::map<std::string, const onnx::TensorProto*> weights_;
  std::map<std::string, int> ranks_;
};

}  // namespace

std::map<std::string, int> ImpliedRanks(const onnx::GraphProto& graph) { return Ranks(graph).Take(); }

}  // namespace rewire::compiler
