// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/weights.h"

#include <algorithm>
#include <cstring>

#include "rewire/base/dtype.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

constexpr int kMostMakers = 8;  // nodes between a weight and its constants

// True for a node that takes weights of two axes and more out of a stack of them.
bool TakesFromStack(const Node& node) {
  return node.kind == NodeKind::kKernel && node.kernel == names::kGather && node.inputs.size() == 2 &&
         node.inputs[0]->type.ranked && node.inputs[0]->type.rank() > 2 && node.inputs[1]->type.ranked &&
         IntAttribute(node, "axis", 0) == 0;
}

// How many of the inputs are weights. Behind them are positions.
std::size_t WeightCount(const Node& node) { return TakesFromStack(node) ? 1 : node.inputs.size(); }

bool MakesWeights(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.returns || !node.blocks.empty() ||
      (node.extents.size() == 1 && node.extents[0].shape != nullptr))
    return false;
  if (node.kind == NodeKind::kReshape) return node.inputs.size() == 1;
  return node.kind == NodeKind::kKernel &&
         (node.kernel == names::kDequantizeLinear || node.kernel == names::kTranspose ||
          TakesFromStack(node) || IsElementwise(graph, node, node.inputs.size()));
}

bool IsWeightWithin(const Graph& graph, const Value& value, int steps) {
  if (value.IsConstant()) return !value.at_load && value.type.IsTensor() && value.type.ranked;
  const Node* node = value.producer;
  return node != nullptr && steps > 0 && MakesWeights(graph, *node) && !node->inputs.empty() &&
         std::all_of(node->inputs.begin(),
                     node->inputs.begin() + static_cast<std::ptrdiff_t>(WeightCount(*node)),
                     [&](const Value* input) {
                       return input != nullptr && IsWeightWithin(graph, *input, steps - 1);
                     });
}

// The parts of the inputs that make this part of the output. nullopt: they do not follow from it.
std::optional<std::vector<Sharding>> NeededOf(const Node& node, const Sharding& output, std::int64_t ranks) {
  std::vector<Sharding> needed(node.inputs.size());
  const Shape& dims = node.outputs[0]->type.dims;
  if (node.kind == NodeKind::kReshape) {
    const std::optional<Sharding> from = ReshapeOf(output, dims, node.inputs[0]->type.dims, ranks);
    if (!from) return std::nullopt;
    needed[0] = *from;
    return needed;
  }
  if (node.kernel == names::kTranspose) {
    const auto perm = IntsAttribute(node, "perm");
    const auto axis = static_cast<std::size_t>(output.axis);
    needed[0] = output.Along(perm ? static_cast<int>((*perm)[axis])
                                  : static_cast<int>(dims.size()) - 1 - output.axis);
    return needed;
  }
  if (TakesFromStack(node)) {
    const int axis = output.axis - node.inputs[1]->type.rank() + 1;
    if (axis < 1) return std::nullopt;
    needed[0] = output.Along(axis);
    return needed;
  }
  const bool dequantizes = node.kernel == names::kDequantizeLinear;
  const std::int64_t block = dequantizes ? IntAttribute(node, "block_size", 0) : 0;
  std::int64_t scaled = dequantizes ? IntAttribute(node, "axis", 1) : 0;
  if (scaled < 0) scaled += static_cast<std::int64_t>(dims.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Shape& own = node.inputs[i]->type.dims;
    if (dequantizes && i > 0) {
      if (ProductOf(own).Is(1)) continue;
      if (block == 0) {
        if (scaled == output.axis) needed[i] = output.Along(0);
        continue;
      }
      needed[i] = output;
      if (scaled != output.axis) continue;
      for (std::int64_t& segment : needed[i].segments) {
        if (segment % (block * ranks) != 0) return std::nullopt;
        segment /= block;
      }
      continue;
    }
    const int axis = output.axis - static_cast<int>(dims.size() - own.size());
    if (axis >= 0 && !own[static_cast<std::size_t>(axis)].Is(1)) needed[i] = output.Along(axis);
  }
  return needed;
}

// Calls `visit` with each constant of a weight and the part of it that `sharding` needs. False if there is no
// such part.
template <typename Visit>
bool ForEachPart(const Graph& graph, const Value& value, const Sharding& sharding, std::int64_t ranks,
                 const Visit& visit) {
  if (!Divides(sharding, value.type.dims, ranks)) return false;
  if (value.IsConstant()) {
    visit(value, sharding);
    return sharding.IsWhole() || sharding.outer.IsConstant();
  }
  if (value.producer == nullptr || !MakesWeights(graph, *value.producer)) return false;
  std::vector<Sharding> needed(value.producer->inputs.size());
  if (sharding.IsSplit()) {
    std::optional<std::vector<Sharding>> found = NeededOf(*value.producer, sharding, ranks);
    if (!found) return false;
    needed = *std::move(found);
  }
  for (std::size_t i = 0; i < WeightCount(*value.producer); ++i) {
    if (!ForEachPart(graph, *value.producer->inputs[i], needed[i], ranks, visit)) return false;
  }
  return true;
}

std::uint64_t BytesOf(const Value& constant) { return constant.constant->bytes.view.size(); }

}  // namespace

bool IsWeight(const Graph& graph, const Value& value) { return IsWeightWithin(graph, value, kMostMakers); }

std::uint64_t BytesOfWeight(const Value& value) {
  const Node* maker = value.IsConstant() ? value.folded : value.producer;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; maker != nullptr && i < WeightCount(*maker); ++i)
    bytes += BytesOfWeight(*maker->inputs[i]);
  if (!value.IsConstant()) return bytes;
  return maker == nullptr ? BytesOf(value) : std::min(bytes, BytesOf(value));
}

std::vector<const Value*> PositionsOf(const Value& weight) {
  if (weight.IsConstant() || weight.producer == nullptr) return {};
  const Node& maker = *weight.producer;
  std::vector<const Value*> positions(maker.inputs.begin() + static_cast<std::ptrdiff_t>(WeightCount(maker)),
                                      maker.inputs.end());
  for (std::size_t i = 0; i < WeightCount(maker); ++i) {
    const std::vector<const Value*> inner = PositionsOf(*maker.inputs[i]);
    positions.insert(positions.end(), inner.begin(), inner.end());
  }
  return positions;
}

std::vector<ConstantPart> PartsOfConstants(const Graph& graph, const Value& value, const Sharding& sharding,
                                           std::int64_t ranks) {
  std::vector<ConstantPart> parts;
  ForEachPart(graph, value, sharding, ranks, [&](const Value& constant, const Sharding& part) {
    parts.push_back({&constant, part});
  });
  return parts;
}

std::uint64_t BytesOfPart(const Graph& graph, const Value& value, const Sharding& sharding,
                          std::int64_t ranks) {
  std::uint64_t bytes = 0;
  for (const ConstantPart& part : PartsOfConstants(graph, value, sharding, ranks))
    bytes += BytesOfWeight(*part.constant) / static_cast<std::uint64_t>(part.sharding.IsSplit() ? ranks : 1);
  return bytes;
}

bool CanCutWeight(const Graph& graph, const Value& value, const Sharding& sharding, std::int64_t ranks) {
  return sharding.IsSplit() && IsWeight(graph, value) &&
         ForEachPart(graph, value, sharding, ranks, [](const Value&, const Sharding&) {});
}

Value* WeightCutter::CutConstant(Value* value, const Sharding& sharding) {
  Value*& part = parts_[{value, sharding.Text()}];
  if (part != nullptr) return part;
  const HostTensor& whole = *value->constant;
  const auto axis = static_cast<std::size_t>(sharding.axis);
  std::int64_t before = *sharding.outer.constant();
  for (std::size_t i = 0; i < axis; ++i) before *= whole.shape[i];
  HostTensor tensor;
  tensor.dtype = whole.dtype;
  tensor.shape = whole.shape;
  tensor.shape[axis] = whole.shape[axis] / ranks_;
  const std::size_t size = whole.bytes.view.size();
  // The elements of a position along the axis lie behind each other, so also those of a part.
  const auto steps = static_cast<std::size_t>(before * sharding.RowSize());
  const std::size_t step = steps == 0 ? 0 : size / steps;
  std::byte* to = nullptr;
  tensor.bytes = AllocateBytes(size / static_cast<std::size_t>(ranks_), &to);
  const std::byte* from = whole.bytes.view.data();
  for (std::int64_t row = 0; row < before; ++row) {
    for (const std::int64_t segment : sharding.segments) {
      const std::size_t all = static_cast<std::size_t>(segment) * step;
      const std::size_t own = all / static_cast<std::size_t>(ranks_);
      if (own > 0) std::memcpy(to, from + own * static_cast<std::size_t>(rank_), own);
      to += own;
      from += all;
    }
  }
  part = graph_.NewValue(value->name, TensorOf(value->type.dtype, ShapeOfInts(tensor.shape)));
  part->constant = std::move(tensor);
  part->folded = CutFolded(*value, sharding, part);
  return part;
}

Node* WeightCutter::CutFolded(const Value& value, const Sharding& sharding, Value* part) {
  const Node* maker = value.folded;
  if (maker == nullptr || !MakesWeights(graph_, *maker)) return nullptr;
  const std::optional<std::vector<Sharding>> needed = NeededOf(*maker, sharding, ranks_);
  if (!needed) return nullptr;
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < needed->size(); ++i) {
    Value* input = maker->inputs[i];
    if (input == nullptr || !input->IsConstant()) return nullptr;
    if ((*needed)[i].IsSplit()) {
      if (!CanCutWeight(graph_, *input, (*needed)[i], ranks_)) return nullptr;
      input = CutConstant(input, (*needed)[i]);
    }
    inputs.push_back(input);
  }
  return MakerLike(*maker, std::move(inputs), part);
}

Node* WeightCutter::MakerLike(const Node& maker, std::vector<Value*> inputs, Value* part) {
  Node* node = graph_.NewNode(maker.kind);
  node->kernel = maker.kernel;
  node->attributes = maker.attributes;
  node->flags = maker.flags;
  node->added = maker.added;
  node->source = maker.source;
  node->inputs = std::move(inputs);
  node->outputs.push_back(part);
  node->extents.push_back({part->type.dims, nullptr});
  return node;
}

Value* WeightCutter::Cut(Value* value, const Sharding& sharding, std::vector<Node*>* nodes) {
  if (sharding.IsWhole()) return value;
  if (value->IsConstant()) return CutConstant(value, sharding);
  const Node& maker = *value->producer;
  const std::vector<Sharding> needed = *NeededOf(maker, sharding, ranks_);
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < needed.size(); ++i) inputs.push_back(Cut(maker.inputs[i], needed[i], nodes));
  Type type = value->type;
  type.dims = PartDims(sharding, type.dims, ranks_);
  Value* part = graph_.NewValue(value->name, type);
  part->producer = MakerLike(maker, std::move(inputs), part);
  nodes->push_back(part->producer);
  return part;
}

Value* WeightCutter::CutRows(Value* value, std::int64_t rows, const Sharding& sharding) {
  const auto bytes = static_cast<std::int64_t>(value->constant->bytes.view.size());
  const auto element = static_cast<std::int64_t>(ElementBytes(value->type.dtype));
  const std::int64_t row = bytes / element / rows;
  Value* matrix = graph_.NewView(value->name, value, {rows, row});
  const Sharding split = sharding.axis == 0 ? sharding : Sharding::Split(1, row);
  return CutConstant(matrix, split);
}

Value* WeightCutter::CutBlocked(const Node& product, std::size_t input, const Sharding& sharding) {
  Value* packed = product.inputs[input];
  Value*& part = parts_[{packed, sharding.Text()}];
  if (part != nullptr) return part;
  const Node& packing = *packed->producer;
  const std::int64_t columns = IntAttribute(product, "columns", 0);
  Node* node = graph_.NewNode(NodeKind::kKernel);
  node->kernel = packing.kernel;
  node->attributes = packing.attributes;
  node->source = packing.source;
  for (Value* from : packing.inputs) node->inputs.push_back(CutRows(from, columns, sharding));
  const std::int64_t own = sharding.axis == 0 ? columns / ranks_ : columns;
  SetAttribute(node, "columns", own);
  Shape dims = packed->type.dims;
  constexpr std::int64_t kWidth = 16;  // columns of a panel
  dims[0] = (own + kWidth - 1) / kWidth;
  if (sharding.axis == 1) dims[1] = *dims[1].constant() / ranks_;
  part = graph_.NewValue(packed->name, TensorOf(packed->type.dtype, std::move(dims)));
  part->producer = node;
  node->outputs.push_back(part);
  node->extents.push_back({part->type.dims, nullptr});
  graph_.init.nodes.push_back(node);
  return part;
}

}  // namespace rewire::compiler
