// SPDX-License-Identifier: Apache-2.0
//
// RemoteCall: the kernel of a program whose model runs elsewhere: on a server, or in a sandboxed process
// (serve/sandbox).
//
// Each VM has a connection of its own, in its slot (vm/kernel/kernel.h). A connection that the server has
// closed between two calls is opened again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rewire/base/status.h"
#include "rewire/serve/client/channel.h"
#include "rewire/serve/client/client_regions.h"
#include "rewire/vm/packed_function.h"

namespace rewire::serve {

struct RemoteCall {
  std::function<Result<std::unique_ptr<Channel>>(const Patience&)> open;  // a connection; any thread
  std::string text;  // the URL, or another name, for messages
  RemoteSignature signature;
  bool derived = false;                    // RemoteModule::derived
  std::shared_ptr<ClientRegions> regions;  // null: nothing is shared with the server
};

// Many VMs may use it at once.
PackedFunction MakeRemoteFunction(std::shared_ptr<const RemoteCall> call);

}  // namespace rewire::serve
