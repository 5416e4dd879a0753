// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/io/open_model.h"

namespace rewire::tools {

// As OpenModel, and takes the URL of a model on a server, too: grpc://HOST:PORT/MODEL or
// http://HOST:PORT/MODEL. Such a model has its kernel and its allocator in OpenedModel. Errors: those of
// OpenModel; those of the server, which begin with the URL; kUnsupported if these tools were built without
// the server.
Result<OpenedModel> OpenModelOrRemote(const std::string& path, const std::vector<std::string>& parameters,
                                      const OpenOptions& options, const std::string& model,
                                      const std::vector<std::string>& kernels = {});

}  // namespace rewire::tools
