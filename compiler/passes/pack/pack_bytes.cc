// SPDX-License-Identifier: Apache-2.0
//
// Keeps the constant weights of products in 8 bits where the model has them so, with a scale for each column
// or one for all: rewire.packed.matmul_bytes. Those of an LSTM stay so, too (pack_lstm_bytes.cc). They take a
// quarter of the file and of the memory. Numbers of the left side get 24 bits, which is as near as products
// of floats are; where the graph may compute in bf16, 16.
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/pack/byte_weights.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/recurrent.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// A matrix (stored - zero) * scale, or that transposed.
struct ByteWeights {
  const Node* node;  // that scales
  const Value* stored;
  const Value* zero;  // null: 0
  const Value* scale;
  bool transposed;
};

// Weights by DequantizeLinear, or by a cast and a product as some exporters write it.
std::optional<ByteWeights> ByteWeightsOf(const Value* weights) {
  const Node* node = SourceOf(weights);
  const bool transposed = node != nullptr && node->kernel == names::kTranspose;
  if (transposed) node = SourceOf(node->inputs[0]);
  if (node == nullptr) return std::nullopt;
  ByteWeights found{node, nullptr, nullptr, nullptr, transposed};
  if (node->kernel == names::kDequantizeLinear) {
    found = {node, node->inputs[0], OptionalInput(*node, 2), node->inputs[1], transposed};
  } else if (node->kernel == names::kMul && node->inputs.size() == 2) {
    for (const std::size_t i : {0, 1}) {
      const Node* cast = SourceOf(node->inputs[i]);
      if (cast != nullptr && cast->kernel == names::kCast)
        found = {node, cast->inputs[0], nullptr, node->inputs[1 - i], transposed};
    }
  }
  if (found.stored == nullptr || !IsByte(found.stored) || found.stored->type.rank() != 2 ||
      ElementsOf(found.stored) == nullptr || (found.zero != nullptr && ElementsOf(found.zero) == nullptr) ||
      WantedFloatsOf(found.scale) == nullptr) {
    return std::nullopt;
  }
  return found;
}

class BytePacking : public Packing {
 public:
  using Packing::Packing;

  void Run() {
    ForEachKernel([&](Node* node) {
      if (node->kernel == names::kMatMul) PackMatMul(node);
      if (node->kernel == names::kGemm) PackGemm(node);
      if (node->kernel == names::kLstm && PackLstmBytes(&graph_, node)) changed_ = true;
    });
    if (changed_) RemoveDeadCode(&graph_);
  }

 private:
  void PackMatMul(Node* node) {
    if (node->inputs[0]->type.rank() < 2) return;
    Pack(node, 1, nullptr);
  }

  void PackGemm(Node* node) {
    const auto gemm = AttributesOf<contract::GemmAttributes>(*node);
    if (gemm.IsPlain()) Pack(node, gemm.transpose_b ? 0 : 1, OptionalInput(*node, 2));
  }

  // The product by weights whose columns are along `axis`, of two.
  void Pack(Node* node, int axis, const Value* term) {
    const std::optional<ByteWeights> weights = ByteWeightsOf(node->inputs[1]);
    if (!weights || !(node->inputs[0]->type.dtype == kFloat32)) return;
    if (weights->transposed) axis = 1 - axis;
    const Ints& dims = weights->stored->constant->shape;
    const std::int64_t columns = dims[static_cast<std::size_t>(axis)], depth = dims[axis == 1 ? 0 : 1];
    if (columns < 1 || depth < 1) return;
    // By DequantizeLinear a vector belongs to the axis that it names; a factor is broadcast.
    const std::optional<std::vector<float>> scales = ScalesOf(*weights, axis, columns);
    if (!scales) return;
    std::optional<HostTensor> bytes = SignedBytes(*weights, axis);
    if (!bytes) return;
    std::optional<std::vector<float>> terms;
    if (term != nullptr) {
      terms = PerChannel(term, 2, 1, columns);
      if (!terms) return;
    }
    const std::string name = node->inputs[1]->name;
    Value* bias = terms ? NewFloats(&graph_, term->name, {columns}, *terms)
                  : term == nullptr && node->kernel == names::kMatMul ? TakeBias(&edit_, node, columns)
                                                                      : nullptr;
    Value* stored = graph_.NewValue(weights->stored->name, TensorOf(kInt8, ShapeOfInts(dims)));
    stored->constant = *std::move(bytes);
    Node* pack = OnWeights(&graph_, names::kPackedPackIntegers, stored,
                           {{"order", std::string(axis == 1 ? "IO" : "OI")}, {"segments", std::int64_t{1}}});
    Value* packed = AddOutput(&graph_, pack, name + ".packed",
                              TensorOf(kInt8, ShapeOfInts({PackedColumns(columns), (depth + 3) / 4 * 4})));
    AddOutput(&graph_, pack, name + ".sums", TensorOf(kInt32, ShapeOfInts({columns})));
    node->kernel = names::kPackedMatMulBytes;
    node->attributes = {{"columns", columns}};
    if (graph_.bf16) node->attributes.push_back({"bits", std::int64_t{16}});
    node->inputs = {node->inputs[0], packed, NewFloats(&graph_, name + ".scale", {columns}, *scales)};
    if (bias != nullptr) node->inputs.push_back(bias);
    TakeMovedActivation(&edit_, node);
    changed_ = true;
  }

  // One for each column.
  static std::optional<std::vector<float>> ScalesOf(const ByteWeights& weights, int axis,
                                                    std::int64_t columns) {
    const float* values = FloatsOf(weights.scale);
    if (ScalarOf(weights.scale)) return std::vector<float>(static_cast<std::size_t>(columns), values[0]);
    if (weights.node->kernel == names::kMul) return PerChannel(weights.scale, 2, axis, columns);
    const std::int64_t along = AttributesOf<contract::ScaleAttributes>(*weights.node).axis;
    if ((along < 0 ? along + 2 : along) != axis || weights.scale->constant->shape != Ints{columns})
      return std::nullopt;
    return std::vector<float>(values, values + columns);
  }

  // The integers less their zero points, if these are signed bytes.
  static std::optional<HostTensor> SignedBytes(const ByteWeights& weights, int axis) {
    const HostTensor& from = *weights.stored->constant;
    const bool is_unsigned = from.dtype == kUInt8;
    const auto number = [&](const HostTensor& of, std::size_t i) {
      const int byte = std::to_integer<int>(of.bytes.view[i]);
      return is_unsigned ? byte : byte < 128 ? byte : byte - 256;
    };
    const auto columns = static_cast<std::size_t>(from.shape[1]);
    const HostTensor* zero = weights.zero == nullptr ? nullptr : &*weights.zero->constant;
    const std::size_t zeros = zero == nullptr ? 0 : zero->bytes.view.size();
    if (zero != nullptr && zeros != 1 &&
        zeros != static_cast<std::size_t>(from.shape[static_cast<std::size_t>(axis)]))
      return std::nullopt;
    std::vector<std::byte> bytes(from.bytes.view.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t column = axis == 1 ? i % columns : i / columns;
      const int value = number(from, i) - (zeros == 0 ? 0 : number(*zero, zeros == 1 ? 0 : column));
      if (value < -128 || value > 127) return std::nullopt;
      bytes[i] = static_cast<std::byte>(value);
    }
    HostTensor tensor;
    tensor.dtype = kInt8;
    tensor.shape = from.shape;
    tensor.bytes = CopyBytes({bytes.data(), bytes.size()});
    return tensor;
  }

  bool changed_ = false;
};

}  // namespace

void PackBytes(Graph* graph) { BytePacking(graph).Run(); }

}  // namespace rewire::compiler
