// SPDX-License-Identifier: Apache-2.0
//
// Packs constant weights of convolutions, transposed ones too, and matrix products, and uses the kernels of
// packed weights (docs/kernels.md), with the bias and activation that follow. Packed weights are the same on
// every CPU, so they go into the file. They are f32, or bf16 if the graph may compute so (Graph::bf16).
// Weights that the model has as f16 stay so: the kernels make floats of them.
//
// Packed convolutions have the channels last. A transpose is inserted before and behind each of them. The
// later pass channels-last removes most of these again.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/recurrent.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

class ProductPacking : public Packing {
 public:
  using Packing::Packing;

  void Run() {
    ForEachKernel([&](Node* node) {
      if (node->kernel == names::kConv) PackConv(node);
      if (node->kernel == names::kConvTranspose) PackConvTranspose(node);
      if (node->kernel == names::kMatMul) PackMatMul(node);
      if (node->kernel == names::kGemm) PackGemm(node);
      if (node->kernel == names::kLstm) PackRecurrent(node, 4);
      if (node->kernel == names::kGru) PackRecurrent(node, 3);
      if (node->kernel == names::kRnn) PackRecurrent(node, 1);
    });
  }

 private:
  // The output of a kernel that works on weights ahead of all runs.
  Value* Prepared(const std::string& kernel, Value* weights, DLDataType dtype, const Ints& dims,
                  std::vector<Attribute> attributes) {
    Node* node = OnWeights(&graph_, kernel, weights, std::move(attributes));
    return AddOutput(&graph_, node, weights->name + ".packed", TensorOf(dtype, ShapeOfInts(dims)));
  }

  // The window of a convolution; a product has that of one position. `strides` rows of the input are rounded
  // for a row of the output.
  struct Taps {
    std::int64_t all = 1, of_row = 1, strides = 1;
    bool of_image = false;  // of a convolution
  };

  // Whether bf16 saves more time than it takes to round the left side, in cycles for each row of the output.
  // A cycle multiplies a vector of columns by one float or by one pair. An odd number of channels is rounded
  // row by row.
  static bool IsWorthRounding(std::int64_t columns, std::int64_t channels, const Taps& taps) {
    const std::int64_t vectors = PackedColumns(columns) / kPackedColumns;
    const std::int64_t saved = taps.all * (channels - (channels + 1) / 2) * vectors;
    const std::int64_t rounding = (channels + 5) / 6 + (channels % 2 == 0 ? 0 : 8);
    return saved > 2 * taps.strides * rounding;
  }

  // The same of a CPU with tiles, which multiplies two vectors of columns by a float, or in two cycles by 16
  // pairs. kernels/cpu/convolution/tile_image.cc has the same estimate of how windows are written.
  static bool IsWorthTiles(std::int64_t columns, std::int64_t channels, const Taps& taps) {
    const std::int64_t vectors = PackedColumns(columns) / kPackedColumns, panels = (vectors + 1) / 2;
    const std::int64_t pairs = (channels + 1) / 2, rows = taps.all / taps.of_row;
    const std::int64_t wide = (taps.of_row * pairs + 15) / 16, narrow = (pairs + 15) / 16;
    const std::int64_t multiplying = 2 * panels * rows * std::min(wide, taps.of_row * narrow);
    // Pairs of one channel are written and multiplied half for nothing.
    const std::int64_t writing = 2 + 2 * wide + (channels == 1 ? 3 * taps.of_row / 2 : 0);
    const std::int64_t finding = taps.all == 1 ? 0 : 8;  // the window's rows, for products of floats
    return taps.all * channels * vectors / 2 + finding > multiplying + writing;
  }

  // In bf16 where the graph may compute so, and that is faster. A product may have few rows: it then waits
  // for its weights, of which bf16 has half the bytes.
  Value* Packed(Value* weights, std::int64_t columns, std::int64_t channels, const char* order,
                const Taps& taps) {
    const bool by_vectors = !graph_.tiles || !taps.of_image;
    const bool bf16 = graph_.bf16 && ((by_vectors && IsWorthRounding(columns, channels, taps)) ||
                                      (graph_.tiles && IsWorthTiles(columns, channels, taps)));
    const DLDataType dtype = bf16 ? kBFloat16 : IsWidenedF16(weights) ? kFloat16 : kFloat32;
    return PackedAs(dtype, weights, columns, channels, order, taps.all);
  }

  Value* PackedAs(DLDataType dtype, Value* weights, std::int64_t columns, std::int64_t channels,
                  const char* order, std::int64_t taps = 1) {
    const std::int64_t depth = (dtype == kBFloat16 ? (channels + 1) / 2 * 2 : channels) * taps;
    return Prepared(names::kPackedPack, weights, dtype, {PackedColumns(columns), depth},
                    {{"order", std::string(order)}});
  }

  void PackMatMul(Node* node) {
    Value* x = node->inputs[0];
    Value* weights = node->inputs[1];
    if (!IsFloats(weights) || weights->type.rank() != 2 || x->type.rank() < 2) return;
    const Ints dims = weights->constant->shape;
    if (dims[0] < 1 || dims[1] < 1) return;
    Value* bias = TakeBias(&edit_, node, dims[1]);
    BecomeMatMul(node, Packed(weights, dims[1], dims[0], "IO", {}), bias, dims[1]);
  }

  void PackGemm(Node* node) {
    Value* weights = node->inputs[1];
    const auto gemm = AttributesOf<contract::GemmAttributes>(*node);
    if (!IsFloats(weights) || !gemm.IsPlain()) return;
    const bool transposed = gemm.transpose_b;
    const Ints dims = weights->constant->shape;
    const std::int64_t depth = dims[transposed ? 1 : 0];
    const std::int64_t columns = dims[transposed ? 0 : 1];
    if (depth < 1 || columns < 1) return;
    Value* bias = nullptr;
    if (node->inputs.size() > 2 && node->inputs[2] != nullptr) {
      bias = ChannelVector(&graph_, node->inputs[2], 2, 1, columns);
      if (bias == nullptr) return;
    }
    BecomeMatMul(node, Packed(weights, columns, depth, transposed ? "OI" : "IO", {}), bias, columns);
  }

  void BecomeMatMul(Node* node, Value* packed, Value* bias, std::int64_t columns) {
    node->kernel = names::kPackedMatMul;
    node->attributes = {{"columns", columns}};
    node->inputs = {node->inputs[0], packed};
    if (bias != nullptr) node->inputs.push_back(bias);
    TakeMovedActivation(&edit_, node);
  }

  // Both weights [directions, gates * hidden, inputs]. Each direction is packed for itself.
  void PackRecurrent(Node* node, std::int64_t gates) {
    if (node->inputs.size() < 3 || !IsFloats(node->inputs[1]) || !IsFloats(node->inputs[2])) return;
    const std::size_t first = node->inputs[1]->constant->shape == Ints{0} ? 2 : 1;
    for (std::size_t i = first; i < 3; ++i) {
      const Ints& dims = node->inputs[i]->constant->shape;
      if (dims.size() != 3 || dims[0] < 1 || dims[1] < 1 || dims[2] < 1 || dims[1] % gates != 0) return;
      // The gates of a GRU may be multiplied in two parts: then each must begin a panel.
      const bool in_parts = gates == 3 && IntAttribute(*node, "linear_before_reset", 0) == 0;
      if (in_parts && dims[1] / gates % kPackedColumns != 0) return;
    }
    for (std::size_t i = first; i < 3; ++i) node->inputs[i] = PackedDirections(node->inputs[i]);
    SetAttribute(node, "packed", std::int64_t{1});
  }

  // One behind the other.
  Value* PackedDirections(Value* weights) {
    const Ints dims = weights->constant->shape;
    std::vector<Value*> packed;
    for (std::int64_t d = 0; d < dims[0]; ++d)
      packed.push_back(PackedAs(kFloat32, Matrix(weights, {dims[1], dims[2]}, d), dims[1], dims[2], "OI"));
    if (packed.size() == 1) return packed[0];
    const std::string name = packed[0]->name;
    Node* node = OnWeights(&graph_, names::kConcat, packed[0], {{"axis", std::int64_t{0}}});
    node->inputs = packed;
    return AddOutput(&graph_, node, name,
                     TensorOf(kFloat32, ShapeOfInts({dims[0] * PackedColumns(dims[1]), dims[2]})));
  }

  void PackConv(Node* node) {
    Value* weights = node->inputs[1];
    if (!IsFloats(weights) || !(node->inputs[0]->type.dtype == kFloat32)) return;
    if (node->extents.size() != 1 || node->extents[0].shape != nullptr) return;
    const Ints dims = weights->constant->shape;
    if (dims.size() < 3 || dims.size() > 5 || dims[0] < 1 || dims[1] < 1) return;
    const std::int64_t taps = TapsOf(dims);
    const std::int64_t groups = IntAttribute(*node, "group", 1);
    // With several output channels for each input channel, the kernel repeats the image.
    constexpr std::int64_t kMostRepeats = 4;
    const std::int64_t multiplier =
        groups > 1 ? std::clamp<std::int64_t>(dims[0] / groups, 1, kMostRepeats) : 1;
    const bool depthwise = IsDepthwise(dims, groups, multiplier);
    if (taps < 1 || (groups != 1 && !depthwise)) return;
    if ((!depthwise && RowsAreWhole(*node) ? taps / dims.back() : taps) > kMostTaps) return;
    if (depthwise) {
      Value* packed = Prepared(names::kTranspose, Matrix(weights, {dims[0], taps}), kFloat32, {taps, dims[0]},
                               {{"perm", Ints{1, 0}}});
      BecomePackedConv(node, names::kPackedDepthwise, packed);
      if (multiplier > 1) SetAttribute(node, "multiplier", multiplier);
    } else {
      BecomePackedConv(node, names::kPackedConv,
                       Packed(weights, dims[0], dims[1], "OI", {taps, dims.back(), StridesOf(*node), true}));
    }
  }

  // Windows that do not overlap and leave no gaps. The output's shape is then known.
  void PackConvTranspose(Node* node) {
    Value* weights = node->inputs[1];
    if (!IsFloats(weights) || !(node->inputs[0]->type.dtype == kFloat32)) return;
    if (node->extents.size() != 1 || node->extents[0].shape != nullptr) return;
    const Ints dims = weights->constant->shape;
    if (dims.size() < 3 || dims.size() > 5 || !IsDisjoint(*node, dims) || !IsWhole(*node, dims)) return;
    const std::int64_t in = dims[0], out = dims[1], taps = TapsOf(dims), of_row = dims.back();
    if (in < 1 || out < 1 || taps < 1) return;
    BecomePackedImage(node, names::kPackedConvTranspose,
                      PackedDirections(ByRow(weights, in, out, taps, of_row)),
                      {{"channels", out}, {"kernel_shape", Ints(dims.begin() + 2, dims.end())}});
  }

  // Weights [in, out, taps] as [rows of the window, taps of a row * out, in].
  Value* ByRow(Value* weights, std::int64_t in, std::int64_t out, std::int64_t taps, std::int64_t of_row) {
    const Ints by_row = {taps / of_row, of_row * out, in};
    if (weights->at_load) {
      Value* turned =
          FoldedAtLoad(&graph_, names::kTranspose, {graph_.NewView(weights->name, weights, {in, out, taps})},
                       {taps, out, in}, {{"perm", Ints{2, 1, 0}}});
      return graph_.NewView(turned->name, turned, by_row);
    }
    const float* floats = FloatsOf(weights);
    std::vector<float> rows(static_cast<std::size_t>(in * out * taps));
    for (std::int64_t i = 0; i < in * out * taps; ++i) {
      const std::int64_t tap = i % taps, channel = i / taps % out;
      const std::int64_t to = tap * out + channel;
      rows[static_cast<std::size_t>(to * in + i / taps / out)] = floats[i];
    }
    return NewFloats(&graph_, weights->name, by_row, rows);
  }

  // True if each element of a transposed convolution's output is in one window.
  static bool IsDisjoint(const Node& node, const Ints& weights) {
    const std::optional<Ints> strides = IntsAttribute(node, "strides");
    if (!strides || !std::equal(strides->begin(), strides->end(), weights.begin() + 2, weights.end()))
      return false;
    return IntAttribute(node, "group", 1) == 1 && AreAll(node, "pads", 0) && AreAll(node, "dilations", 1) &&
           AreAll(node, "output_padding", 0);
  }

  // True if disjoint windows are all of the output. An attribute output_shape asks for other sizes.
  static bool IsWhole(const Node& node, const Ints& weights) {
    const Shape &x = node.inputs[0]->type.dims, &out = node.outputs[0]->type.dims;
    for (std::size_t i = 2; i < weights.size(); ++i) {
      if (!(out[i] == x[i] * DimExpr(weights[i]))) return false;
    }
    return true;
  }

  // The product of the strides.
  static std::int64_t StridesOf(const Node& node) {
    const std::optional<Ints> strides = IntsAttribute(node, "strides");
    std::int64_t product = 1;
    constexpr std::int64_t kMost = 1 << 20;  // more makes no difference
    if (strides) {
      for (const std::int64_t value : *strides)
        product = std::clamp<std::int64_t>(product * std::min(value, kMost), 1, kMost);
    }
    return product;
  }

  // True if the window never leaves the image, and its positions along the last axis lie side by side.
  static bool RowsAreWhole(const Node& node) {
    return FindAttribute(node, "auto_pad") == nullptr && AreAll(node, "pads", 0) &&
           AreAll(node, "dilations", 1);
  }

  // The elements of the part with this number under another shape. Parts are as large as that.
  Value* Matrix(Value* weights, const Ints& dims, std::int64_t part = 0) {
    const auto bytes = static_cast<std::size_t>(dims[0] * dims[1]) * sizeof(float);
    if (weights->constant->bytes.view.size() == bytes) return graph_.NewView(weights->name, weights, dims);
    if (weights->at_load) return PartAtLoad(&graph_, weights, part);
    Value* matrix = graph_.NewValue(weights->name, TensorOf(kFloat32, ShapeOfInts(dims)));
    matrix->constant = weights->constant;
    matrix->constant->shape = dims;
    auto& view = matrix->constant->bytes.view;
    view = view.subspan(static_cast<std::size_t>(part) * bytes, bytes);
    return matrix;
  }
};

}  // namespace

void PackProducts(Graph* graph) { ProductPacking(graph).Run(); }

}  // namespace rewire::compiler
