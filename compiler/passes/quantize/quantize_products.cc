// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/quantize_products.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/pack/packing.h"

namespace rewire::compiler {
namespace {

constexpr float kMostWeight = 127;
constexpr float kMostActivation = 255;

// The axis of the weights that has a scale each. nullopt for nodes that would not compute with integers: they
// would be slower and less exact, for nothing (integer_products.cc).
std::optional<std::int64_t> WeightAxis(const Node& node) {
  if (node.kind != NodeKind::kKernel || node.extents.size() != 1 || node.extents[0].shape != nullptr ||
      node.inputs.size() < 2 || FloatsOf(node.inputs[1]) == nullptr) {
    return std::nullopt;
  }
  const Type& x = node.inputs[0]->type;
  if (!x.IsTensor() || !x.ranked || x.dtype != kFloat32 || node.inputs[0]->IsConstant()) return std::nullopt;
  const std::vector<std::int64_t>& dims = node.inputs[1]->constant->shape;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return std::nullopt;
  const Value* bias = node.inputs.size() > 2 ? node.inputs[2] : nullptr;
  if (node.kernel == "rewire.conv") {
    if (IntAttribute(node, "group", 1) != 1 || (dims.size() != 3 && dims.size() != 4)) return std::nullopt;
    const std::int64_t taps = TapsOf(dims);
    if (taps < 1 || taps > kMostTaps) return std::nullopt;
    if (bias != nullptr && !PerChannel(bias, 1, 0, dims[0])) return std::nullopt;
    return 0;
  }
  if (dims.size() != 2) return std::nullopt;
  if (node.kernel == "rewire.matmul") return x.rank() >= 2 ? std::optional<std::int64_t>(1) : std::nullopt;
  if (node.kernel != "rewire.gemm" || FloatAttribute(node, "alpha", 1) != 1 ||
      FloatAttribute(node, "beta", 1) != 1 || IntAttribute(node, "transA", 0) != 0) {
    return std::nullopt;
  }
  const std::int64_t axis = IntAttribute(node, "transB", 0) != 0 ? 0 : 1;
  if (bias != nullptr && !PerChannel(bias, 2, 1, dims[static_cast<std::size_t>(axis)])) return std::nullopt;
  return axis;
}

class ProductQuantizer {
 public:
  ProductQuantizer(Graph* graph,
                   const std::function<std::optional<ActivationRange::Limits>(const Value*)>& range)
      : graph_(*graph), range_(range) {}

  std::size_t Run() {
    std::size_t count = 0;
    std::vector<Node*> nodes;
    nodes_ = &nodes;
    for (Node* node : graph_.main.nodes) {
      source_ = node->source;
      if (const std::optional<std::int64_t> axis = WeightAxis(*node)) {
        Value* x = Activation(node->inputs[0]);
        Value* weights = x != nullptr ? Weights(node->inputs[1], *axis) : nullptr;
        if (weights != nullptr) {
          node->inputs[0] = x;
          node->inputs[1] = weights;
          ++count;
        }
      }
      nodes.push_back(node);
    }
    graph_.main.nodes = std::move(nodes);
    return count;
  }

 private:
  // `x` as U8 and back. Null: without a range.
  Value* Activation(Value* x) {
    const auto found = activations_.find(x);
    if (found != activations_.end()) return found->second;
    const std::optional<ActivationRange::Limits> range = range_(x);
    const float scale = range ? (range->most - range->least) / kMostActivation : 0;
    if (!std::isnormal(scale)) return nullptr;
    const float zero = std::clamp(std::nearbyint(-range->least / scale), 0.0F, kMostActivation);
    Value* of_scale = NewFloats(&graph_, x->name + ".scale", {}, {scale});
    Value* of_zero = NewBytes(x->name + ".zero", kUInt8, {}, {static_cast<std::byte>(zero)});
    Value* stored = graph_.NewValue(x->name + ".u8", TensorOf(kUInt8, x->type.dims));
    Add("rewire.quantize_linear", {}, {x, of_scale, of_zero}, stored);
    Value* floats = graph_.NewValue(x->name + ".dequantized", x->type);
    Add("rewire.dequantize_linear", {}, {stored, of_scale, of_zero}, floats);
    activations_.emplace(x, floats);
    return floats;
  }

  // Null: a weight is no finite number.
  Value* Weights(Value* weights, std::int64_t axis) {
    const auto found = weights_.find({weights, axis});
    if (found != weights_.end()) return found->second;
    const std::vector<std::int64_t>& dims = weights->constant->shape;
    const auto channels = static_cast<std::size_t>(dims[static_cast<std::size_t>(axis)]);
    std::size_t inner = 1;
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < dims.size(); ++i)
      inner *= static_cast<std::size_t>(dims[i]);
    const std::size_t count = weights->constant->bytes.view.size() / sizeof(float);
    const float* elements = FloatsOf(weights);
    std::vector<float> scales(channels, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(elements[i])) return nullptr;
      float& scale = scales[i / inner % channels];
      scale = std::max(scale, std::fabs(elements[i]) / kMostWeight);
    }
    for (float& scale : scales) scale = std::isnormal(scale) ? scale : 1;
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
      const float whole = std::nearbyint(elements[i] / scales[i / inner % channels]);
      const auto stored = static_cast<std::int8_t>(std::clamp(whole, -kMostWeight, kMostWeight));
      bytes[i] = static_cast<std::byte>(stored);
    }
    Value* of_scale =
        NewFloats(&graph_, weights->name + ".scale", {dims[static_cast<std::size_t>(axis)]}, scales);
    Value* floats = graph_.NewValue(weights->name + ".dequantized", weights->type);
    Add("rewire.dequantize_linear", {{"axis", axis}},
        {NewBytes(weights->name + ".s8", kInt8, dims, bytes), of_scale}, floats);
    weights_.emplace(std::pair<const Value*, std::int64_t>{weights, axis}, floats);
    return floats;
  }

  Value* NewBytes(const std::string& name, DLDataType dtype, const std::vector<std::int64_t>& dims,
                  const std::vector<std::byte>& bytes) {
    Value* value = graph_.NewValue(name, TensorOf(dtype, ShapeOfInts(dims)));
    value->constant = HostTensor{dtype, dims, CopyBytes({bytes.data(), bytes.size()})};
    return value;
  }

  void Add(const char* kernel, std::vector<Attribute> attributes, std::vector<Value*> inputs, Value* output) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs = std::move(inputs);
    node->outputs.push_back(output);
    node->extents.push_back({output->type.dims, nullptr});
    node->source = source_;
    output->producer = node;
    nodes_->push_back(node);
  }

  Graph& graph_;
  const std::function<std::optional<ActivationRange::Limits>(const Value*)>& range_;
  std::vector<Node*>* nodes_ = nullptr;
  std::string source_;
  std::unordered_map<const Value*, Value*> activations_;
  std::map<std::pair<const Value*, std::int64_t>, Value*> weights_;
};

}  // namespace

std::vector<Value*> ValuesToQuantize(const Graph& graph) {
  std::vector<Value*> values;
  std::unordered_set<const Value*> seen;
  for (const Node* node : graph.main.nodes) {
    if (WeightAxis(*node) && seen.insert(node->inputs[0]).second) values.push_back(node->inputs[0]);
  }
  return values;
}

std::size_t QuantizeProducts(
    Graph* graph, const std::function<std::optional<ActivationRange::Limits>(const Value*)>& range) {
  return ProductQuantizer(graph, range).Run();
}

}  // namespace rewire::compiler
