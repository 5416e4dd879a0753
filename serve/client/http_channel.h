// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/serve/client/channel.h"

namespace rewire::serve {

// A connection of HTTP/1.1. Tensors are sent and received as binary data behind the JSON, those that are
// received straight into their places.
Result<std::unique_ptr<Channel>> OpenHttpChannel(const RemoteUrl& url, const Patience& patience);

}  // namespace rewire::serve
