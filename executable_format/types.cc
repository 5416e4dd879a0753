// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/types.h"

#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/base/message.h"

namespace rewire {
namespace {

std::string DimText(Dim dim, Span<const std::string> symbols) {
  if (dim == kUnknownDim) return "?";
  if (!IsSymbol(dim)) return Format("{}", dim);
  const std::uint32_t symbol = SymbolOf(dim);
  return symbol < symbols.size() ? symbols[symbol] : Format("symbol{}", symbol);
}

std::string TensorText(const TypeNode& node, Span<const std::string> symbols) {
  std::string text = node.dtype == kUnknownDType ? "?" : DTypeName(node.dtype);
  if (node.rank == kUnknownRank) {
    text += "[*]";
  } else {
    text += '[';
    for (std::size_t i = 0; i < node.dims.size(); ++i) {
      if (i != 0) text += ", ";
      text += DimText(node.dims[i], symbols);
    }
    text += ']';
  }
  if (node.device == kAnyDevice) {
    text += "@*";
  } else if (node.device != kHostDevice) {
    Append(&text, {"@{}", node.device});
  }
  return text;
}

std::string NodeText(const TypeNode& node, Span<const std::string> symbols) {
  switch (node.kind) {
    case TypeKind::kTensor:
      return TensorText(node, symbols);
    case TypeKind::kAdt:
      return node.tag == 0 ? "(" : Format("adt {} (", node.tag);
    case TypeKind::kClosure:
      return "closure";
    case TypeKind::kStorage:
      return "storage";
    case TypeKind::kInteger:
      return "integer";
    case TypeKind::kValue:
      return node.device == kHostDevice ? "value" : Format("value@{}", node.device);
  }
  return Format("type{}", static_cast<int>(node.kind));
}

}  // namespace

bool TypeNode::operator==(const TypeNode& other) const {
  return kind == other.kind && dtype == other.dtype && rank == other.rank && dims == other.dims &&
         device == other.device && tag == other.tag && field_count == other.field_count;
}

Type TensorType(DLDataType dtype, Array<Dim> dims, std::uint32_t device) {
  TypeNode node;
  node.kind = TypeKind::kTensor;
  node.dtype = dtype;
  node.rank = static_cast<std::int32_t>(dims.size());
  node.dims = std::move(dims);
  node.device = device;
  return Type{{std::move(node)}};
}

Type UnrankedTensorType(DLDataType dtype, std::uint32_t device) {
  TypeNode node;
  node.kind = TypeKind::kTensor;
  node.dtype = dtype;
  node.device = device;
  return Type{{std::move(node)}};
}

Type AdtType(std::uint32_t tag, const Array<Type>& fields) {
  Type type;
  TypeNode& node = type.nodes.emplace_back();
  node.kind = TypeKind::kAdt;
  node.tag = tag;
  node.field_count = static_cast<std::uint32_t>(fields.size());
  for (const Type& field : fields) {
    type.nodes.append(field.nodes.begin(), field.nodes.end());
  }
  return type;
}

Type SimpleType(TypeKind kind) {
  TypeNode node;
  node.kind = kind;
  return Type{{std::move(node)}};
}

Array<std::uint32_t> Leaves(const Type& type) {
  Array<std::uint32_t> leaves;
  for (std::size_t i = 0; i < type.nodes.size(); ++i) {
    if (type.nodes[i].kind != TypeKind::kAdt) leaves.push_back(static_cast<std::uint32_t>(i));
  }
  return leaves;
}

std::uint32_t SubtreeEnd(const Type& type, std::uint32_t node) {
  // In pre-order a subtree ends where every field that its nodes announced has been met.
  std::uint64_t awaited = 1;
  while (awaited != 0) {
    const TypeNode& current = type.nodes[node++];
    --awaited;
    if (current.kind == TypeKind::kAdt) awaited += current.field_count;
  }
  return node;
}

std::optional<std::uint64_t> TensorBytes(DLDataType dtype, Span<const Dim> dims) {
  // Signed, so that no intermediate result exceeds what a byte offset can express. The product must fit even
  // if another dimension is zero, because strides are computed from it.
  std::int64_t bytes = static_cast<std::int64_t>(ElementBytes(dtype));
  bool empty = false;
  for (Dim dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    const std::optional<std::int64_t> product = CheckedMul<std::int64_t>(bytes, dim);
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

std::string TypeText(const Type& type, Span<const std::string> symbols) {
  std::string text;
  Array<std::uint32_t> open;  // fields still to come, for every ADT around the current node
  for (const TypeNode& node : type.nodes) {
    text += NodeText(node, symbols);
    if (node.kind == TypeKind::kAdt && node.field_count != 0) {
      open.push_back(node.field_count);
      continue;
    }
    if (node.kind == TypeKind::kAdt) text += ')';
    while (!open.empty()) {
      if (--open.back() != 0) {
        text += ", ";
        break;
      }
      text += ')';
      open.pop_back();
    }
  }
  return text;
}

}  // namespace rewire
