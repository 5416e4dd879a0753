// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/edit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "rewire/compiler/ir/half.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {

Edit::Edit(Graph* graph) : graph_(*graph) {
  Walk(graph->main);
  Walk(graph->init);
}

void Edit::Walk(const Block& block) {
  for (Node* node : block.nodes) {
    home_[node] = &block;
    for (const Value* input : node->inputs) {
      if (input != nullptr) uses_[input].push_back({node, &block});
    }
    for (const Node::Extent& extent : node->extents) {
      if (extent.shape != nullptr) uses_[extent.shape].push_back({nullptr, &block});
    }
    for (const Block& inner : node->blocks) Walk(inner);
  }
  for (const Value* result : block.results) {
    if (result != nullptr) uses_[result].push_back({nullptr, &block});
  }
}

std::size_t Edit::UseCount(const Value* value) const {
  const auto found = uses_.find(value);
  return found == uses_.end() ? 0 : found->second.size();
}

Node* Edit::OnlyUser(const Value* value) const {
  const auto found = uses_.find(value);
  if (found == uses_.end() || found->second.size() != 1) return nullptr;
  const Use& use = found->second[0];
  if (use.node == nullptr || IsErased(use.node)) return nullptr;
  return value->producer != nullptr && home_.at(value->producer) == use.block ? use.node : nullptr;
}

void Edit::TakeOver(Node* node, Node* user) {
  // A user that keeps the shape states its size in symbols that may stand for this very node's dimensions.
  // They say nothing without the node's own expressions.
  const bool same = ShapeText(node->outputs[0]->type.dims) == ShapeText(user->outputs[0]->type.dims);
  graph_.MoveSymbols({{node->outputs[0], user->outputs[0]}});
  node->outputs[0] = user->outputs[0];
  node->outputs[0]->producer = node;
  if (!same) node->extents = user->extents;
  node->source = JoinNotes(node->source, user->source);
  Erase(user);
}

void Edit::Absorb(Node* passed, Node* last) {
  const Shape& dims = passed->outputs[0]->type.dims;
  const bool same = ShapeText(dims) == ShapeText(last->outputs[0]->type.dims);
  // Only a node whose dimensions have symbols of their own has another expression of its size.
  if (same && ShapeText(passed->extents[0].dims) != ShapeText(dims)) last->extents = passed->extents;
  graph_.MoveSymbols({{passed->outputs[0], last->outputs[0]}});
  last->source = JoinNotes(last->source, passed->source);
  Erase(passed);
}

void Edit::Finish() {
  Sweep(&graph_.main);
  Sweep(&graph_.init);
}

void Edit::Sweep(Block* block) const {
  std::erase_if(block->nodes, [&](const Node* node) { return IsErased(node); });
  for (Node* node : block->nodes) {
    for (Block& inner : node->blocks) Sweep(&inner);
  }
}

const Attribute* FindAttribute(const Node& node, const std::string& name) {
  const auto found = std::find_if(node.attributes.begin(), node.attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  return found == node.attributes.end() ? nullptr : &*found;
}

std::int64_t IntAttribute(const Node& node, const std::string& name, std::int64_t fallback) {
  const Attribute* attribute = FindAttribute(node, name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<std::int64_t>(&attribute->value);
  return value == nullptr ? fallback : *value;
}

std::optional<std::vector<std::int64_t>> IntsAttribute(const Node& node, const std::string& name) {
  const Attribute* attribute = FindAttribute(node, name);
  const auto* values = attribute == nullptr ? nullptr : std::get_if<Array<std::int64_t>>(&attribute->value);
  if (values == nullptr) return std::nullopt;
  return std::vector<std::int64_t>(values->begin(), values->end());
}

double FloatAttribute(const Node& node, const std::string& name, double fallback) {
  const Attribute* attribute = FindAttribute(node, name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<double>(&attribute->value);
  return value == nullptr ? fallback : *value;
}

void SetAttribute(Node* node, const std::string& name, AttributeValue value) {
  for (Attribute& attribute : node->attributes) {
    if (attribute.name != name) continue;
    attribute.value = std::move(value);
    return;
  }
  node->attributes.push_back({name, std::move(value)});
}

Value* OptionalInput(const Node& node, std::size_t i) {
  Value* value = i < node.inputs.size() ? node.inputs[i] : nullptr;
  const bool empty =
      value != nullptr && value->IsConstant() && value->constant->shape == std::vector<std::int64_t>{0};
  return empty ? nullptr : value;
}

bool IsFloats(const Value* value) {
  return value != nullptr && value->IsConstant() && value->constant->dtype == kFloat32;
}

const float* FloatsOf(const Value* value) {
  if (!IsFloats(value) || value->at_load) return nullptr;
  return reinterpret_cast<const float*>(value->constant->bytes.view.data());
}

const float* WantedFloatsOf(const Value* value) {
  return IsFloats(value) && ElementsOf(value) != nullptr ? FloatsOf(value) : nullptr;
}

std::optional<float> ScalarOf(const Value* value) {
  const float* elements = FloatsOf(value);
  if (elements == nullptr || value->constant->bytes.view.size() != sizeof(float)) return std::nullopt;
  return *elements;
}

double RoundingOf(const Value* value) {
  const Node* cast = value->folded;
  if (cast == nullptr || cast->kernel != names::kCast || cast->inputs.size() != 1) return 0;
  const DLDataType dtype = cast->inputs[0]->type.dtype;
  return IsHalf(dtype) ? RoundingOfHalf(dtype) : 0;
}

Value* NewFloats(Graph* graph, const std::string& name, const std::vector<std::int64_t>& dims,
                 const std::vector<float>& elements) {
  Value* value = graph->NewValue(name, TensorOf(kFloat32, ShapeOfInts(dims)));
  HostTensor tensor;
  tensor.dtype = kFloat32;
  tensor.shape = dims;
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(float)});
  value->constant = std::move(tensor);
  return value;
}

bool IsWidenedF16(const Value* value) {
  for (const Node* node = value->folded; node != nullptr; node = node->inputs[0]->folded) {
    if (node->kernel == names::kCast) return node->inputs[0]->type.dtype == kFloat16;
    if (node->kind != NodeKind::kReshape && node->kernel != names::kTranspose) return false;
  }
  return false;
}

Value* NewWidened(Graph* graph, Value* half) {
  const HostTensor& tensor = *half->constant;
  std::vector<float> elements(tensor.bytes.view.size() / 2);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.view.data() + sizeof(bits) * i, sizeof(bits));
    elements[i] = FloatOfHalf(tensor.dtype, bits);
  }
  Value* wide = NewFloats(graph, half->name, tensor.shape, elements);
  Node* cast = graph->NewNode(NodeKind::kKernel);  // as if it had been folded
  cast->kernel = names::kCast;
  cast->inputs = {half};
  cast->outputs = {wide};
  cast->extents.push_back({wide->type.dims, nullptr});
  wide->folded = cast;
  return wide;
}

namespace {

// Whether rounding to f16 moves each element by at most 2^-11 of the largest of its part. That must be finite
// there, and no subnormal number.
bool FitF16(std::span<const float> elements, std::size_t parts) {
  constexpr float kLargest = 65504, kLeast = 0x1p-14F;
  const std::size_t size = elements.size() / std::max<std::size_t>(1, parts);
  for (std::size_t part = 0; part < parts; ++part) {
    float most = 0;
    for (const float element : elements.subspan(part * size, size)) {
      if (!(std::fabs(element) <= kLargest)) return false;
      most = std::max(most, std::fabs(element));
    }
    if (most != 0 && most < kLeast) return false;
  }
  return true;
}

}  // namespace

Value* NewFloatsFrom(Graph* graph, const Value* origin, const std::vector<std::int64_t>& dims,
                     const std::vector<float>& elements) {
  const auto parts = static_cast<std::size_t>(dims.empty() ? 1 : dims[0]);
  if (graph->strict || !IsWidenedF16(origin) || !FitF16(elements, parts))
    return NewFloats(graph, origin->name, dims, elements);
  std::vector<std::uint16_t> rounded(elements.size());
  std::transform(elements.begin(), elements.end(), rounded.begin(), ffi_shim::FloatToHalf);
  Value* half = graph->NewValue(origin->name, TensorOf(kFloat16, ShapeOfInts(dims)));
  HostTensor tensor;
  tensor.dtype = kFloat16;
  tensor.shape = dims;
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(rounded.data()), rounded.size() * sizeof(std::uint16_t)});
  half->constant = std::move(tensor);
  return NewWidened(graph, half);
}

Value* PartAtLoad(Graph* graph, Value* value, std::int64_t part) {
  Value* index = graph->NewValue("part " + std::to_string(part), TensorOf(kInt64, {}));
  HostTensor tensor;
  tensor.dtype = kInt64;
  tensor.bytes = CopyBytes({reinterpret_cast<const std::byte*>(&part), sizeof(part)});
  index->constant = std::move(tensor);
  const std::vector<std::int64_t>& dims = value->constant->shape;
  return FoldedAtLoad(graph, names::kGather, {value, index}, {dims.begin() + 1, dims.end()},
                      {{"axis", std::int64_t{0}}});
}

const Node* ProducerOf(const Value* value, const char* kernel) {
  const Node* node = value->producer;
  return node != nullptr && node->kind == NodeKind::kKernel && node->kernel == kernel ? node : nullptr;
}

std::optional<double> TakeScalar(const Edit& edit, Value** value, double* rounding) {
  const Node* node = (*value)->producer;
  if (node == nullptr || node->inputs.size() != 2 || edit.UseCount(*value) != 1) return std::nullopt;
  for (std::size_t i : {0, 1}) {
    const std::optional<float> scalar = ScalarOf(node->inputs[1 - i]);
    if (!scalar) continue;
    if (node->kernel == names::kMul || (node->kernel == names::kDiv && i == 0)) {
      *value = node->inputs[i];
      if (rounding != nullptr) *rounding = RoundingOf(node->inputs[1 - i]);
      return node->kernel == names::kMul ? *scalar : 1 / static_cast<double>(*scalar);
    }
  }
  return std::nullopt;
}

namespace {

// Whether a constant of f32 has one element per channel, or one for all, as PerChannel says.
bool HasChannels(const Value* value, int rank, int axis, std::int64_t channels) {
  if (!IsFloats(value) || value->type.rank() > rank) return false;
  if (value->constant->bytes.view.size() == sizeof(float)) return true;
  const std::vector<std::int64_t>& dims = value->constant->shape;
  const std::size_t shift = static_cast<std::size_t>(rank) - dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool is_channels = i + shift == static_cast<std::size_t>(axis);
    if (dims[i] != (is_channels ? channels : 1)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<float>> PerChannel(const Value* value, int rank, int axis, std::int64_t channels) {
  if (!HasChannels(value, rank, axis, channels)) return std::nullopt;
  const float* elements = WantedFloatsOf(value);
  if (elements == nullptr) return std::nullopt;
  if (const std::optional<float> scalar = ScalarOf(value))
    return std::vector<float>(static_cast<std::size_t>(channels), *scalar);
  return std::vector<float>(elements, elements + channels);
}

Value* ChannelVector(Graph* graph, Value* value, int rank, int axis, std::int64_t channels) {
  if (!HasChannels(value, rank, axis, channels)) return nullptr;
  if (!value->at_load)
    return NewFloats(graph, value->name, {channels}, *PerChannel(value, rank, axis, channels));
  const bool one = value->constant->bytes.view.size() == sizeof(float) && channels != 1;
  return one ? nullptr : graph->NewView(value->name, value, {channels});
}

Value* FoldedAtLoad(Graph* graph, const char* kernel, std::vector<Value*> inputs,
                    const std::vector<std::int64_t>& dims, std::vector<Attribute> attributes) {
  Value* result = graph->NewValue(inputs[0]->name + ".computed", {});
  BecomeAtLoad(result, kFloat32, dims);
  Node* node = graph->NewNode(NodeKind::kKernel);
  node->kernel = kernel;
  node->source = inputs[0]->name;
  node->attributes = std::move(attributes);
  node->inputs = std::move(inputs);
  node->outputs.push_back(result);
  node->extents.push_back({result->type.dims, nullptr});
  result->folded = node;
  return result;
}

}  // namespace rewire::compiler
