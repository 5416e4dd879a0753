// SPDX-License-Identifier: Apache-2.0
//
// Opens the model that a tool is to run, show or convert, whichever program made it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/tools/io/file_kind.h"
#include "rewire/vm/allocator.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::tools {

struct OpenedModel {
  FileKind kind;
  Executable executable;
  // The parameter files were read as constants, because a graph does not say what its parameters are.
  bool has_parameters;
  // Shared libraries with its kernels: the file itself if it is an exported library.
  std::vector<std::string> kernels;
  // A model on a server has a kernel that asks the server, and perhaps memory that both see.
  KernelSet host_kernels = {};
  std::optional<Allocator> allocator = {};
};

// Text assembly is assembled, and files of TVM are imported; all models pass the verifier. `parameters` are
// the files of --params, which are read here only for a graph. `model` chooses one model of a bundle; it may
// be empty if there is only one. `kernels` are libraries with operators that an ONNX model uses. Errors name
// the file. kInvalidArgument for a file without a model; the message says where such a file belongs.
Result<OpenedModel> OpenModel(const std::string& path, const std::vector<std::string>& parameters = {},
                              const OpenOptions& options = {}, const std::string& model = {},
                              const std::vector<std::string>& kernels = {});

}  // namespace rewire::tools
