// SPDX-License-Identifier: Apache-2.0
// Function bodies as text: the reverse of function_parser.h.
#pragma once

#include <cstddef>
#include <string>

#include "executable_format/instruction_text.h"
#include "executable_format/module.h"

namespace rewire::text {

class FunctionPrinter {
 public:
  // Both outlive the printer.
  FunctionPrinter(const Module& module, const InstructionPrinter& instructions)
      : module_(module), instructions_(instructions) {}

  // The lines between .func and .end.
  std::string Body(const Function& function);

  // Whether the bodies so far, read from the first on, meet the module's strings in the order of their table
  // and meet all of them: then the table need not be written.
  bool StringsInOrder() const { return next_string_ == module_.strings.size() && in_order_; }

 private:
  void NoteStrings(const Function& function, std::size_t pc);

  const Module& module_;
  const InstructionPrinter& instructions_;
  std::size_t next_string_ = 0;
  bool in_order_ = true;
};

}  // namespace rewire::text
