// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/status.h"

namespace rewire::serve {

// Listens on "ADDRESS:PORT", "[ADDRESS]:PORT" or "unix:PATH". Port 0 is any free one. Several sockets may
// listen on one port of an address, and the kernel spreads connections over them. The socket does not block.
// Errors: kInvalidArgument for the text; kIo.
Result<Descriptor> Listen(const std::string& address);
// The port that a listening socket has; 0 for one of Unix.
int PortOf(int file);

}  // namespace rewire::serve
