// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/quantize_products.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/factors.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/recurrent.h"

namespace rewire::compiler {
namespace {

constexpr float kMostWeight = 127;
constexpr float kMostActivation = 255;

float ScaleOf(const ActivationRange::Limits& limits) {
  return (limits.most - limits.least) / kMostActivation;
}

constexpr const char kNoKernel[] = "there is no kernel of integers for it";

// Whether a node reads f32 and has constant weights of f32.
bool IsFloatProduct(const Node& node) {
  if (node.kind != NodeKind::kKernel || node.inputs.size() < 2 || FloatsOf(node.inputs[1]) == nullptr)
    return false;
  const Type& x = node.inputs[0]->type;
  if (!x.IsTensor() || x.dtype != kFloat32 || node.inputs[0]->IsConstant()) return false;
  return names::FactorsOf(node.kernel).count > 0;
}

bool HasFiniteWeights(const Value& weights) {
  const float* elements = FloatsOf(&weights);
  return std::all_of(elements, elements + weights.constant->bytes.view.size() / sizeof(float),
                     [](float weight) { return std::isfinite(weight); });
}

FloatProduct StaysFloat(std::string reason) { return {nullptr, 0, std::move(reason)}; }
FloatProduct QuantizedBy(std::int64_t axis) { return {nullptr, axis, ""}; }

FloatProduct ConsiderConv(const Node& node, const std::vector<std::int64_t>& dims) {
  const Value* bias = OptionalInput(node, 2);
  // Their integers become floats again for the kernel (integer_groups.cc).
  if (IntAttribute(node, "group", 1) != 1)
    return StaysFloat("integers are no faster for convolutions of groups");
  if (dims.size() != 3 && dims.size() != 4) return StaysFloat(kNoKernel);
  const std::int64_t taps = TapsOf(dims);
  if (taps < 1 || taps > kMostTaps) return StaysFloat(kNoKernel);
  if (bias != nullptr && !PerChannel(bias, 1, 0, dims[0])) return StaysFloat(kNoKernel);
  return QuantizedBy(0);
}

FloatProduct ConsiderGemm(const Node& node, const std::vector<std::int64_t>& dims) {
  const auto gemm = AttributesOf<contract::GemmAttributes>(node);
  if (dims.size() != 2 || !gemm.IsPlain()) return StaysFloat(kNoKernel);
  const std::int64_t axis = gemm.transpose_b ? 0 : 1;
  const Value* bias = OptionalInput(node, 2);
  if (bias != nullptr && !PerChannel(bias, 2, 1, dims[static_cast<std::size_t>(axis)]))
    return StaysFloat(kNoKernel);
  return QuantizedBy(axis);
}

// Nodes that would not compute with integers would be slower and less exact, for nothing
// (integer_products.cc).
FloatProduct Consider(const Node& node, bool inside) {
  if (names::IsRecurrentLayer(node.kernel)) return StaysFloat("recurrent layers stay float");
  if (inside) return StaysFloat("it is inside a loop or a branch");
  if (node.extents.size() != 1 || node.extents[0].shape != nullptr || !node.inputs[0]->type.ranked)
    return StaysFloat(kNoKernel);
  const std::vector<std::int64_t>& dims = node.inputs[1]->constant->shape;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return StaysFloat(kNoKernel);
  const Node* made = node.inputs[1]->folded;
  if (made != nullptr && made->kernel == names::kDequantizeLinear)
    return StaysFloat("the model quantizes it already");
  if (!HasFiniteWeights(*node.inputs[1])) return StaysFloat("a weight is no finite number");
  if (node.kernel == names::kConv) return ConsiderConv(node, dims);
  if (node.kernel == names::kGemm) return ConsiderGemm(node, dims);
  if (node.kernel == names::kMatMul && dims.size() == 2 && node.inputs[0]->type.rank() >= 2)
    return QuantizedBy(1);
  return StaysFloat(kNoKernel);
}

class ProductQuantizer {
 public:
  ProductQuantizer(Graph* graph, const std::vector<FloatProduct>& products, const ProductLimits& limits)
      : graph_(*graph) {
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (limits[i]) chosen_.emplace(products[i].node, Chosen{i, products[i].axis, *limits[i]});
    }
  }

  // `beside`: copies of the products read the integers. Their outputs by product.
  void Run(bool beside, std::vector<Value*>* copied) {
    std::vector<Node*> nodes;
    nodes_ = &nodes;
    for (Node* node : graph_.main.nodes) {
      source_ = node->source;
      const auto found = chosen_.find(node);
      if (found == chosen_.end() || beside) nodes.push_back(node);
      if (found == chosen_.end()) continue;
      Node* changed = beside ? Copied(*node) : node;
      Value* x = Activation(node->inputs[0], found->second.limits);
      Value* weights = Weights(node->inputs[1], found->second.axis);
      changed->inputs[0] = x;
      changed->inputs[1] = weights;
      nodes.push_back(changed);
      if (beside) (*copied)[found->second.product] = changed->outputs[0];
    }
    graph_.main.nodes = std::move(nodes);
  }

 private:
  struct Chosen {
    std::size_t product;
    std::int64_t axis;
    ActivationRange::Limits limits;
  };

  Node* Copied(const Node& node) {
    Node* copy = graph_.NewNode(node.kind);
    *copy = node;
    Value* output = graph_.NewValue(node.outputs[0]->name, node.outputs[0]->type);
    output->producer = copy;
    copy->outputs[0] = output;
    return copy;
  }

  // `x` as U8 and back.
  Value* Activation(Value* x, const ActivationRange::Limits& limits) {
    const auto found = activations_.find(x);
    if (found != activations_.end()) return found->second;
    const float scale = ScaleOf(limits);
    const float zero = std::clamp(std::nearbyint(-limits.least / scale), 0.0F, kMostActivation);
    Value* of_scale = NewFloats(&graph_, x->name + ".scale", {}, {scale});
    Value* of_zero = NewBytes(x->name + ".zero", kUInt8, {}, {static_cast<std::byte>(zero)});
    Value* stored = graph_.NewValue(x->name + ".u8", TensorOf(kUInt8, x->type.dims));
    Add(names::kQuantizeLinear, {}, {x, of_scale, of_zero}, stored);
    Value* floats = graph_.NewValue(x->name + ".dequantized", x->type);
    Add(names::kDequantizeLinear, {}, {stored, of_scale, of_zero}, floats);
    activations_.emplace(x, floats);
    return floats;
  }

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
    Add(names::kDequantizeLinear, {{"axis", axis}},
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
  std::unordered_map<const Node*, Chosen> chosen_;
  std::vector<Node*>* nodes_ = nullptr;
  std::string source_;
  std::unordered_map<const Value*, Value*> activations_;
  std::map<std::pair<const Value*, std::int64_t>, Value*> weights_;
};

}  // namespace

std::vector<FloatProduct> FloatProducts(const Graph& graph) {
  std::vector<FloatProduct> products;
  const auto visit = [&](const Block& block, bool inside, const auto& again) -> void {
    for (Node* node : block.nodes) {
      if (IsFloatProduct(*node)) {
        products.push_back(Consider(*node, inside));
        products.back().node = node;
      }
      for (const Block& inner : node->blocks) again(inner, true, again);
    }
  };
  visit(graph.main, false, visit);
  return products;
}

bool HasScale(const ActivationRange::Limits& limits) { return std::isnormal(ScaleOf(limits)); }

void QuantizeProducts(Graph* graph, const std::vector<FloatProduct>& products, const ProductLimits& limits) {
  ProductQuantizer(graph, products, limits).Run(false, nullptr);
}

std::vector<Value*> QuantizeBeside(Graph* graph, const std::vector<FloatProduct>& products,
                                   const ProductLimits& limits) {
  std::vector<Value*> outputs(products.size(), nullptr);
  ProductQuantizer(graph, products, limits).Run(true, &outputs);
  return outputs;
}

}  // namespace rewire::compiler
