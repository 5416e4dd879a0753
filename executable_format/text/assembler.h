// SPDX-License-Identifier: Apache-2.0
//
// Converts text assembly to modules. docs/assembly.md describes the language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire {

struct AssembleOptions {
  std::string file_name = "<text>";  // the name of the text in errors
  std::string directory;             // where relative @files start; empty: the working directory
  std::size_t max_errors = 20;
};

// Returns the module that the text describes. It is not verified, because the text may break any rule of the
// verifier. Constants from .safetensors files share the mapped file; all others own their bytes. The only
// error is kInvalidArgument, with a line "file:line:column: what is wrong" for each mistake, up to
// max_errors.
Result<Module> Assemble(std::string_view text, const AssembleOptions& options = {});

// Reads the text from a file; @files are relative to it. Errors: also kNotFound and kIo.
Result<Module> AssembleFile(const std::string& path);

}  // namespace rewire
