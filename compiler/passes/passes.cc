// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/passes.h"

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
      {"fold-affine", FoldAffine},
      {"fuse-hard-swish", FuseHardSwish},
      {"fuse-gelu", FuseGelu},
      {"fuse-swish", FuseSwish},
      {"fuse-layer-norm", FuseLayerNorm},
      {"gather-early", GatherEarly},
      {"multiply-embeddings", MultiplyEmbeddings},
      {"square", Square},
      {"winograd", UseWinograd},
      {"pack-products", PackProducts},
      {"pack-integers", PackIntegers},
      {"pack-onednn", PackForOneDnn, "librewire_kernels_onednn.so"},
      {"channels-last", ChannelsLast},
      {"add-residuals", AddResiduals},
      {"in-place", WriteInPlace},
      {"arena", PlanArena},
      {"shape-arena", PlanShapeArena},
  };
  return kPasses;
}

}  // namespace rewire::compiler
