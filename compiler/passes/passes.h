// SPDX-License-Identifier: Apache-2.0
//
// The passes over the graph, in the order in which they run. A pass is a function in a file of its own and a
// row in passes.cc. Each pass can be disabled by its name, and programs are correct without any of them.
#pragma once

#include <cstdint>
#include <span>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// What results may become other than those of the model's operators one by one. Each includes those before
// it.
enum class PassEffect : std::uint8_t {
  kNothing,
  kSumOrder,       // sums are added in another order, or products and sums are rounded once
  kRounding,       // a formula is computed in another way, which is as exact
  kSpecialValues,  // NaN, infinity, overflow or numbers near 0 where the operators give others
};

struct Pass {
  const char* name;
  void (*run)(Graph* graph);
  PassEffect effect;
  // The same under Graph::strict. A pass that then changes more than the order of sums is skipped.
  PassEffect strict_effect = effect;
  // A kernel library that the result needs. If it is missing, the pass is skipped.
  const char* library = nullptr;
  // It chooses forms that only kernels of the CPU have. It is skipped for a model that is compiled for a
  // device.
  bool for_host = false;
};

std::span<const Pass> Passes();
// Whether the pass runs where results must be those of the model's operators but for the order of sums.
constexpr bool IsStrict(const Pass& pass) { return pass.strict_effect <= PassEffect::kSumOrder; }
// "nothing", "order of sums", "rounding" or "special values".
const char* PassEffectText(PassEffect effect);

// Removes nodes that no output depends on. Runs before the other passes, so that they need not look at such
// nodes.
void RemoveDeadCode(Graph* graph);
// Merges nodes that do the same computation on the same inputs.
void ShareCommonSubexpressions(Graph* graph);
// Merges constants that have a name and all elements in common, and nodes of Graph::init that make the same
// of them. So weights that several nodes use are packed once, and the file holds them once. Runs behind the
// passes that pack.
void ShareConstants(Graph* graph);
// Leaves constants to be packed or computed when a program is loaded, where they would make the file much
// larger than what they are made of.
void ComputeAtLoad(Graph* graph);

// Runs nodes that move or select elements on integers, before these are dequantised.
void DequantizeLate(Graph* graph);
// Leaves out casts to 16-bit floats and back between kernels that compute in f32.
void KeepF32(Graph* graph);
// Runs convolutions of 3 x 3 windows in Winograd's form where that is faster.
void UseWinograd(Graph* graph);
// Lets packed products add a residual, the other term of the sum behind them.
void AddResiduals(Graph* graph);
// Recognises normalisation of groups of channels, and takes factors and terms per channel into it.
void FuseGroupNorm(Graph* graph);
// Recognises x * sigmoid(x).
void FuseSwish(Graph* graph);
// Turns sums of dequantised tensors that are quantised again into one kernel.
void FuseQuantizedAdd(Graph* graph);
// The same for PRelus with a slope for each position along the last axis.
void FuseQuantizedPRelu(Graph* graph);
// Looks up what is a function of a byte, between tensors of 8-bit integers.
void MapBytes(Graph* graph);
// Turns products of dequantised integers into products of the integers, which are then dequantised.
void UseIntegerProducts(Graph* graph);
// Runs integer convolutions of groups in f32 where that is exact.
void UseFloatsForGroups(Graph* graph);
// Lets convolutions leave out what a slice cuts off of their ends.
void CutOffPads(Graph* graph);
// Moves batch normalisation, and factors and terms per channel, into the weights before them.
void FoldAffine(Graph* graph);
// Turns batch normalisation that is not moved so into a product and a sum.
void SplitBatchNorm(Graph* graph);
// Turns x * clip(x + 3, 0, 6) / 6 into one kernel.
void FuseHardSwish(Graph* graph);
// Takes rows out of a constant table before its elements are processed further.
void GatherEarly(Graph* graph);
// Multiplies constant tables whose rows a recurrent layer reads by its input weights, when compiling.
void MultiplyEmbeddings(Graph* graph);
// Turns x to the power 2 into x * x.
void Square(Graph* graph);
// Makes subnormal weights of products 0.
void DropTinyWeights(Graph* graph);
// Turns x * (1 + erf(x / sqrt(2))) / 2 into one kernel.
void FuseGelu(Graph* graph);
// Turns normalisation by mean and variance over the last axis into one kernel.
void FuseLayerNorm(Graph* graph);
// Turns products with softmaxed scores, and the scores' own products, into attention.
void FuseAttention(Graph* graph);
// Keeps weights of products in 8 bits where the model has them so.
void PackBytes(Graph* graph);
// Turns convolutions and products with constant weights into those of packed weights, including the bias and
// activation behind them.
void PackProducts(Graph* graph);
// Does the same for products and convolutions of integers. The kernels also turn the sums into floats, and
// into integers again.
void PackIntegers(Graph* graph);
// Runs convolutions of groups with constant weights with oneDNN. `__init` packs the weights.
void PackForOneDnn(Graph* graph);
// Runs packed convolutions, and what lies between them, with the channels last.
void ChannelsLast(Graph* graph);
// Turns reshapes of transposed tokens into transposes of images with the channels last.
void TransposeLate(Graph* graph);
// Turns two transposes with a reshape between them into a reshape, where they leave all elements in place.
void DropTransposes(Graph* graph);
// Lets products and depthwise convolutions round their outputs to bf16 where only products read them that
// would round them.
void RoundEarly(Graph* graph);
// Turns a depthwise convolution and the product behind it into one kernel.
void FuseSeparable(Graph* graph);
// Turns elementwise nodes that feed each other into one kernel. Runs behind all passes that look for such
// nodes.
void FuseElementwise(Graph* graph);
// Moves nodes to the device that the model is compiled for (Graph::device), if there is one.
void PlaceOnDevice(Graph* graph);
// Runs small nodes that do not depend on each other at once, on several threads.
void RunBranchesAtOnce(Graph* graph);
// Lets elementwise kernels write over inputs that die there. Must run behind all passes that move nodes.
void WriteInPlace(Graph* graph);
// Places tensors of known or limited size that stay inside the function in one piece of memory
// (Graph::arena). Runs last, because it holds for these nodes in this order.
void PlanArena(Graph* graph);
// Places tensors whose sizes follow from the inputs in a second piece of memory (Graph::shape_arena). Runs
// after PlanArena, for the same nodes in the same order.
void PlanShapeArena(Graph* graph);

}  // namespace rewire::compiler
