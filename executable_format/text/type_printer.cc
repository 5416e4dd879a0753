// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/type_printer.h"

#include <string_view>
#include <unordered_set>

#include "rewire/base/array.h"

namespace rewire::text {

TypePrinter::TypePrinter(const Module& module, const InstructionPrinter& names)
    : module_(module), names_(names), symbol_is_named_(module.symbols.size()) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < module.symbols.size(); ++i) {
    symbol_is_named_[i] = seen.insert(module.symbols[i]).second;
  }
}

std::string TypePrinter::Text(const Type& type, const Array<std::string>& leaf_names) {
  std::string text;
  std::size_t leaf = 0;
  Array<std::uint32_t> open;  // fields still to come, for every ADT around the node
  for (const TypeNode& node : type.nodes) {
    if (node.kind == TypeKind::kAdt) {
      text += node.tag == 0 ? "(" : "adt " + std::to_string(node.tag) + " (";
      if (node.field_count != 0) {
        open.push_back(node.field_count);
        continue;
      }
      text += ")";
    } else {
      if (leaf < leaf_names.size() && !leaf_names[leaf].empty()) text += NameText(leaf_names[leaf]) + ": ";
      ++leaf;
      switch (node.kind) {
        case TypeKind::kTensor:
          text += TensorText(node);
          break;
        case TypeKind::kClosure:
          text += "closure";
          break;
        case TypeKind::kStorage:
          text += "storage";
          break;
        case TypeKind::kInteger:
          text += "integer";
          break;
        case TypeKind::kValue:
        case TypeKind::kAdt:
          text += "value" + DeviceSuffix(node);
          break;
      }
    }
    while (!open.empty()) {
      if (--open.back() != 0) {
        text += ", ";
        break;
      }
      text += ")";
      open.pop_back();
    }
  }
  return text;
}

std::string TypePrinter::TensorText(const TypeNode& node) {
  std::string text = node.dtype == kUnknownDType ? "?" : DTypeName(node.dtype);
  text += "[";
  if (node.rank == kUnknownRank) text += "*";
  for (std::size_t i = 0; i < node.dims.size(); ++i) text += (i == 0 ? "" : ", ") + DimText(node.dims[i]);
  text += "]";
  return text + DeviceSuffix(node);
}

std::string TypePrinter::DeviceSuffix(const TypeNode& node) {
  if (node.device == kAnyDevice) return " on *";
  return node.device == kHostDevice ? "" : " on " + names_.DeviceText(node.device);
}

std::string TypePrinter::DimText(Dim dim) {
  if (dim == kUnknownDim) return "?";
  if (!IsSymbol(dim)) return std::to_string(dim);
  const std::uint32_t symbol = SymbolOf(dim);
  if (symbol >= module_.symbols.size() || !symbol_is_named_[symbol]) {
    in_order_ = false;
    return "#" + std::to_string(symbol);
  }
  if (symbol > next_symbol_) in_order_ = false;
  if (symbol == next_symbol_) ++next_symbol_;
  return NameText(module_.symbols[symbol]);
}

}  // namespace rewire::text
