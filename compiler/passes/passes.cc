// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/passes.h"

#include "rewire/compiler/passes/memory/carry_in_place.h"

namespace rewire::compiler {

std::span<const Pass> Passes() {
  static constexpr Pass kPasses[] = {
      {"dead-code", RemoveDeadCode},
      {"common-subexpressions", ShareCommonSubexpressions},
      {"keep-f32", KeepF32},
      {"dequantize-late", DequantizeLate},
      {"integer-products", UseIntegerProducts},
      {"integer-groups", UseFloatsForGroups},
      {"fuse-quantized-add", FuseQuantizedAdd},
      {"map-bytes", MapBytes},
      {"cut-pads", CutOffPads},
      {"fold-affine", FoldAffine},
      {"split-batch-norm", SplitBatchNorm, nullptr, true},
      {"fuse-hard-swish", FuseHardSwish},
      {"fuse-gelu", FuseGelu},
      {"fuse-swish", FuseSwish},
      {"fuse-layer-norm", FuseLayerNorm},
      {"fuse-attention", FuseAttention, nullptr, true},
      {"fuse-group-norm", FuseGroupNorm},
      {"gather-early", GatherEarly},
      {"multiply-embeddings", MultiplyEmbeddings},
      {"square", Square},
      {"tiny-weights", DropTinyWeights},
      {"winograd", UseWinograd, nullptr, true},
      {"pack-bytes", PackBytes, nullptr, true},
      {"pack-products", PackProducts, nullptr, true},
      {"pack-integers", PackIntegers, nullptr, true},
      {"pack-onednn", PackForOneDnn, "librewire_kernels_onednn.so", true},
      {"transpose-late", TransposeLate},
      {"channels-last", ChannelsLast, nullptr, true},
      {"drop-transposes", DropTransposes},
      {"fuse-quantized-prelu", FuseQuantizedPRelu, nullptr, true},
      {"add-residuals", AddResiduals, nullptr, true},
      {"round-early", RoundEarly, nullptr, true},
      {"fuse-separable", FuseSeparable, nullptr, true},
      {"fuse-elementwise", FuseElementwise, nullptr, true},
      {"share-constants", ShareConstants},
      {"compute-at-load", ComputeAtLoad, nullptr, true},
      {"place", PlaceOnDevice},
      {"carry-in-place", CarryInPlace},
      {"branches", RunBranchesAtOnce, nullptr, true},
      {"in-place", WriteInPlace},
      {"arena", PlanArena},
      {"shape-arena", PlanShapeArena},
  };
  return kPasses;
}

}  // namespace rewire::compiler
