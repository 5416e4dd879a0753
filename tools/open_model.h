// SPDX-License-Identifier: Apache-2.0
// Opens what a tool is asked to run, show or convert, whatever made it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "executable_format/executable.h"
#include "tools/file_kind.h"

namespace rewire::tools {

struct OpenedModel {
  FileKind kind;
  Executable executable;
  // The parameter files have become constants: a graph does not say by itself what its parameters are.
  bool has_parameters;
  // Shared libraries that its kernels are in: the file itself when it is an exported library.
  std::vector<std::string> kernels;
};

// `parameters` are the files of --params, read here only for a graph. Text assembly is assembled, files of
// TVM are imported; all pass the verifier. Errors name the file; kInvalidArgument for a file without a model,
// which says where such a file belongs. `model` chooses one of a bundle's; it may be empty when there is only
// one.
Result<OpenedModel> OpenModel(const std::string& path, const std::vector<std::string>& parameters = {},
                              const OpenOptions& options = {}, const std::string& model = {});

}  // namespace rewire::tools
