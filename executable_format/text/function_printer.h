// SPDX-License-Identifier: Apache-2.0
// Function bodies as text: the reverse of function_parser.h.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/module.h"

namespace rewire::text {

class FunctionPrinter {
 public:
  // Both outlive the printer.
  FunctionPrinter(const Module& module, const InstructionPrinter& instructions)
      : module_(module), instructions_(instructions) {}

  // The lines between .func and .end.
  std::string Body(const Function& function);

  // True if the bodies printed so far use the module's strings in the order of their table, and use all of
  // them. Then the table need not be written.
  bool StringsInOrder() const { return next_string_ == module_.strings.size() && in_order_; }

 private:
  void NoteStrings(const Function& function, std::size_t pc);

  const Module& module_;
  const InstructionPrinter& instructions_;
  std::size_t next_string_ = 0;
  bool in_order_ = true;
};

}  // namespace rewire::text
