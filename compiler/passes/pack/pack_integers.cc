// SPDX-License-Identifier: Apache-2.0
//
// Packs constant weights of products and convolutions of 8-bit integers (docs/kernels.md). The kernels also
// do what follows: add a bias, scale the sums to floats, apply an activation, and quantize the result.
//
// The packed node is placed where the last of these nodes was. So a scale that is computed in between, as in
// DynamicQuantizeLinear, is available.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

// A product that is packed: its weights, and the axis of its columns in its output.
struct IntegerProduct {
  enum Kind { kMatMul, kConv, kDepthwise };
  Node* node;
  Kind kind;
  std::int64_t columns, depth, segments;
  int axis;

  bool is_conv() const { return kind != kMatMul; }
};

// The operators behind the sums of a product, as far as `last`.
struct Tail {
  Node* last;
  std::vector<Node*> passed;  // nodes whose work the product does, but for `last`
  Value* term = nullptr;      // i32, of the sums
  // For floats and integers: one factor per column, or a value that is computed.
  Floats scales;
  Value* scale = nullptr;
  std::optional<Floats> bias;
  std::vector<Attribute> attributes;
};

class IntegerPacking : public Packing {
 public:
  using Packing::Packing;

  void Run() {
    ForEachKernel([&](Node* node) {
      const std::optional<IntegerProduct> product = node->kernel == names::kMatMulInteger ? MatMulOf(node)
                                                    : node->kernel == names::kConvInteger ? ConvOf(node)
                                                                                          : std::nullopt;
      if (product) Pack(*product);
    });
  }

 private:
  static std::optional<IntegerProduct> MatMulOf(Node* node) {
    const Value* weights = node->inputs[1];
    if (!weights->IsConstant() || !IsByte(weights) || weights->type.rank() != 2) return std::nullopt;
    const Ints& dims = weights->constant->shape;
    const int rank = node->outputs[0]->type.rank();
    if (node->inputs[0]->type.rank() < 2 || dims[0] < 1 || dims[1] < 1 || !HasPackableZeros(*node, dims[1]))
      return std::nullopt;
    return IntegerProduct{node, IntegerProduct::kMatMul, dims[1], dims[0], 1, rank - 1};
  }

  static std::optional<IntegerProduct> ConvOf(Node* node) {
    const Value* weights = node->inputs[1];
    if (!weights->IsConstant() || !IsByte(weights)) return std::nullopt;
    const Ints& dims = weights->constant->shape;
    if (IsDepthwise(dims, IntAttribute(*node, "group", 1))) {
      if (!HasPackableZeros(*node, dims[0])) return std::nullopt;
      // A window of several rows has them in segments, one for each position of a row.
      const std::int64_t taps = TapsOf(dims);
      return IntegerProduct{
          node, IntegerProduct::kDepthwise, dims[0], taps, taps == dims.back() ? 1 : dims.back(), 1};
    }
    if (IntAttribute(*node, "group", 1) != 1) return std::nullopt;
    if ((dims.size() != 3 && dims.size() != 4) || dims[0] < 1 || dims[1] < 1) return std::nullopt;
    const std::int64_t taps = TapsOf(dims);
    if (taps < 1 || taps > kMostTaps || !HasPackableZeros(*node, dims[0])) return std::nullopt;
    const Attribute* dilations = FindAttribute(*node, "dilations");
    const bool whole = dilations == nullptr || std::get<Array<std::int64_t>>(dilations->value).back() == 1;
    return IntegerProduct{
        node, IntegerProduct::kConv, dims[0], dims[1] * taps, whole ? taps / dims.back() : taps, 1};
  }

  void Pack(const IntegerProduct& product) {
    Tail tail{product.node, {}, nullptr, {}, nullptr, std::nullopt, {}};
    Follow(product, &tail);
    Node* node = product.node;
    Node* last = tail.last;
    Value* weights = node->inputs[1];
    const std::int64_t padded = (product.depth / product.segments + 3) / 4 * 4;
    Node* pack =
        OnWeights(&graph_, names::kPackedPackIntegers,
                  product.kind == IntegerProduct::kDepthwise ? RowsOf(weights) : node->inputs[1],
                  {{"order", std::string(product.is_conv() ? "OI" : "IO")}, {"segments", product.segments}});
    Value* packed =
        AddOutput(&graph_, pack, weights->name + ".packed",
                  TensorOf(kInt8, ShapeOfInts({PackedColumns(product.columns), product.segments * padded})));
    Value* sums =
        AddOutput(&graph_, pack, weights->name + ".sums", TensorOf(kInt32, ShapeOfInts({product.columns})));
    std::vector<Attribute> attributes = {{product.is_conv() ? "channels" : "columns", product.columns}};
    if (product.is_conv()) {
      attributes.push_back(
          {"kernel_shape", Ints(weights->constant->shape.begin() + 2, weights->constant->shape.end())});
      for (const char* name : {"strides", "dilations", "pads", "auto_pad"}) {
        if (const Attribute* given = FindAttribute(*node, name)) attributes.push_back(*given);
      }
    }
    attributes.insert(attributes.end(), tail.attributes.begin(), tail.attributes.end());
    Value* bias = tail.term;
    if (tail.bias) bias = NewFloats(&graph_, weights->name + ".bias", {product.columns}, *tail.bias);
    if (tail.scale == nullptr && !tail.scales.empty()) {
      tail.scale = NewFloats(&graph_, weights->name + ".scale",
                             {static_cast<std::int64_t>(tail.scales.size())}, tail.scales);
    }
    std::vector<Value*> inputs = {node->inputs[0], packed,     sums, OptionalInput(*node, 2),
                                  ZeroOf(*node),   tail.scale, bias};
    while (inputs.back() == nullptr) inputs.pop_back();
    for (Value*& input : inputs) {
      if (input == nullptr) input = NewFloats(&graph_, "none", {0}, {});
    }
    std::string source = node->source;
    for (const Node* passed : tail.passed) source = JoinNotes(source, passed->source);
    last->source = JoinNotes(source, last->source);
    for (Node* passed : tail.passed) edit_.Absorb(passed, last);
    last->kernel = KernelOf(product.kind);
    last->attributes = std::move(attributes);
    last->inputs = std::move(inputs);
    if (tail.scale != nullptr && last->outputs[0]->type.dtype == kFloat32) TakeMovedActivation(&edit_, last);
    if (product.is_conv()) convolutions_.insert(last);
  }

  static const char* KernelOf(IntegerProduct::Kind kind) {
    switch (kind) {
      case IntegerProduct::kMatMul:
        return names::kPackedMatMulInteger;
      case IntegerProduct::kConv:
        return names::kPackedConvInteger;
      case IntegerProduct::kDepthwise:
        break;
    }
    return names::kPackedDepthwiseInteger;
  }

  // Weights [channels, 1, kernel...] as [channels, rows of the window, positions of a row].
  Value* RowsOf(Value* weights) {
    const Ints& dims = weights->constant->shape;
    return graph_.NewView(weights->name, weights, {dims[0], TapsOf(dims) / dims.back(), dims.back()});
  }

  // The weights' zero points in the form of packed weights, signed. Null if they are 0 everywhere.
  Value* ZeroOf(const Node& node) {
    const Value* zero = OptionalInput(node, 3);
    const bool is_unsigned = node.inputs[1]->type.dtype == kUInt8;
    if (zero == nullptr && !is_unsigned) return nullptr;
    std::vector<std::byte> bytes(1, std::byte{0});
    if (zero != nullptr) bytes.assign(zero->constant->bytes.view.begin(), zero->constant->bytes.view.end());
    if (is_unsigned) {
      for (std::byte& byte : bytes) byte ^= std::byte{0x80};
    }
    if (std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }))
      return nullptr;
    HostTensor tensor;
    tensor.dtype = kInt8;
    tensor.shape = {static_cast<std::int64_t>(bytes.size())};
    tensor.bytes = CopyBytes({bytes.data(), bytes.size()});
    Value* value =
        graph_.NewValue(node.inputs[1]->name + ".zero", TensorOf(kInt8, ShapeOfInts(tensor.shape)));
    value->constant = std::move(tensor);
    return value;
  }

  // The only reader of `node`'s output, if its result has the same shape.
  Node* Next(const Node& node) const {
    Node* user = edit_.OnlyUser(node.outputs[0]);
    const bool follows = user != nullptr && user->kind == NodeKind::kKernel && user->outputs.size() == 1 &&
                         SameShape(node, *user);
    return follows ? user : nullptr;
  }
  static Value* Other(const Node& user, const Node& node) {
    return user.inputs[user.inputs[0] == node.outputs[0] ? 1 : 0];
  }
  static void Pass(Tail* tail, Node* next) {
    tail->passed.push_back(tail->last);
    tail->last = next;
  }

  void Follow(const IntegerProduct& product, Tail* tail) {
    Node* next = Next(*tail->last);
    if (next != nullptr && next->kernel == names::kAdd) {
      tail->term = Terms(Other(*next, *tail->last), product);
      if (tail->term == nullptr) return;
      Pass(tail, next);
      next = Next(*next);
    }
    if (next == nullptr) return;
    if (next->kernel == names::kRequantize) {
      TakeRequantize(product, next, tail);
    } else if (next->kernel == names::kCast && next->outputs[0]->type.dtype == kFloat32) {
      Pass(tail, next);
      TakeFloats(product, tail);
    }
  }

  // A constant i32 with an element for each column, as a vector.
  Value* Terms(Value* value, const IntegerProduct& product) {
    if (!value->IsConstant() || !(value->type.dtype == kInt32)) return nullptr;
    const Ints& dims = value->constant->shape;
    const int behind = product.node->outputs[0]->type.rank() - 1 - product.axis;
    if (static_cast<int>(dims.size()) != behind + 1 || dims[0] != product.columns ||
        !std::all_of(dims.begin() + 1, dims.end(), [](std::int64_t dim) { return dim == 1; })) {
      return nullptr;
    }
    return graph_.NewView(value->name, value, {product.columns});
  }

  // x_scale, w_scale, y_scale, zero: all constant.
  void TakeRequantize(const IntegerProduct& product, Node* next, Tail* tail) {
    const std::optional<float> x_scale = ScalarOf(next->inputs[1]), y_scale = ScalarOf(next->inputs[3]);
    const std::optional<Floats> w_scales = PerColumn(next->inputs[2], product.columns);
    const std::optional<std::int64_t> zero = ByteOf(next->inputs[4]);
    if (!x_scale || !y_scale || !w_scales || !zero ||
        AttributesOf<contract::RequantizeAttributes>(*next).axis != product.axis)
      return;
    tail->scales = *w_scales;
    for (float& scale : tail->scales) scale = *x_scale * scale / *y_scale;
    tail->attributes = {{"zero", *zero}};
    Pass(tail, next);
  }

  // One element, or one for each column.
  static std::optional<Floats> PerColumn(const Value* value, std::int64_t columns) {
    const float* elements = WantedFloatsOf(value);
    if (elements == nullptr) return std::nullopt;
    if (HasOneElement(value)) return Floats{*elements};
    if (value->constant->shape != Ints{columns}) return std::nullopt;
    return Floats(elements, elements + columns);
  }

  // Takes what follows the cast: a factor, a term, and quantization, perhaps behind an activation that limits
  // the range.
  void TakeFloats(const IntegerProduct& product, Tail* tail) {
    tail->scales = {1.0F};
    const int rank = tail->last->outputs[0]->type.rank();
    if (Node* next = Next(*tail->last); next != nullptr && next->kernel == names::kMul) {
      Value* factor = Other(*next, *tail->last);
      if (std::optional<Floats> factors = PerChannel(factor, rank, product.axis, product.columns)) {
        tail->scales = ScalarOf(factor) ? Floats{(*factors)[0]} : *std::move(factors);
      } else if (IsScale(factor, product)) {
        tail->scale = factor;
      } else {
        return;
      }
      Pass(tail, next);
    }
    if (Node* next = Next(*tail->last); next != nullptr && next->kernel == names::kAdd) {
      tail->bias = PerChannel(Other(*next, *tail->last), rank, product.axis, product.columns);
      // A product has one bias.
      if (!tail->bias || tail->term != nullptr) {
        tail->bias.reset();
        return;
      }
      Pass(tail, next);
    }
    if (tail->scale == nullptr) TakeQuantize(tail);
  }

  // A factor that is computed: f32, one element or one for each of the last axis' columns.
  static bool IsScale(const Value* value, const IntegerProduct& product) {
    if (!value->type.IsTensor() || !(value->type.dtype == kFloat32) || !value->type.ranked) return false;
    if (HasOneElement(value)) return true;
    return !product.is_conv() && value->type.rank() == 1 && value->type.dims[0].Is(product.columns);
  }

  void TakeQuantize(Tail* tail) {
    Node* bound = Next(*tail->last);
    if (bound == nullptr) return;
    const bool bounds = bound->kernel == names::kRelu || bound->kernel == names::kClip;
    Node* next = bounds ? Next(*bound) : bound;
    if (next == nullptr || next->kernel != names::kQuantizeLinear) return;
    const std::optional<Quantization> by = QuantizationOf(*next);
    if (!by) return;
    std::optional<StoredRange> range = StoredRange();
    if (bounds) range = StoredRangeOf(*bound, *by, next->outputs[0]->type.dtype);
    if (!range) return;
    for (float& factor : tail->scales) factor /= by->scale;
    if (tail->bias) {
      for (float& term : *tail->bias) term /= by->scale;
    }
    if (by->zero != 0) tail->attributes.push_back({"zero", by->zero});
    if (range->least) tail->attributes.push_back({"least", *range->least});
    if (range->most) tail->attributes.push_back({"most", *range->most});
    if (next != bound) Pass(tail, bound);
    Pass(tail, next);
  }
};

}  // namespace

void PackIntegers(Graph* graph) { IntegerPacking(graph).Run(); }

}  // namespace rewire::compiler
