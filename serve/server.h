// SPDX-License-Identifier: Apache-2.0
//
// Server: a service, its front ends, and the loops that they run on.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/front_end.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/net/acceptor.h"
#include "rewire/serve/net/event_loop.h"
#include "rewire/serve/net/tls_handshakes.h"

namespace rewire::serve {

class Server {
 public:
  // `loops`: 0 stands for one per core. `busy_poll`: of each loop (EventLoop::SetBusyPoll).
  Server(std::unique_ptr<Service> service, std::uint32_t loops, std::chrono::microseconds busy_poll = {});
  // Ends all requests, without draining.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Service* service() { return service_.get(); }
  // Serves a protocol at an address, on all loops. Returns the port. Before Start. Errors: those of Listen.
  //
  // With `tls`, connections there are by TLS alone. A client that has chosen the protocol of another front
  // end by ALPN is served by that. Without an address, such clients are the only ones of the front end.
  Result<int> Add(std::unique_ptr<FrontEnd> front_end, const std::string& address,
                  std::shared_ptr<const TlsContext> tls = nullptr);
  Status Start();
  // Takes no more connections, and closes each when its request is answered. Returns when all are closed, or
  // after this time; the number of those that were not.
  std::size_t Drain(std::chrono::milliseconds time);

 private:
  struct Loop {
    std::unique_ptr<EventLoop> loop;
    std::unique_ptr<Lane> lane;
    std::thread thread;
    std::vector<std::pair<std::string, FrontEnd::Taker>> takers;  // by protocol
    std::vector<std::unique_ptr<TlsHandshakes>> handshakes;
    std::vector<std::unique_ptr<Acceptor>> acceptors;
  };
  Status MakeLoops();
  static Status Accept(Loop* loop, Descriptor listener, const FrontEnd::Taker& taker,
                       std::shared_ptr<const TlsContext> tls);
  void Stop();

  std::unique_ptr<Service> service_;
  std::uint32_t loop_count_;
  std::chrono::microseconds busy_poll_;
  std::deque<Loop> loops_;
  std::vector<std::unique_ptr<FrontEnd>> front_ends_;
};

}  // namespace rewire::serve
