// SPDX-License-Identifier: Apache-2.0
// Types as text assembly spells them: the reverse of type_parser.h.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/module.h"

namespace rewire::text {

class TypePrinter {
 public:
  // Both outlive the printer.
  TypePrinter(const Module& module, const InstructionPrinter& names);

  // `leaf_names`: what to call the leaves, in pre-order; empty names are left out.
  std::string Text(const Type& type, const Array<std::string>& leaf_names = {});

  // True if the types printed so far use the module's symbols in the order of their table, and use all of
  // them. Then the table need not be written.
  bool SymbolsInOrder() const { return next_symbol_ == module_.symbols.size() && in_order_; }

  std::string DimText(Dim dim);

 private:
  std::string TensorText(const TypeNode& node);
  std::string DeviceSuffix(const TypeNode& node);

  const Module& module_;
  const InstructionPrinter& names_;
  Array<bool> symbol_is_named_;
  std::size_t next_symbol_ = 0;
  bool in_order_ = true;
};

}  // namespace rewire::text
