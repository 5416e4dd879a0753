// SPDX-License-Identifier: Apache-2.0
//
// The part of a front end that is the same for every protocol. Each loop has connections, which are looked at
// now and then and drained at the end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rewire/serve/core/front_end.h"
#include "rewire/serve/core/served_loop.h"
#include "rewire/serve/net/background.h"

namespace rewire::serve {

// Home is a ServedLoop with `connections`, a map from each Connection to what owns it. A Connection has
// CheckTime and Drain, which may close it.
template <typename Home, typename Connection>
class LoopFrontEnd : public FrontEnd {
 public:
  LoopFrontEnd(Service* service, const FrontEndLimits& limits) : service_(service), limits_(limits) {}

  Taker Open(EventLoop* loop, Lane* lane) final {
    auto owned = std::make_unique<Home>();
    Home* const home = owned.get();
    home->service = service_;
    home->loop = loop;
    home->lane = lane;
    home->background = &background_;
    home->limits = &limits_;
    home->open = &open_;
    loop->OnTurn([this, home] { return OnTurn(home); });
    CheckTimes(home);
    const std::lock_guard<std::mutex> lock(mutex_);
    homes_.push_back(std::move(owned));
    return [this, home](ServedSocket client) {
      if (!home->draining && home->connections.size() < limits_.connections) Take(home, std::move(client));
    };
  }

  void StartDraining(EventLoop* loop) final {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::unique_ptr<Home>& home : homes_) {
      if (home->loop != loop) continue;
      home->draining = true;
      for (Connection* connection : All(*home)) connection->Drain();
    }
  }

  std::size_t open_connections() const final { return open_; }

 protected:
  // Makes a connection of a client's socket.
  virtual void Take(Home* home, ServedSocket client) = 0;
  // At the end of a loop's turn. True: something has been submitted since.
  virtual bool OnTurn(Home* home) = 0;

  // For the destructor, when no loop runs any more.
  template <typename Body>
  void ForEachHome(const Body& body) {
    for (const std::unique_ptr<Home>& home : homes_) body(home.get());
  }
  // A copy, because connections may close themselves meanwhile.
  static std::vector<Connection*> All(const Home& home) {
    std::vector<Connection*> all;
    for (const auto& [connection, owner] : home.connections) all.push_back(connection);
    return all;
  }

  Service* service() const { return service_; }

 private:
  static constexpr std::chrono::milliseconds kCheckTimes{500};

  static void CheckTimes(Home* home) {
    home->loop->At(home->loop->now() + kCheckTimes, [home] {
      for (Connection* connection : All(*home)) connection->CheckTime(home->loop->now());
      CheckTimes(home);
    });
  }

  Service* const service_;
  const FrontEndLimits limits_;
  std::atomic<std::size_t> open_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Home>> homes_;
  Background background_;  // last: its task uses the others
};

}  // namespace rewire::serve
