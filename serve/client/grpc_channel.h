// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/serve/client/channel.h"

namespace rewire::serve {

// A connection of gRPC. Tensors are sent as raw_input_contents from where they lie, and received straight
// into their places.
Result<std::unique_ptr<Channel>> OpenGrpcChannel(const RemoteUrl& url, const Patience& patience);

}  // namespace rewire::serve
