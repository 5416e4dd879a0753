// SPDX-License-Identifier: Apache-2.0
//
// FrontEnd: a protocol by which clients reach the Service.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "rewire/base/status.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/net/event_loop.h"
#include "rewire/serve/net/served_socket.h"

namespace rewire::serve {

// FrontEndLimits: who is served, and how much one client may use, whatever the protocol.
struct FrontEndLimits {
  // Requests must have it (core/token.h), but for those that ask whether the server is there. Empty:
  // everybody is served.
  std::string token;
  std::size_t header_bytes = 16 << 10;  // of the head of one request
  std::size_t header_count = 100;
  std::size_t body_bytes = std::size_t{1} << 30;
  std::size_t json_bytes = std::size_t{64}
                           << 20;   // of JSON, which takes more memory than the bytes that arrive
  std::size_t connections = 20000;  // of one loop
  std::size_t streams = 128;        // requests of one connection at once, where a protocol allows several
  std::chrono::milliseconds idle_time{300000};   // between requests
  std::chrono::milliseconds header_time{10000};  // for a whole head
  // For a whole body and for sending a response: this, and a second for each `least_bytes_per_second`.
  std::chrono::milliseconds transfer_time{30000};
  std::size_t least_bytes_per_second = 100000;
};

class FrontEnd {
 public:
  // Takes a client's connection, on the loop's thread.
  using Taker = std::function<void(ServedSocket)>;

  virtual ~FrontEnd() = default;
  // The name of the protocol in ALPN.
  virtual const char* protocol() const = 0;
  // Serves connections on a loop. Called once for each loop, before it runs. `lane` belongs to the same
  // thread; somebody else calls its Run. The taker may be called as long as this lives.
  virtual Taker Open(EventLoop* loop, Lane* lane) = 0;
  // On each loop's thread: closes idle connections there, and lets the others end after their request.
  virtual void StartDraining(EventLoop* loop) = 0;
  // Connections that are open on all loops. Any thread.
  virtual std::size_t open_connections() const = 0;
};

}  // namespace rewire::serve
