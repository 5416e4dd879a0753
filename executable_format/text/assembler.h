// SPDX-License-Identifier: Apache-2.0
// Text assembly to modules. docs/assembly.md describes the language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "executable_format/module.h"

namespace rewire {

struct AssembleOptions {
  std::string file_name = "<text>";  // what errors call the text
  std::string directory;             // where relative @files start; empty: the working directory
  std::size_t max_errors = 20;
};

// A module as the text says, not verified: the text may break any rule of the verifier. Constants from
// .safetensors files share the mapped file, all others own their bytes. The one fatal error is
// kInvalidArgument: a line "file:line:column: what is wrong" for each mistake, up to max_errors.
Result<Module> Assemble(std::string_view text, const AssembleOptions& options = {});

// The text in a file; @files are found beside it. Also kNotFound and kIo.
Result<Module> AssembleFile(const std::string& path);

}  // namespace rewire
