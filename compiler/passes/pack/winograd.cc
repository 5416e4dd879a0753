// SPDX-License-Identifier: Apache-2.0
//
// Runs convolutions of 3 x 3 windows in Winograd's form (docs/kernels.md), which multiplies a quarter as
// often, where the images and channels are such that this saves more than its transforms take. Its weights
// are four times as large, so they are made when a program is loaded.
#include <cstdint>
#include <vector>

#include "rewire/compiler/passes/pack/packing.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kPoints = 36;  // of a tile of 4 x 4 outputs

class Winograd : public Packing {
 public:
  using Packing::Packing;

  void Run() {
    ForEachKernel([&](Node* node) {
      if (node->kernel == "rewire.conv" && IsWorthIt(*node)) Convert(node);
    });
  }

 private:
  static bool IsWorthIt(const Node& node) {
    if (FloatsOf(node.inputs[1]) == nullptr || !(node.inputs[0]->type.dtype == kFloat32)) return false;
    if (node.extents.size() != 1 || node.extents[0].shape != nullptr) return false;
    const Ints& dims = node.inputs[1]->constant->shape;
    if (dims.size() != 4 || dims[2] != 3 || dims[3] != 3 || IntAttribute(node, "group", 1) != 1) return false;
    if (!AreOnes(node, "strides")) return false;
    // With fewer channels the transforms take longer than the products. The weights are four times as large,
    // and more of them would come from memory.
    constexpr std::int64_t kLeastChannels = 8, kMostWeights = 256 * 256;
    if (dims[0] < kLeastChannels || dims[1] < kLeastChannels || dims[0] * dims[1] > kMostWeights)
      return false;
    return TilesOf(node.extents[0].dims) >= kLeastTiles && TilesAreFull(node);
  }

  static bool AreOnes(const Node& node, const char* name) {
    const Attribute* found = FindAttribute(node, name);
    const auto* values = found == nullptr ? nullptr : std::get_if<Array<std::int64_t>>(&found->value);
    if (values == nullptr) return true;
    for (const std::int64_t value : *values) {
      if (value != 1) return false;
    }
    return true;
  }

  // With fewer, products have too few rows.
  static constexpr std::int64_t kLeastTiles = 4;

  // Of [N, C, H, W]. An image of unknown size is taken to be large.
  static std::int64_t TilesOf(const Shape& dims) {
    std::int64_t tiles = 1;
    for (const std::size_t i : {0, 2, 3}) {
      const std::int64_t size = dims[i].constant().value_or(i == 0 ? 1 : 4 * kLeastTiles);
      tiles *= i == 0 ? size : (size + 3) / 4;
      if (tiles >= kLeastTiles) return tiles;
    }
    return tiles;
  }

  // With a dilation, tiles lie in the images that every second or third position makes up. If these are
  // small, little of a tile is used. An image of unknown size is taken to be large.
  static bool TilesAreFull(const Node& node) {
    const Attribute* found = FindAttribute(node, "dilations");
    const auto* dilations = found == nullptr ? nullptr : std::get_if<Array<std::int64_t>>(&found->value);
    if (dilations == nullptr) return true;
    double used = 1;
    for (std::size_t axis = 0; axis < dilations->size(); ++axis) {
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

  void Convert(Node* node) {
    Value* weights = node->inputs[1];
    const Ints dims = weights->constant->shape;
    if (graph_.bf16) {
      // The file has them in bf16. The program computes with floats.
      Node* round = OnWeights(&graph_, "rewire.cast", weights, {});
      weights = AddOutput(&graph_, round, weights->name + ".bf16", TensorOf(kBFloat16, ShapeOfInts(dims)));
    }
    Node* prepare = OnWeights(&graph_, "rewire.packed.winograd_weights", weights, {});
    prepare->at_load = true;
    Value* packed = AddOutput(&graph_, prepare, weights->name + ".winograd",
                              TensorOf(kFloat32, ShapeOfInts({kPoints, PackedColumns(dims[0]), dims[1]})));
    BecomePackedConv(node, "rewire.packed.winograd", packed);
  }
};

}  // namespace

void UseWinograd(Graph* graph) { Winograd(graph).Run(); }

}  // namespace rewire::compiler
