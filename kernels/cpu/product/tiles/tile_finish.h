// SPDX-License-Identifier: Apache-2.0
//
// Finishing follows the sums of a product by tiles: bias, addend, activation, and rounding to bf16.
#pragma once

#include "rewire/kernels/cpu/product/panels/panels.h"

namespace rewire::kernel::cpu {

// Finishes any number of rows by at most one panel. Row i of the sums begins at sums + i * kPanelWidth, and
// is readable up to kHalfPanel or kPanelWidth sums. The tile's rows and panel are not read.
using TileFinishKernel = void (*)(const PanelTile& tile, const float* sums);

// For the best instruction set that this CPU and the build support. If `any_instruction` is false, it uses
// only instructions that every CPU of the set has.
TileFinishKernel ChooseTileFinishKernel(bool any_instruction);
// The same, chosen once per process, with any instruction.
TileFinishKernel BestTileFinishKernel();

}  // namespace rewire::kernel::cpu
