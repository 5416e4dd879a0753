// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/passes.h"

#include "rewire/kernels/contract/libraries.h"

namespace rewire::compiler {

std::span<const Pass> Passes() {
  using enum PassEffect;
  static constexpr Pass kPasses[] = {
      {.name = "dead-code", .run = RemoveDeadCode, .effect = kNothing},
      {.name = "common-subexpressions", .run = ShareCommonSubexpressions, .effect = kNothing},
      {.name = "keep-f32", .run = KeepF32, .effect = kSpecialValues},
      {.name = "dequantize-late", .run = DequantizeLate, .effect = kNothing},
      {.name = "integer-products", .run = UseIntegerProducts, .effect = kSpecialValues},
      {.name = "integer-groups", .run = RunIntegerGroups, .effect = kNothing},
      {.name = "quantize-early", .run = QuantizeEarly, .effect = kNothing},
      {.name = "fuse-quantized-add", .run = FuseQuantizedAdd, .effect = kRounding},
      {.name = "map-bytes", .run = MapBytes, .effect = kNothing},
      {.name = "cut-pads", .run = CutPads, .effect = kNothing},
      {.name = "fold-affine", .run = FoldAffine, .effect = kSpecialValues},
      {.name = "split-batch-norm", .run = SplitBatchNorm, .effect = kSpecialValues, .for_host = true},
      {.name = "fuse-hard-swish", .run = FuseHardSwish, .effect = kSpecialValues},
      {.name = "fuse-gelu", .run = FuseGelu, .effect = kSpecialValues},
      {.name = "fuse-swish", .run = FuseSwish, .effect = kRounding},
      {.name = "fuse-layer-norm", .run = FuseLayerNorm, .effect = kSpecialValues},
      {.name = "fuse-attention", .run = FuseAttention, .effect = kSpecialValues, .for_host = true},
      {.name = "fuse-group-norm", .run = FuseGroupNorm, .effect = kSpecialValues},
      {.name = "gather-early", .run = GatherEarly, .effect = kNothing},
      {.name = "multiply-embeddings", .run = MultiplyEmbeddings, .effect = kSumOrder},
      {.name = "square", .run = Square, .effect = kRounding},
      {.name = "tiny-weights", .run = DropTinyWeights, .effect = kSpecialValues},
      {.name = "winograd", .run = UseWinograd, .effect = kSpecialValues, .for_host = true},
      {.name = "pack-bytes", .run = PackBytes, .effect = kSpecialValues, .for_host = true},
      {.name = "pack-products",
       .run = PackProducts,
       .effect = kSpecialValues,
       .strict_effect = kSumOrder,
       .for_host = true},
      {.name = "pack-integers", .run = PackIntegers, .effect = kRounding, .for_host = true},
      {.name = "pack-onednn",
       .run = PackOneDnn,
       .effect = kSpecialValues,
       .library = names::kOneDnnLibrary,
       .for_host = true},
      {.name = "transpose-late", .run = TransposeLate, .effect = kNothing},
      {.name = "channels-last", .run = ChannelsLast, .effect = kSumOrder, .for_host = true},
      {.name = "drop-transposes", .run = DropTransposes, .effect = kNothing},
      {.name = "permute-weights", .run = PermuteWeights, .effect = kNothing},
      {.name = "fuse-quantized-mean", .run = FuseQuantizedMean, .effect = kRounding, .for_host = true},
      {.name = "fuse-quantized-prelu", .run = FuseQuantizedPRelu, .effect = kRounding, .for_host = true},
      {.name = "add-residuals",
       .run = AddResiduals,
       .effect = kSpecialValues,
       .strict_effect = kSumOrder,
       .for_host = true},
      {.name = "round-early", .run = RoundEarly, .effect = kSpecialValues, .for_host = true},
      {.name = "fuse-separable", .run = FuseSeparable, .effect = kSumOrder, .for_host = true},
      {.name = "fuse-elementwise",
       .run = FuseElementwise,
       .effect = kRounding,
       .strict_effect = kNothing,
       .for_host = true},
      {.name = "share-constants", .run = ShareConstants, .effect = kNothing},
      {.name = "compute-at-load", .run = ComputeAtLoad, .effect = kNothing, .for_host = true},
      {.name = "place", .run = Place, .effect = kSpecialValues},
      {.name = "overlap-exchanges", .run = OverlapExchanges, .effect = kNothing},
      {.name = "carry-in-place", .run = CarryInPlace, .effect = kNothing},
      {.name = "branches", .run = MakeBranches, .effect = kNothing, .for_host = true},
      {.name = "in-place", .run = WriteInPlace, .effect = kNothing},
      {.name = "arena", .run = PlanArena, .effect = kNothing},
      {.name = "shape-arena", .run = PlanShapeArena, .effect = kNothing},
  };
  return kPasses;
}

const char* PassEffectText(PassEffect effect) {
  switch (effect) {
    case PassEffect::kNothing:
      return "nothing";
    case PassEffect::kSumOrder:
      return "order of sums";
    case PassEffect::kRounding:
      return "rounding";
    case PassEffect::kSpecialValues:
      return "special values";
  }
  return "";
}

}  // namespace rewire::compiler
