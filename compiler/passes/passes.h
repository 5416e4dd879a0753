// SPDX-License-Identifier: Apache-2.0
//
// The passes over the graph, in the order in which they run. A pass is a function in a file of its own,
// called after its name, and a row in passes.cc. Each pass can be disabled by its name, and programs are
// correct without any of them. docs/passes.md is made from these comments and rows.
#pragma once

#include <cstdint>
#include <span>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// The effect that a pass may have on results, beside those of the model's operators one by one. Each includes
// those before it.
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
// Leaves out casts to 16-bit floats and back between kernels that compute in f32.
void KeepF32(Graph* graph);
// Runs max pools and transposes on integers and dequantizes their results.
void DequantizeLate(Graph* graph);
// Turns Conv (of one group or depthwise), MatMul and Gemm of dequantized integers and constants into scaled
// products of the integers. Such models have QuantizeLinear and DequantizeLinear around float operators. A
// bias of 32-bit integers in steps of both scales stays one. The mean of an image becomes a product by ones.
void UseIntegerProducts(Graph* graph);
// Runs integer convolutions of groups with constant weights in f32, but for depthwise ones, which
// `pack-integers` takes. It does so only where f32 holds every partial sum exactly: at most 258 products per
// sum.
void RunIntegerGroups(Graph* graph);
// Quantizes the result of an integer product, or bytes of another scale, before max pools, reshapes,
// transposes, slices, Concat and Where, where the model does so behind them. They then work on bytes, and the
// product writes these itself. The bytes are the same, because quantization keeps the order of numbers.
void QuantizeEarly(Graph* graph);
// Turns the sum of two dequantized tensors that is quantized again into one kernel. A relu or clip may come
// in between.
void FuseQuantizedAdd(Graph* graph);
// Looks up what is a function of a byte. Chains of elementwise nodes with constants between DequantizeLinear
// and QuantizeLinear have 256 results, which are computed once.
void MapBytes(Graph* graph);
// Makes the pads of a convolution smaller where a slice cuts off what they have added at an end, as exporters
// write causal convolutions.
void CutPads(Graph* graph);
// Moves batch normalization, and factors and terms per channel, into the weights of the convolution before
// them. Weights that the model has as f16 are rounded to f16 again, but not with `--strict`.
void FoldAffine(Graph* graph);
// Turns other batch normalization by constants into a product and a sum, with a factor and a term for each
// channel. They work with the channels last, and in one call with what is elementwise around them.
void SplitBatchNorm(Graph* graph);
// Turns x * clip(x + 3, 0, 6) / 6 into one kernel. Here and for Gelu, a constant that had 16 bits may be as
// far off as rounding to them allows.
void FuseHardSwish(Graph* graph);
// Turns Gelu by erf, or its approximation by tanh, into one kernel.
void FuseGelu(Graph* graph);
// Turns x * sigmoid(x) into one kernel.
void FuseSwish(Graph* graph);
// Turns normalization over the last axis into one kernel.
void FuseLayerNorm(Graph* graph);
// Makes one kernel of matmul(softmax(matmul(q, transpose(k)) * scale + bias), v), which keeps no matrix of
// scores. The factor may stand at q or k. A choice between scores and a very low number, below the bias, is
// the kernel's mask. Cutting q into heads and joining them belongs to it. A query that may see no key gives
// 0, where the model would give NaN.
void FuseAttention(Graph* graph);
// Turns an instance normalization between two reshapes, which is how exporters write GroupNorm, into
// normalization of groups of channels. Factors and terms per channel behind it become its own.
void FuseGroupNorm(Graph* graph);
// Takes rows out of a constant table (8-bit embeddings) before the rows are converted and scaled, not after.
void GatherEarly(Graph* graph);
// Multiplies a constant table whose rows a recurrent layer reads by the layer's input weights, when
// compiling. The new table has a column for each gate and unit. So this is for tables of few rows: it takes
// at most 1.1 of the bytes that it replaces, or 4 KiB more than these, and at most 16 MiB. A table of 16-bit
// floats becomes one of f32.
void MultiplyEmbeddings(Graph* graph);
// Turns x to the power 2 into x * x.
void Square(Graph* graph);
// Makes subnormal weights of products 0 (below 1.2e-38), where the largest of the tensor is above 2^-40.
// Intel's CPUs take 150 cycles for a product of a subnormal number. Biases and all other weights stay as they
// are. `vm-compile` and the report say how many, and where.
void DropTinyWeights(Graph* graph);
// Runs convolutions of 3 x 3 windows with 8 channels and more in Winograd's form, which multiplies a quarter
// as often. Dilations are allowed. Volumes by windows of several planes of 3 x 3 have that form, too: their
// planes count as channels do. Its weights are four times as many. Layers of more than 128 x 128 channels
// have it only where reading them takes less than it saves: images of 7 x 7 stay as they are. With
// `--precision bf16` it is used only where it is faster than products in bf16, and with `--cpu tiles` for
// volumes alone. The weights in the file stay as they are; their transform, four times as large, is made when
// a program is loaded.
void UseWinograd(Graph* graph);
// Keeps the weights of MatMul and Gemm in 8 bits if DequantizeLinear, or a cast and a product, makes floats
// of them, with one scale or one for each column. `rewire.packed.matmul_bytes` multiplies floats by them as
// exactly as products of floats are. An LSTM by such weights, as DynamicQuantizeLSTM, becomes
// `rewire.lstm_bytes`, which rounds inputs and states to 16 bits.
void PackBytes(Graph* graph);
// Packs constant weights and uses the kernels for packed weights (`rewire.packed.*`), with bias and
// activation, and with factors and terms behind the activation that are constants of one element. It packs
// products, recurrent layers, and convolutions of one group or depthwise (with up to 4 outputs of each
// channel). Transposed convolutions are packed if they have one group, no pads, and strides that are the
// window: each input position then makes outputs of its own. Packed weights are the same on every CPU and go
// into the file.
void PackProducts(Graph* graph);
// Packs constant weights of integers: those of ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul and
// what `integer-products` makes. Convolutions have one group or are depthwise. The kernels include bias,
// scale, activation and the quantization of the result.
void PackIntegers(Graph* graph);
// Runs other convolutions of groups with oneDNN. `__init` packs the weights. The pass is skipped if that
// library is missing.
void PackOneDnn(Graph* graph);
// Lets reshapes of transposed tokens give images with the channels last, which are transposed behind it. So
// `channels-last` can go on with them.
void TransposeLate(Graph* graph);
// Runs packed convolutions, and what lies between them, in the order [N, H, W, C], for images of one to three
// spatial axes. In between may be elementwise operators, pools, group normalization, Concat, Split, Slice,
// Pad, Resize, reductions, and Squeeze and Unsqueeze of spatial axes. Values in the model's order are made
// only where something needs them. A reduction that drops the channels or all spatial axes gives the same in
// both orders. A transpose past axes of size 1 alone becomes a reshape.
void ChannelsLast(Graph* graph);
// Turns two transposes with a reshape between them into a reshape, where all elements end up in their places.
// So tokens become an image with the channels last, or an image tokens. Elementwise operators may stand
// between the reshape and the second transpose.
void DropTransposes(Graph* graph);
// Puts the rows of constant weights in another order, where a transpose stands in front of a product of
// integers and moves elements within its rows. The transpose becomes a reshape. Sums of integers are the same
// in any order; products of floats stay.
void PermuteWeights(Graph* graph);
// Turns the mean of a dequantized tensor along successive axes that is quantized again into one kernel.
void FuseQuantizedMean(Graph* graph);
// Turns a PRelu of a dequantized tensor that is quantized again into one kernel, if it has a slope for each
// channel and the channels are last.
void FuseQuantizedPRelu(Graph* graph);
// Lets a packed product add the other term of the sum behind it, and apply the activation behind that, and
// factors and terms as in `pack-products`.
void AddResiduals(Graph* graph);
// Lets products, depthwise convolutions and what lies between them write bf16 where all that read it can take
// that. It runs with `--precision bf16` alone, and with `fuse-elementwise`, which joins the two dtypes.
void RoundEarly(Graph* graph);
// Makes one kernel of a depthwise convolution and the product that alone reads it, in f32. It hands over
// parts of what lies between, which stay in the caches. Products of more than 131,072 weights stay apart,
// because the kernel would read them for each part.
void FuseSeparable(Graph* graph);
// Turns elementwise nodes of f32 that feed each other into one call of `rewire.fused`, so that results in
// between stay in the first cache. It absorbs casts from and to f16 around it, and conversions from and to
// bytes. Conversions that join no call absorb such casts, too. A node joins only if nothing else reads its
// result, and the result has the dimensions of the last one. Single nodes, of f16 too, become a call if their
// kernel has no vectors, or if a short last axis is broadcast. Runs behind all passes that look for such
// nodes.
void FuseElementwise(Graph* graph);
// Merges constants that have a name and all elements in common, and what `__init` makes of them. So weights
// that several nodes use are packed once, and file and program hold them once. Equal constants of different
// names stay apart, because a user may replace one of them. Runs behind the passes that pack.
void ShareConstants(Graph* graph);
// Leaves constants out of the file where that makes it much smaller. They are made when the program is
// linked.
void ComputeAtLoad(Graph* graph);
// Moves nodes to the device that the model is compiled for (`--device`), those in blocks too, and inserts the
// copies. For a device, passes that choose forms of the CPU's kernels are skipped.
void Place(Graph* graph);
// Splits sums over ranks on a device into a call that begins and one that waits, and moves nodes that do not
// need the sum in between. Without such nodes a call stays as it is.
void OverlapExchanges(Graph* graph);
// Lets a loop update a value that it carries in the memory of the first one, if a kernel may write over it
// and nothing reads the former value afterwards. A first value that is not the loop's own is copied before
// the loop. Must run behind all passes that move nodes.
void CarryInPlace(Graph* graph);
// Runs small operators that do not depend on each other at once, on several threads. It is skipped with
// `--parallel off`.
void MakeBranches(Graph* graph);
// Lets kernels write over an input that nothing reads afterwards, if their rows allow it: elementwise
// kernels, softmax, normalizations, scattered updates, addends. Must run behind all passes that move nodes.
void WriteInPlace(Graph* graph);
// Places tensors of known or limited size in one piece of memory, laid out when compiling. Runs last but one,
// because it holds for these nodes in this order.
void PlanArena(Graph* graph);
// Places tensors whose sizes follow from the inputs in a second piece, laid out in each run. Runs behind
// `arena`, for the same nodes in the same order.
void PlanShapeArena(Graph* graph);

}  // namespace rewire::compiler
