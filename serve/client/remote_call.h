// SPDX-License-Identifier: Apache-2.0
//
// RemoteCall: the kernel of a remote program, which asks the server.
//
// Each VM has a connection of its own, in its slot (vm/kernel/kernel.h). A connection that the server has
// closed between two calls is opened again.
#pragma once

#include <memory>

#include "rewire/serve/client/channel.h"
#include "rewire/serve/client/client_regions.h"
#include "rewire/serve/client/remote_url.h"
#include "rewire/vm/packed_function.h"

namespace rewire::serve {

struct RemoteCall {
  RemoteUrl url;
  std::string text;  // of the URL, for messages
  RemoteSignature signature;
  bool derived = false;                    // RemoteModule::derived
  std::shared_ptr<ClientRegions> regions;  // null: nothing is shared with the server
};

// Many VMs may use it at once.
PackedFunction MakeRemoteFunction(std::shared_ptr<const RemoteCall> call);

}  // namespace rewire::serve
