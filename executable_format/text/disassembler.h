// SPDX-License-Identifier: Apache-2.0
// Modules to text assembly.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire {

struct DisassembleOptions {
  // The name of a .safetensors file, as the text writes it after "@". Constants of more than max_inline_bytes
  // go there. Empty: all data is written in the text.
  std::string data_file;
  std::size_t max_inline_bytes = 256;
  // Leaves out the data of larger constants, to make the text readable. Such a text cannot be assembled.
  bool leave_data_out = false;
};

struct Disassembly {
  std::string text;
  Array<NamedTensor> data;  // the content of data_file; shares the module's bytes where possible
};

// Prints the module as text. The text of a verified module assembles to a module with the same bytes. Never
// fails: code that breaks the rules is printed as .words, and what a text cannot express is printed as a
// comment.
Disassembly Disassemble(const Module& module, const DisassembleOptions& options = {});

}  // namespace rewire
