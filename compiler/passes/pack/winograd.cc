// SPDX-License-Identifier: Apache-2.0
//
// Runs convolutions of 3 x 3 windows, and of volumes by such windows of several planes, in Winograd's form
// (docs/kernels.md), which multiplies a quarter as often, where the images and channels are such that this
// saves more than its transforms take. Its weights are four times as large, so they are made when a program
// is loaded. If they are larger than the second cache, small images take longer to read them than to multiply
// by them. In a program of bf16 the direct form multiplies twice as fast, and reads an eighth of the weights.
// There Winograd's form is used where an estimate of both says that it is faster. A CPU with tiles multiplies
// images so much faster that it never is. Volumes go by vectors there, too.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kPoints = 36;      // of a tile of 4 x 4 outputs
constexpr std::int64_t kTileOutputs = 4;  // along an axis

class Winograd : public Packing {
 public:
  using Packing::Packing;

  void Run() {
    weight_byte_ = WeightByte();
    ForEachKernel([&](Node* node) {
      if (node->kernel == names::kConv && IsWorthIt(*node)) Convert(node);
    });
  }

 private:
  bool IsWorthIt(const Node& node) const {
    if (!IsFloats(node.inputs[1]) || !(node.inputs[0]->type.dtype == kFloat32)) return false;
    if (node.extents.size() != 1 || node.extents[0].shape != nullptr) return false;
    const Ints& dims = node.inputs[1]->constant->shape;
    if ((dims.size() != 4 && dims.size() != 5) || IntAttribute(node, "group", 1) != 1) return false;
    if (graph_.bf16 && graph_.tiles && dims.size() == 4) return false;
    if (dims[dims.size() - 2] != 3 || dims.back() != 3 || PlanesOf(dims) < 1 || TapsOf(dims) > kMostTaps)
      return false;
    if (!HasNoSteps(node)) return false;
    // With fewer channels the transforms take longer than the products. The weights are four times as large,
    // and more of them would come from memory.
    constexpr std::int64_t kLeastChannels = 8, kMostWeights = 256 * 256;
    const std::int64_t windows = dims[0] * DepthOf(dims);
    if (dims[0] < kLeastChannels || dims[1] < kLeastChannels || windows > kMostWeights) return false;
    if (TilesOf(node.extents[0].dims) < kLeastTiles || !TilesAreFull(node)) return false;
    // Smaller weights lie in the second cache while all groups of tiles are multiplied by them.
    constexpr std::int64_t kSmallWeights = 128 * 128;
    if (!graph_.bf16 && windows <= kSmallWeights) return true;
    return CyclesOf(node) < CyclesOfDirect(node);
  }

  // The planes of weights [M, C, 3, 3] or [M, C, planes, 3, 3].
  static std::int64_t PlanesOf(const Ints& weights) { return weights.size() == 5 ? weights[2] : 1; }
  // The windows of 3 x 3 that an output is the sum of.
  static std::int64_t DepthOf(const Ints& weights) { return weights[1] * PlanesOf(weights); }

  // Along the planes there may be some.
  static bool HasNoSteps(const Node& node) {
    const std::optional<Ints> strides = IntsAttribute(node, "strides");
    if (!strides || strides->size() < 2) return true;
    return std::all_of(strides->end() - 2, strides->end(), [](std::int64_t stride) { return stride == 1; });
  }

  // Cycles of both forms, fitted to measurements of 156 layers on a Zen 4. They hold for a core that
  // multiplies 16 floats in a cycle, or as many pairs of bf16, and has a second cache of 1 MiB. That never
  // holds weights, since other layers run in between.
  double CyclesOf(const Node& node) const {
    const Ints& weights = node.inputs[1]->constant->shape;
    const double channels = VectorsOf(weights[0]) + VectorsOf(weights[1]);
    const double products = kPoints * static_cast<double>(DepthOf(weights)) * VectorsOf(weights[0]);
    constexpr double kTile = 300, kTransforms = 250;  // for each tile, and for 16 channels of it
    constexpr double kImageByte = 0.15, kCache = 1 << 20;
    const double image = 4 * SquaresOf(node, 1) * static_cast<double>(weights[0] + weights[1]);
    return SquaresOf(node, kTileOutputs) * (products + kTile + kTransforms * channels) +
           kImageByte * std::max(0.0, image - kCache) + weight_byte_ * 4 * kPackedColumns * products;
  }
  double CyclesOfDirect(const Node& node) const {
    const Ints& weights = node.inputs[1]->constant->shape;
    constexpr double kPosition = 18, kTaps = 9;
    const std::int64_t units = graph_.bf16 ? (weights[1] + 1) / 2 : weights[1];
    const double products = kTaps * static_cast<double>(units * PlanesOf(weights)) * VectorsOf(weights[0]);
    return SquaresOf(node, 1) * (products + kPosition) + weight_byte_ * 4 * kPackedColumns * products;
  }
  // To read a byte of weights: from memory, or from the third cache if that can hold all weights.
  double WeightByte() {
    double bytes = 0;
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (const Node* node : block->nodes) {
        for (const Value* input : node->inputs) {
          if (input != nullptr && input->constant)
            bytes += static_cast<double>(input->constant->bytes.view.size());
        }
      }
    });
    constexpr double kCache = 2 << 20;  // Winograd's form has four times as many
    return bytes > kCache ? 0.2 : 0.03;
  }

  static double VectorsOf(std::int64_t channels) {
    const std::int64_t vectors = PackedColumns(channels) / kPackedColumns;
    return static_cast<double>(vectors);
  }
  // How many squares of `side` by `side` cover the output. Where its size is unknown, it is taken to be the
  // smaller the more channels there are, as in most models.
  static double SquaresOf(const Node& node, std::int64_t side) {
    const Ints& weights = node.inputs[1]->constant->shape;
    const std::int64_t usual = std::max<std::int64_t>(8, 2560 / std::max(weights[0], weights[1]));
    const Shape& dims = node.extents[0].dims;
    double count = 1;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (axis == 1) continue;
      const bool in_squares = axis + 2 >= dims.size();
      const std::int64_t size = dims[axis].constant().value_or(in_squares ? usual : 1);
      count *= static_cast<double>(in_squares ? (size + side - 1) / side : size);
    }
    return count;
  }

  // With fewer, products have too few rows.
  static constexpr std::int64_t kLeastTiles = 4;

  // The tiles of an image [N, C, H, W] or [N, C, planes, H, W]. An image of unknown size is taken to be
  // large.
  static std::int64_t TilesOf(const Shape& dims) {
    std::int64_t tiles = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i == 1) continue;
      const bool in_squares = i + 2 >= dims.size();
      const std::int64_t size = dims[i].constant().value_or(in_squares ? 4 * kLeastTiles : 1);
      tiles *= in_squares ? (size + 3) / 4 : size;
      if (tiles >= kLeastTiles) return tiles;
    }
    return tiles;
  }

  // With a dilation, tiles lie in the images that every second or third position makes up. If these are
  // small, little of a tile is used. An image of unknown size is taken to be large.
  static bool TilesAreFull(const Node& node) {
    const std::optional<Ints> dilations = IntsAttribute(node, "dilations");
    if (!dilations) return true;
    double used = 1;
    for (std::size_t axis = dilations->size() < 3 ? 0 : 1; axis < dilations->size(); ++axis) {
      const std::int64_t dilation = (*dilations)[axis];
      if (dilation == 1) continue;
      if (dilation < 1) return false;
      const std::int64_t size = node.extents[0].dims[axis + 2].constant().value_or(64);
      const std::int64_t of_image = (size + dilation - 1) / dilation;
      const std::int64_t computed = (of_image + 3) / 4 * 4;
      used *= static_cast<double>(of_image) / static_cast<double>(computed);
    }
    return used > 0.6;
  }

  double weight_byte_ = 0;  // cycles

  void Convert(Node* node) {
    Value* weights = node->inputs[1];
    const Ints dims = weights->constant->shape;
    if (graph_.bf16) {
      // The file has them in bf16. The program computes with floats.
      Node* round = OnWeights(&graph_, names::kCast, weights, {});
      weights = AddOutput(&graph_, round, weights->name + ".bf16", TensorOf(kBFloat16, ShapeOfInts(dims)));
    }
    Node* prepare = OnWeights(&graph_, names::kPackedWinogradWeights, weights, {});
    prepare->at_load = true;
    Value* packed =
        AddOutput(&graph_, prepare, weights->name + ".winograd",
                  TensorOf(kFloat32, ShapeOfInts({kPoints, PackedColumns(dims[0]), DepthOf(dims)})));
    BecomePackedConv(node, names::kPackedWinograd, packed);
  }
};

}  // namespace

void UseWinograd(Graph* graph) { Winograd(graph).Run(); }

}  // namespace rewire::compiler
