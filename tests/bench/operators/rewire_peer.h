// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/tests/bench/peer.h"

namespace rewire::bench {

// Compiles settings.model with all passes, for one thread. The other settings are not read.
std::unique_ptr<Peer> LoadRewire(const PeerSettings& settings);

}  // namespace rewire::bench
