// SPDX-License-Identifier: Apache-2.0
// Modules to text assembly.
#pragma once

#include <cstddef>
#include <string>

#include "base/array.h"
#include "executable_format/module.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire {

struct DisassembleOptions {
  // A .safetensors file that the text names for constants of more than max_inline_bytes, as it stands after
  // the
  // "@". Empty: all data is written in the text.
  std::string data_file;
  std::size_t max_inline_bytes = 256;
  // Leaves the data of larger constants out, for people. Such a text cannot be assembled.
  bool leave_data_out = false;
};

struct Disassembly {
  std::string text;
  Array<NamedTensor> data;  // what belongs in data_file; shares the module's bytes where it can
};

// The module as text. That of a verified module assembles to a module that the writer gives the same bytes.
// Never fails: what breaks the rules of instructions is written as .words, and what a text cannot say in a
// comment.
Disassembly Disassemble(const Module& module, const DisassembleOptions& options = {});

}  // namespace rewire
