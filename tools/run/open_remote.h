// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/io/open_model.h"

namespace rewire::tools {

// The model at a URL, grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL, with its kernel and its allocator in
// OpenedModel. `time` is for connecting and for asking what its inputs and outputs are. Errors: those of the
// server, which begin with the URL; kUnsupported if this build has no clients of servers.
Result<OpenedModel> OpenRemoteModel(const std::string& url, std::chrono::nanoseconds time);

// As OpenModel, and takes the URL of a model on a server, too: grpc://HOST:PORT/MODEL or
// http://HOST:PORT/MODEL. Errors: those of OpenModel and of OpenRemoteModel.
Result<OpenedModel> OpenModelOrRemote(const std::string& path, const std::vector<std::string>& parameters,
                                      const OpenOptions& options, const std::string& model,
                                      const std::vector<std::string>& kernels = {});

}  // namespace rewire::tools
