// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/blocked_weights.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "rewire/kernels/contract/product.h"
#include "rewire/vm/loader/ffi_shim/half.h"

namespace rewire::compiler {
namespace {

constexpr std::int64_t kWidth = 16;     // columns of a panel
constexpr std::int64_t kWholeRows = 8;  // a block is a multiple of them
constexpr std::int64_t kMostBlock = 4096;

bool IsConstantFloat(const Value& value) {
  return value.IsConstant() && IsFloat(value.type.dtype) && value.type.dtype.bits <= 32;
}

// A node that works on constants before all runs. Products by the same weights, such as those of a prompt and
// of the steps behind it, share it.
Value* Prepared(Op& op, const std::string& kernel, std::vector<Value*> inputs, const Attributes& attributes,
                Type type) {
  Graph& graph = op.lowering().graph();
  for (const Node* node : graph.init.nodes) {
    if (node->kernel == kernel && node->inputs == inputs && node->attributes == attributes &&
        SameType(node->outputs[0]->type, type))
      return node->outputs[0];
  }
  Node* node = graph.NewNode(NodeKind::kKernel);
  node->kernel = kernel;
  node->attributes = attributes;
  node->source = op.source();
  Value* output = graph.NewValue(inputs[0]->name + ".packed", std::move(type));
  output->producer = node;
  node->inputs = std::move(inputs);
  node->outputs.push_back(output);
  node->extents.push_back({output->type.dims, nullptr});
  graph.init.nodes.push_back(node);
  return output;
}

// Whether f16 holds all scales exactly, as it does where a model of f16 was quantized. Then they take half
// the memory, which decoding waits for.
bool FitHalf(const Value& scales) {
  if (scales.type.dtype == kFloat16) return true;
  const HostTensor* elements = ElementsOf(&scales);
  if (elements == nullptr || !(elements->dtype == kFloat32)) return false;
  const auto bytes = elements->bytes.view;
  for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float scale = 0;
    std::memcpy(&scale, bytes.data() + i, sizeof(scale));
    if (!std::isfinite(scale) || ffi_shim::HalfToFloat(ffi_shim::FloatToHalf(scale)) != scale) return false;
  }
  return true;
}

}  // namespace

bool TakesBlockedWeights(const Value& x, const BlockedWeights& weights) {
  const DLDataType dtype = x.type.dtype;
  const bool zeros_fit = weights.zeros == nullptr || IsConstantFloat(*weights.zeros) ||
                         (weights.zeros->IsConstant() && weights.zeros->type.dtype == kUInt8);
  return IsFloat(dtype) && dtype.bits <= 32 && x.type.rank() > 0 && x.type.dims.back().Is(weights.depth) &&
         (weights.bits == 4 || weights.bits == 8) && weights.codes->IsConstant() &&
         IsConstantFloat(*weights.scales) && zeros_fit && weights.block % kWholeRows == 0 &&
         weights.block <= kMostBlock && weights.depth % weights.block == 0 && weights.columns > 0;
}

Value* MultiplyBlocked(Op& op, Value* x, const BlockedWeights& weights, Value* bias, bool bytes) {
  const std::int64_t panels = (weights.columns + kWidth - 1) / kWidth, blocks = weights.depth / weights.block;
  const Shape terms = {panels, blocks, kWidth};
  const DLDataType scale_dtype = FitHalf(*weights.scales) ? kFloat16 : kFloat32;
  std::vector<Value*> inputs = {
      x,
      Prepared(op, names::kBlockedPack, {weights.codes},
               {{"columns", weights.columns}, {"bits", weights.bits}},
               TensorOf(kUInt8, {panels, weights.depth * kWidth * weights.bits / 8})),
      Prepared(op, names::kBlockedPackScales, {weights.scales}, {{"columns", weights.columns}},
               TensorOf(scale_dtype, terms))};
  if (weights.zeros != nullptr) {
    inputs.push_back(Prepared(op, names::kBlockedPackOffsets, {weights.scales, weights.zeros},
                              {{"columns", weights.columns}, {"bits", weights.bits}},
                              TensorOf(kFloat32, terms)));
  }
  if (bias != nullptr) {
    if (weights.zeros == nullptr) inputs.push_back(op.Missing(kFloat32));
    inputs.push_back(bias);
  }
  Type type = x->type;
  type.dims.back() = weights.columns;
  return op.Call(names::kBlockedMatMul, std::move(inputs),
                 {{"columns", weights.columns},
                  {"block", weights.block},
                  {"bits", weights.bits},
                  {"bytes", std::int64_t{bytes ? 1 : 0}}},
                 std::move(type));
}

}  // namespace rewire::compiler
