// SPDX-License-Identifier: Apache-2.0
//
// RemoteModel: a model on a server, in the form that linking takes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/serve/client/channel.h"
#include "rewire/serve/client/client_regions.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::serve {

struct RemoteModel {
  Executable executable;
  KernelSet kernels;                       // its only kernel
  std::shared_ptr<ClientRegions> regions;  // if memory is shared with the server
};

// Asks the server for the model's signature. Errors begin with the URL: those of ParseRemoteUrl, of the
// connection, and of the server.
Result<RemoteModel> ConnectRemoteModel(std::string_view url, const Patience& patience);

}  // namespace rewire::serve
