// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/graph.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace rewire::compiler {
namespace {

// Expressions longer than this get a symbol of their own.
constexpr std::size_t kSimpleText = 96;

// Whether a block makes the value, so far as it is lowered. A body that is lowered again makes its values
// anew, and so does another block at the same address.
bool IsMadeIn(const Value& value, const Block& block) {
  return value.producer == nullptr ||
         std::find(block.nodes.rbegin(), block.nodes.rend(), value.producer) != block.nodes.rend();
}

}  // namespace

Type TensorOf(DLDataType dtype, Shape dims) {
  Type type;
  type.dtype = dtype;
  type.dims = std::move(dims);
  return type;
}

Type UnrankedTensorOf(DLDataType dtype) {
  Type type;
  type.dtype = dtype;
  type.ranked = false;
  return type;
}

Type SequenceOf(Type element) {
  Type type;
  type.kind = TypeKind::kSequence;
  type.element = std::make_shared<const Type>(std::move(element));
  return type;
}

Type OptionalOf(Type element) {
  Type type;
  type.kind = TypeKind::kOptional;
  type.element = std::make_shared<const Type>(std::move(element));
  return type;
}

std::optional<Type> CommonType(const Type& a, const Type& b, const std::function<std::string()>& fresh) {
  if (a.kind != b.kind) return std::nullopt;
  if (!a.IsTensor()) {
    if (a.empty || b.empty) return a.empty ? b : a;
    std::optional<Type> element = CommonType(*a.element, *b.element, [] { return std::string(kAnyDim); });
    if (!element) return std::nullopt;
    return a.kind == TypeKind::kSequence ? SequenceOf(*std::move(element)) : OptionalOf(*std::move(element));
  }
  if (a.dtype != b.dtype) return std::nullopt;
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return UnrankedTensorOf(a.dtype);
  Type common = a;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    if (!(a.dims[i] == b.dims[i])) common.dims[i] = DimExpr::Symbol(fresh());
  }
  return common;
}

std::string TypeText(const Type& type) {
  if (type.empty) return "empty sequence";

  std::string before, after;
  const Type* inner = &type;
  while (inner->kind != TypeKind::kTensor) {
    before += inner->kind == TypeKind::kSequence ? "sequence(" : "optional(";
    after += ")";
    inner = inner->element.get();
  }
  return before + DTypeName(inner->dtype) + (inner->ranked ? ShapeText(inner->dims) : "[*]") + after;
}

bool SameType(const Type& a, const Type& b) { return TypeText(a) == TypeText(b); }

const HostTensor* ElementsOf(const Value* value) {
  if (value == nullptr || !value->IsConstant()) return nullptr;
  if (!value->at_load) return &*value->constant;
  // A constant that is wanted already has passed that on.
  std::vector<const Value*> left;
  const auto want = [&](const Value* each) {
    if (each == nullptr || !each->at_load || each->elements_wanted) return;
    each->elements_wanted = true;
    left.push_back(each);
  };
  want(value);
  while (!left.empty()) {
    const Node* maker = left.back()->folded;
    left.pop_back();
    if (maker == nullptr) continue;
    for (const Value* input : maker->inputs) want(input);
  }
  return nullptr;
}

void BecomeAtLoad(Value* value, DLDataType dtype, std::vector<std::int64_t> dims) {
  const std::uint64_t bytes = TensorBytes(dtype, dims).value_or(0);
  // Memory that nobody reads or writes, so the system gives none.
  const std::shared_ptr<void> room(std::calloc(std::max<std::uint64_t>(bytes, 1), 1), std::free);
  value->type = TensorOf(dtype, ShapeOfInts(dims));
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(dims);
  if (room != nullptr) tensor.bytes = {{static_cast<const std::byte*>(room.get()), bytes}, room};
  value->constant = std::move(tensor);
  value->at_load = true;
}

Value* Graph::NewValue(std::string name, Type type) {
  Value& value = values_.emplace_back();
  value.name = std::move(name);
  value.type = std::move(type);
  return &value;
}

Node* Graph::NewNode(NodeKind kind) {
  Node& node = nodes_.emplace_back();
  node.kind = kind;
  return &node;
}

Value* Graph::NewView(const std::string& name, Value* constant, const std::vector<std::int64_t>& dims) {
  Value* view = NewValue(name, TensorOf(constant->type.dtype, ShapeOfInts(dims)));
  view->constant = constant->constant;
  view->constant->shape = dims;
  view->at_load = constant->at_load;
  Node* node = NewNode(NodeKind::kReshape);
  node->inputs.push_back(constant);
  node->outputs.push_back(view);
  node->extents.push_back({view->type.dims, nullptr});
  view->folded = node;
  return view;
}

std::string Graph::FreshSymbol(const std::string& hint) {
  std::string name = "$" + std::to_string(next_symbol_++);
  if (!hint.empty()) name += "." + hint;
  return name;
}

void Graph::DefineSymbol(const std::string& name, const Value* value, std::uint32_t axis) {
  symbols_.try_emplace(name, SymbolSource{value, axis});
}

void Graph::MoveSymbols(const std::unordered_map<const Value*, Value*>& merged) {
  for (auto& [name, source] : symbols_) {
    const auto found = merged.find(source.value);
    if (found != merged.end()) source.value = found->second;
  }
}

void Graph::MoveSymbols(const Value* from, Value* to, const std::vector<std::int64_t>& perm) {
  for (auto& [name, source] : symbols_) {
    if (source.value != from) continue;
    const auto axis = std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(source.axis));
    source = {to, static_cast<std::uint32_t>(axis - perm.begin())};
  }
}

Shape Graph::OwnDims(Value* value, const Shape& dims, const Block* block) {
  Shape own = dims;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].text().size() <= kSimpleText) continue;
    std::string& symbol = symbol_of_text_[{block, own[i].text()}];
    if (symbol.empty() || !IsMadeIn(*symbols_.at(symbol).value, *block)) {
      symbol = FreshSymbol("");
      DefineSymbol(symbol, value, static_cast<std::uint32_t>(i));
      own_symbols_.emplace(symbol, own[i]);
    }
    own[i] = DimExpr::Symbol(symbol);
  }
  return own;
}

DimExpr Graph::WithoutOwnSymbols(const DimExpr& dim) const {
  const auto of_symbol = [&](const std::string& name) -> std::optional<DimExpr> {
    const auto found = own_symbols_.find(name);
    if (found == own_symbols_.end()) return std::nullopt;
    return WithoutOwnSymbols(found->second);
  };
  return dim.Replaced(of_symbol);
}

Type Graph::WithFreshDims(Type type) {
  for (DimExpr& dim : type.dims) {
    if (!dim.IsConstant()) dim = DimExpr::Symbol(FreshSymbol(""));
  }
  return type;
}

void Graph::DefineDims(Value* value, int rank) {
  value->type.ranked = true;
  value->type.dims.clear();
  for (int i = 0; i < rank; ++i) {
    const std::string symbol = FreshSymbol("");
    DefineSymbol(symbol, value, static_cast<std::uint32_t>(i));
    value->type.dims.push_back(DimExpr::Symbol(symbol));
  }
}

}  // namespace rewire::compiler
