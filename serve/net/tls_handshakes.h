// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/serve/net/event_loop.h"
#include "rewire/serve/net/served_socket.h"
#include "rewire/serve/tls/tls_context.h"

namespace rewire::serve {

// TlsHandshakes: the clients of one loop whose handshake goes on. It belongs to the loop's thread.
class TlsHandshakes {
 public:
  // A client has so much time, and so many have it at once; the others are sent away.
  static constexpr std::chrono::seconds kTime{10};
  static constexpr std::size_t kMost = 1000;

  // `done` gets each client whose handshake is complete, with the protocol of ALPN, which may be empty.
  using Done = std::function<void(ServedSocket, std::string_view protocol)>;
  TlsHandshakes(EventLoop* loop, std::shared_ptr<const TlsContext> context, Done done);
  ~TlsHandshakes();
  void Take(Descriptor client);
  // Ends all of them.
  void Stop();

 private:
  class One;
  void Remove(One* one);

  EventLoop* const loop_;
  const std::shared_ptr<const TlsContext> context_;
  const Done done_;
  std::unordered_map<One*, std::unique_ptr<One>> all_;
};

}  // namespace rewire::serve
