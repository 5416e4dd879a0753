// SPDX-License-Identifier: Apache-2.0
//
// Turns a product of dequantized integers into the product of the integers, which is then dequantized. The
// sums of 8-bit numbers are exact. This is for quantized models that have QuantizeLinear and DequantizeLinear
// around float operators. The mean of an image is a product by ones.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// (stored - zero) * scale, by constants.
struct Dequantized {
  Value* stored;
  Value* zero;  // null: 0
  const Value* scale;
  std::int64_t axis;  // of more than one scale
};

std::optional<Dequantized> DequantizedOf(const Value* value) {
  const Node* node = value->producer != nullptr ? value->producer : value->folded;
  if (node == nullptr || node->kernel != names::kDequantizeLinear || !IsByte(node->inputs[0]))
    return std::nullopt;
  Value* zero = node->inputs.size() > 2 ? node->inputs[2] : nullptr;
  if (WantedFloatsOf(node->inputs[1]) == nullptr || (zero != nullptr && !zero->IsConstant()))
    return std::nullopt;
  return Dequantized{node->inputs[0], zero, node->inputs[1],
                     AttributesOf<contract::ScaleAttributes>(*node).axis};
}

// One scale, which may be that of any shape with one element.
bool HasOneScale(const Dequantized& value) { return ScalarOf(value.scale).has_value(); }

// Weights [.., columns, ..] with a scale each along `axis`, or one for all.
bool HasScales(const Dequantized& weights, std::int64_t axis, std::int64_t columns) {
  if (!weights.stored->IsConstant()) return false;
  return HasOneScale(weights) || (weights.axis == axis && weights.scale->constant->shape == Ints{columns});
}

// A bias of 32-bit integers in steps of x_scale * w_scale, as quantizing converters write it, is a term of
// the sums of `depth` products. Returns these integers; null for another bias, and for one with which a sum
// might not fit into 32 bits.
Value* TermsOf(const Value* bias, const Dequantized& x, const Dequantized& w, std::int64_t columns,
               std::int64_t depth) {
  if (bias == nullptr) return nullptr;
  const Node* node = bias->producer != nullptr ? bias->producer : bias->folded;
  if (node == nullptr || node->kernel != names::kDequantizeLinear) return nullptr;
  Value* stored = node->inputs[0];
  const HostTensor* terms =
      stored->IsConstant() && stored->type.dtype == kInt32 ? ElementsOf(stored) : nullptr;
  const float* scales = WantedFloatsOf(node->inputs[1]);
  if (terms == nullptr || scales == nullptr || terms->shape != Ints{columns}) return nullptr;
  if (const Value* zero = OptionalInput(*node, 2); zero != nullptr) {
    const HostTensor* zeros = ElementsOf(zero);
    if (zeros == nullptr) return nullptr;
    for (const std::byte byte : zeros->bytes.view) {
      if (byte != std::byte{0}) return nullptr;
    }
  }
  const bool one_scale = ScalarOf(node->inputs[1]).has_value();
  const float* of_w = FloatsOf(w.scale);
  constexpr std::int64_t kMostProduct = 255 * 255;
  for (std::int64_t j = 0; j < columns; ++j) {
    const float wanted = *ScalarOf(x.scale) * of_w[HasOneScale(w) ? 0 : j];
    if (scales[one_scale ? 0 : j] != wanted) return nullptr;
    std::int32_t term = 0;
    std::memcpy(&term, terms->bytes.view.data() + static_cast<std::size_t>(j) * sizeof(term), sizeof(term));
    if (std::abs(std::int64_t{term}) + depth * kMostProduct > std::numeric_limits<std::int32_t>::max())
      return nullptr;
  }
  return stored;
}

class IntegerProductRewriter {
 public:
  explicit IntegerProductRewriter(Graph* graph) : graph_(*graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> nodes;
      nodes_ = &nodes;
      for (Node* node : block->nodes) {
        source_ = node->source;
        const bool changed = node->kind == NodeKind::kKernel && node->extents.size() == 1 &&
                             node->extents[0].shape == nullptr &&
                             (MoveConv(*node) || MoveMatMul(*node) || MoveGemm(*node) || MoveMean(*node));
        if (!changed) nodes.push_back(node);
        changed_ = changed_ || changed;
      }
      block->nodes = std::move(nodes);
    });
    if (changed_) RemoveDeadCode(&graph_);
  }

 private:
  bool MoveConv(const Node& node) {
    if (node.kernel != names::kConv) return false;
    const std::optional<Dequantized> w = DequantizedOf(node.inputs[1]);
    const std::optional<Dequantized> x = DequantizedOf(node.inputs[0]);
    if (!x || !w || !HasOneScale(*x)) return false;
    if (!w->stored->IsConstant()) return false;
    const Ints& dims = w->stored->constant->shape;
    if ((dims.size() != 3 && dims.size() != 4) || !HasScales(*w, 0, dims[0])) return false;
    const std::int64_t groups = IntAttribute(node, "group", 1);
    if (groups != 1 && !IsDepthwise(dims, groups)) return false;
    const std::int64_t taps = TapsOf(dims);
    if (taps < 1 || taps > kMostTaps) return false;  // what pack-integers does not take is slow
    const Value* bias = node.inputs.size() > 2 ? node.inputs[2] : nullptr;
    if (bias != nullptr && !PerChannel(bias, 1, 0, dims[0])) return false;
    Replace(node, names::kConvInteger, node.attributes, *x, x->stored, *w, w->stored, bias,
            Ints(dims.size() - 2, 1), dims[0]);
    return true;
  }

  // The mean of each channel of an image.
  bool MoveMean(const Node& node) {
    if (node.kernel != names::kReduceMean || node.inputs.size() != 1) return false;
    const auto mean = AttributesOf<contract::ReduceAttributes>(node);
    const std::optional<Dequantized> x = DequantizedOf(node.inputs[0]);
    if (!x || !HasOneScale(*x) || !mean.keepdims) return false;
    const Shape& image = x->stored->type.dims;
    if (image.size() != 3 && image.size() != 4) return false;
    Ints axes, dims;
    for (std::size_t i = 1; i < image.size(); ++i) {
      const std::optional<std::int64_t> size = image[i].constant();
      if (!size || *size < 1) return false;
      dims.push_back(*size);
      if (i > 1) axes.push_back(static_cast<std::int64_t>(i));
    }
    dims.insert(dims.begin() + 1, 1);
    const std::int64_t taps = TapsOf(dims), channels = dims[0];
    if (mean.axes != axes || taps > kMostTaps) return false;
    const Dequantized ones{Ones(dims), nullptr,
                           NewFloats(&graph_, "mean.scale", {}, {1.0F / static_cast<float>(taps)}), 0};
    Replace(node, names::kConvInteger, {{"group", channels}}, *x, x->stored, ones, ones.stored, nullptr,
            Ints(axes.size(), 1), channels);
    return true;
  }

  Value* Ones(const Ints& dims) {
    const std::vector<std::byte> bytes(static_cast<std::size_t>(dims[0] * TapsOf(dims)), std::byte{1});
    HostTensor tensor;
    tensor.dtype = kInt8;
    tensor.shape = dims;
    tensor.bytes = CopyBytes({bytes.data(), bytes.size()});
    Value* ones = graph_.NewValue("ones", TensorOf(kInt8, ShapeOfInts(dims)));
    ones->constant = std::move(tensor);
    return ones;
  }

  bool MoveMatMul(const Node& node) {
    if (node.kernel != names::kMatMul || node.inputs[0]->type.rank() < 2) return false;
    const std::optional<Dequantized> w = DequantizedOf(node.inputs[1]);
    if (!w || !w->stored->IsConstant() || w->stored->type.rank() != 2) return false;
    return MoveRows(node, *w, w->stored, 1, nullptr);
  }

  bool MoveGemm(const Node& node) {
    const auto gemm = AttributesOf<contract::GemmAttributes>(node);
    if (node.kernel != names::kGemm || !gemm.IsPlain()) return false;
    const std::optional<Dequantized> w = DequantizedOf(node.inputs[1]);
    if (!w || !w->stored->IsConstant() || w->stored->type.rank() != 2) return false;
    const bool transposed = gemm.transpose_b;
    const Ints& dims = w->stored->constant->shape;
    const std::int64_t columns = dims[transposed ? 0 : 1];
    const Value* bias = node.inputs.size() > 2 ? node.inputs[2] : nullptr;
    if (bias != nullptr && !PerChannel(bias, 2, 1, columns)) return false;
    if (transposed && ElementsOf(w->stored) == nullptr) return false;
    return MoveRows(node, *w, transposed ? Transposed(*w->stored) : w->stored, transposed ? 0 : 1, bias);
  }

  // By `matrix` [depth, columns], which is w or w transposed.
  bool MoveRows(const Node& node, const Dequantized& w, Value* matrix, std::int64_t axis, const Value* bias) {
    const std::int64_t columns = matrix->constant->shape[1];
    if (columns < 1 || matrix->constant->shape[0] < 1 || !HasScales(w, axis, columns)) return false;
    std::optional<Dequantized> x = DequantizedOf(node.inputs[0]);
    const Node* reshape = nullptr;
    if (!x && node.inputs[0]->producer != nullptr && node.inputs[0]->producer->kind == NodeKind::kReshape) {
      reshape = node.inputs[0]->producer;
      x = DequantizedOf(reshape->inputs[0]);
    }
    if (!x || !HasOneScale(*x)) return false;
    Value* stored = reshape != nullptr ? Reshaped(*reshape, x->stored) : x->stored;
    Replace(node, names::kMatMulInteger, {}, *x, stored, w, matrix, bias, {}, columns);
    return true;
  }

  // The node's output from the product of the integers. Columns have `behind` axes behind them.
  void Replace(const Node& node, const std::string& kernel, std::vector<Attribute> attributes,
               const Dequantized& x, Value* left, const Dequantized& w, Value* right, const Value* bias,
               const Ints& behind, std::int64_t columns) {
    std::vector<Value*> inputs = {left, right};
    if (x.zero != nullptr || w.zero != nullptr)
      inputs.push_back(x.zero != nullptr ? x.zero : NewFloats(&graph_, "none", {0}, {}));
    if (w.zero != nullptr) inputs.push_back(w.zero);
    Value* out = node.outputs[0];
    Value* sums = graph_.NewValue(out->name, TensorOf(kInt32, out->type.dims));
    Add(kernel, std::move(attributes), std::move(inputs), sums, node.extents[0]);
    const Ints& factors_of = right->constant->shape;
    const std::int64_t depth =
        kernel == names::kConvInteger ? factors_of[1] * TapsOf(factors_of) : factors_of[0];
    Ints dims = {columns};
    dims.insert(dims.end(), behind.begin(), behind.end());
    if (Value* terms = TermsOf(bias, x, w, columns, depth); terms != nullptr) {
      Value* whole = graph_.NewValue(out->name, sums->type);
      Add(names::kAdd, {}, {sums, graph_.NewView(bias->name, terms, dims)}, whole, node.extents[0]);
      sums = whole;
      bias = nullptr;
    }
    Value* floats = graph_.NewValue(out->name, out->type);
    Add(names::kCast, {}, {sums}, floats, node.extents[0]);

    const float* of_w = FloatsOf(w.scale);
    const bool one = HasOneScale(w);
    std::vector<float> factors;
    for (std::int64_t j = 0; j < (one ? 1 : columns); ++j) factors.push_back(*ScalarOf(x.scale) * of_w[j]);
    Value* factor = NewFloats(&graph_, right->name + ".scale", one ? Ints() : dims, factors);
    Value* scaled = bias == nullptr ? out : graph_.NewValue(out->name, out->type);
    Add(names::kMul, {}, {floats, factor}, scaled, node.extents[0]);
    if (bias == nullptr) return;
    const std::optional<std::vector<float>> terms =
        PerChannel(bias, bias->type.rank(), bias->type.rank() - 1, columns);
    Add(names::kAdd, {}, {scaled, NewFloats(&graph_, bias->name, dims, *terms)}, out, node.extents[0]);
  }

  void Add(const std::string& kernel, std::vector<Attribute> attributes, std::vector<Value*> inputs,
           Value* output, const Node::Extent& extent) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs = std::move(inputs);
    node->outputs.push_back(output);
    node->extents.push_back(extent);
    node->source = source_;
    output->producer = node;
    nodes_->push_back(node);
  }

  // The same reshape of what was dequantized behind it.
  Value* Reshaped(const Node& reshape, Value* stored) {
    Node* node = graph_.NewNode(NodeKind::kReshape);
    node->inputs = reshape.inputs;
    node->inputs[0] = stored;
    Value* output = graph_.NewValue(reshape.outputs[0]->name,
                                    TensorOf(stored->type.dtype, reshape.outputs[0]->type.dims));
    output->producer = node;
    node->outputs.push_back(output);
    node->extents = reshape.extents;
    node->source = reshape.source;
    nodes_->push_back(node);
    return output;
  }

  Value* Transposed(const Value& weights) {
    const HostTensor& from = *weights.constant;
    const std::int64_t rows = from.shape[0], columns = from.shape[1];
    std::vector<std::byte> bytes(from.bytes.view.size());
    for (std::int64_t i = 0; i < rows * columns; ++i)
      bytes[static_cast<std::size_t>(i % columns * rows + i / columns)] =
          from.bytes.view[static_cast<std::size_t>(i)];
    Value* transposed = graph_.NewValue(weights.name, TensorOf(from.dtype, ShapeOfInts({columns, rows})));
    HostTensor tensor;
    tensor.dtype = from.dtype;
    tensor.shape = {columns, rows};
    tensor.bytes = CopyBytes({bytes.data(), bytes.size()});
    transposed->constant = std::move(tensor);
    return transposed;
  }

  Graph& graph_;
  std::vector<Node*>* nodes_ = nullptr;
  std::string source_;
  bool changed_ = false;
};

}  // namespace

void UseIntegerProducts(Graph* graph) { IntegerProductRewriter(graph).Run(); }

}  // namespace rewire::compiler
