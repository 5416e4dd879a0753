// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "rewire/serve/core/front_end.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/net/background.h"
#include "rewire/serve/net/event_loop.h"

namespace rewire::serve {

// The connections of one loop share this in every protocol. It belongs to the loop's thread.
struct ServedLoop {
  Service* service = nullptr;
  EventLoop* loop = nullptr;
  Lane* lane = nullptr;
  Background* background = nullptr;
  const FrontEndLimits* limits = nullptr;
  std::atomic<std::size_t>* open = nullptr;  // connections of all loops
  bool draining = false;
  bool submitted = false;  // something was submitted to the lane in this turn
};

}  // namespace rewire::serve
