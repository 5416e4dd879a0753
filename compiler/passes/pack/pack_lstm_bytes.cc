// SPDX-License-Identifier: Apache-2.0
//
// Part of pack-bytes: rewire.lstm by weights of floats that were bytes, as DynamicQuantizeLSTM has them,
// becomes rewire.lstm_bytes.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/layout/image_axes.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/pack/byte_weights.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/recurrent.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// Weights [directions, width, depth]: bytes times scales [directions, width].
struct LayerWeights {
  Ints dims;
  std::vector<std::byte> bytes;
  std::vector<float> scales;
};

// A constant that broadcasts to [directions, 1, width], in full.
std::optional<std::vector<float>> OfColumns(const Value* value, std::int64_t directions, std::int64_t width) {
  const float* floats = WantedFloatsOf(value);
  if (floats == nullptr) return std::nullopt;
  Ints dims = value->constant->shape;
  if (dims.size() > 3) return std::nullopt;
  dims.insert(dims.begin(), 3 - dims.size(), 1);
  if ((dims[0] != 1 && dims[0] != directions) || dims[1] != 1 || (dims[2] != 1 && dims[2] != width))
    return std::nullopt;
  std::vector<float> all;
  for (std::int64_t i = 0; i < directions * width; ++i) {
    const std::int64_t d = dims[0] == 1 ? 0 : i / width, column = dims[2] == 1 ? 0 : i % width;
    all.push_back(floats[d * dims[2] + column]);
  }
  return all;
}

// The weights as lowering makes floats of them: turned (bytes - zero) * scale.
std::optional<LayerWeights> LayerWeightsOf(const Value* weights) {
  const Node* turned = SourceOf(weights);
  if (turned == nullptr || turned->kernel != names::kTranspose ||
      IntsAttribute(*turned, "perm") != Ints{0, 2, 1}) {
    return std::nullopt;
  }
  const Node* scaled = SourceOf(turned->inputs[0]);
  if (scaled == nullptr || scaled->kernel != names::kMul) return std::nullopt;
  const Node* floats = SourceOf(scaled->inputs[0]);
  const Value* zero = nullptr;
  if (floats != nullptr && floats->kernel == names::kSub) {
    zero = floats->inputs[1];
    floats = SourceOf(floats->inputs[0]);
  }
  if (floats == nullptr || floats->kernel != names::kCast) return std::nullopt;
  const Value* stored = floats->inputs[0];
  if (!IsByte(stored) || stored->type.rank() != 3 || ElementsOf(stored) == nullptr) return std::nullopt;
  const Ints& from = stored->constant->shape;  // [directions, depth, width]
  const std::int64_t directions = from[0], depth = from[1], width = from[2];
  if (directions < 1 || depth < 1 || width < 1) return std::nullopt;
  std::optional<std::vector<float>> scales = OfColumns(scaled->inputs[1], directions, width);
  std::optional<std::vector<float>> zeros = std::vector<float>(static_cast<std::size_t>(directions * width));
  if (zero != nullptr) zeros = OfColumns(zero, directions, width);
  if (!scales || !zeros) return std::nullopt;
  LayerWeights found{{directions, width, depth}, {}, *std::move(scales)};
  found.bytes.resize(stored->constant->bytes.view.size());
  const bool is_unsigned = stored->constant->dtype == kUInt8;
  for (std::size_t i = 0; i < found.bytes.size(); ++i) {
    const auto columns = static_cast<std::size_t>(width), rows = static_cast<std::size_t>(depth);
    const std::size_t d = i / (rows * columns), row = i / columns % rows, column = i % columns;
    const int byte = std::to_integer<int>(stored->constant->bytes.view[i]);
    const int value = is_unsigned || byte < 128 ? byte : byte - 256;
    const float difference = static_cast<float>(value) - (*zeros)[d * columns + column];
    // Zeros of floats may leave fractions, or NaN.
    if (!(difference >= -128 && difference <= 127) || difference != std::trunc(difference))
      return std::nullopt;
    found.bytes[(d * columns + column) * rows + row] = static_cast<std::byte>(static_cast<int>(difference));
  }
  return found;
}

// Each direction packed for itself, one behind the other.
Value* PackedDirections(Graph* graph, const std::string& name, const LayerWeights& weights) {
  const std::int64_t directions = weights.dims[0], width = weights.dims[1], depth = weights.dims[2];
  const auto of_one = static_cast<std::size_t>(width * depth);
  const std::int64_t padded = (depth + 3) / 4 * 4;
  std::vector<Value*> all;
  for (std::int64_t d = 0; d < directions; ++d) {
    Value* stored = graph->NewValue(name, TensorOf(kInt8, ShapeOfInts({width, depth})));
    HostTensor tensor;
    tensor.dtype = kInt8;
    tensor.shape = {width, depth};
    tensor.bytes = CopyBytes({weights.bytes.data() + static_cast<std::size_t>(d) * of_one, of_one});
    stored->constant = std::move(tensor);
    Node* pack = OnWeights(graph, names::kPackedPackIntegers, stored,
                           {{"order", std::string("OI")}, {"segments", std::int64_t{1}}});
    all.push_back(AddOutput(graph, pack, name + ".packed",
                            TensorOf(kInt8, ShapeOfInts({PackedColumns(width), padded}))));
    AddOutput(graph, pack, name + ".sums", TensorOf(kInt32, ShapeOfInts({width})));
  }
  if (directions == 1) return all[0];
  Node* joined = OnWeights(graph, names::kConcat, all[0], {{"axis", std::int64_t{0}}});
  joined->inputs = all;
  return AddOutput(graph, joined, name + ".packed",
                   TensorOf(kInt8, ShapeOfInts({directions * PackedColumns(width), padded})));
}

}  // namespace

bool PackLstmBytes(Graph* graph, Node* node) {
  // Peepholes are of floats.
  if (node->inputs.size() < 3 || OptionalInput(*node, 7) != nullptr ||
      !(node->inputs[0]->type.dtype == kFloat32)) {
    return false;
  }
  // Without w, x has been multiplied already.
  const Value* w = node->inputs[1];
  const bool has_w = !(w->IsConstant() && w->constant->shape == Ints{0});
  const std::optional<LayerWeights> of_r = LayerWeightsOf(node->inputs[2]);
  const std::optional<LayerWeights> of_w = has_w && of_r ? LayerWeightsOf(w) : std::nullopt;
  if (!of_r || (has_w && !of_w)) return false;
  const std::int64_t hidden = of_r->dims[2];
  if (of_r->dims[1] != 4 * hidden || (has_w && of_w->dims[1] != 4 * hidden)) return false;
  const auto scales = [&](const std::string& name, const LayerWeights& weights) {
    return NewFloats(graph, name + ".scale", {weights.dims[0], weights.dims[1]}, weights.scales);
  };
  std::vector<Value*> inputs = node->inputs;
  Value* none = NewFloats(graph, "none", {0}, {});
  inputs.resize(7, none);
  inputs.push_back(has_w ? scales(w->name, *of_w) : none);
  inputs.push_back(scales(node->inputs[2]->name, *of_r));
  if (has_w) inputs[1] = PackedDirections(graph, w->name, *of_w);
  inputs[2] = PackedDirections(graph, node->inputs[2]->name, *of_r);
  node->inputs = std::move(inputs);
  node->kernel = names::kLstmBytes;
  SetAttribute(node, "hidden_size", hidden);
  return true;
}

}  // namespace rewire::compiler
