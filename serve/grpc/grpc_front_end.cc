// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/grpc_front_end.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/grpc/grpc_connection.h"
#include "rewire/serve/net/acceptor.h"

namespace rewire::serve {
namespace {

constexpr std::chrono::milliseconds kCheckTimes{500};

class GrpcFrontEnd final : public FrontEnd {
 public:
  GrpcFrontEnd(Service* service, const FrontEndLimits& limits) : service_(service), limits_(limits) {}
  ~GrpcFrontEnd() override {
    // The end of a connection cancels what its client has asked for, and that may still be running.
    for (const std::unique_ptr<One>& one : loops_) {
      one->home.open.clear();
      one->home.closed.clear();
    }
    for (const std::unique_ptr<One>& one : loops_) {
      while (one->home.running.load(std::memory_order_acquire) > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Status Open(EventLoop* loop, Lane* lane, int listener) override {
    auto one = std::make_unique<One>();
    GrpcConnections* const home = &one->home;
    home->service = service_;
    home->loop = loop;
    home->lane = lane;
    home->background = &background_;
    home->limits = &limits_;
    home->count = &open_;
    one->acceptor = std::make_unique<Acceptor>(loop, listener, [home](int client) { Take(home, client); });
    if (Status started = one->acceptor->Start(); !started) return Forward(started);
    loop->OnTurn([home] { return OnTurn(home); });
    CheckTimes(home);
    const std::lock_guard<std::mutex> lock(mutex_);
    loops_.push_back(std::move(one));
    return {};
  }

  void StartDraining(EventLoop* loop) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::unique_ptr<One>& one : loops_) {
      if (one->home.loop != loop) continue;
      one->acceptor->Stop();
      for (GrpcConnection* connection : All(one->home)) connection->StartDraining();
    }
  }

  std::size_t open_connections() const override { return open_; }

 private:
  struct One {
    GrpcConnections home;
    std::unique_ptr<Acceptor> acceptor;
  };

  // Connections may close themselves meanwhile.
  static std::vector<GrpcConnection*> All(const GrpcConnections& home) {
    std::vector<GrpcConnection*> all;
    for (const auto& [connection, owner] : home.open) all.push_back(connection);
    return all;
  }

  static void Take(GrpcConnections* home, int client) {
    if (home->open.size() >= home->limits->connections) {
      close(client);
      return;
    }
    auto connection = std::make_unique<GrpcConnection>(home, client);
    GrpcConnection* const handler = connection.get();
    home->open.emplace(handler, std::move(connection));
    handler->Touch();  // its settings are sent, and it is watched from then on
  }

  // The lane has run what was submitted in this turn. True: more has been submitted since.
  static bool OnTurn(GrpcConnections* home) {
    home->submitted = false;
    std::vector<std::shared_ptr<GrpcQuestion>> finished;
    finished.swap(home->finished);
    for (const std::shared_ptr<GrpcQuestion>& question : finished) question->call->OnFinished(question);
    std::vector<GrpcConnection*> unsent;
    unsent.swap(home->unsent);
    for (GrpcConnection* connection : unsent) connection->Flush();
    home->closed.clear();
    return home->submitted || !home->finished.empty() || !home->unsent.empty();
  }

  static void CheckTimes(GrpcConnections* home) {
    home->loop->At(home->loop->now() + kCheckTimes, [home] {
      for (GrpcConnection* connection : All(*home)) connection->CheckTime(home->loop->now());
      CheckTimes(home);
    });
  }

  Service* const service_;
  const FrontEndLimits limits_;
  std::atomic<std::size_t> open_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<One>> loops_;
  Background background_;  // last: its task uses the others
};

}  // namespace

std::unique_ptr<FrontEnd> MakeGrpcFrontEnd(Service* service, const FrontEndLimits& limits) {
  return std::make_unique<GrpcFrontEnd>(service, limits);
}

}  // namespace rewire::serve
