// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_front_end.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/http/http_connection.h"
#include "rewire/serve/net/acceptor.h"
#include "rewire/serve/net/background.h"

namespace rewire::serve {
namespace {

constexpr std::chrono::milliseconds kCheckTimes{500};
class HttpFrontEnd : public FrontEnd {
 public:
  HttpFrontEnd(Service* service, const FrontEndLimits& limits) : service_(service), limits_(limits) {}
  ~HttpFrontEnd() override {
    // Requests may still be running, in memory of their connections.
    for (const std::unique_ptr<One>& one : loops_) {
      for (HttpConnection* connection : All(one->home)) connection->Abandon();
    }
    while (service_->in_flight() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  Status Open(EventLoop* loop, Lane* lane, int listener) override {
    auto one = std::make_unique<One>();
    HttpLoop* const home = &one->home;
    home->service = service_;
    home->loop = loop;
    home->lane = lane;
    home->background = &background_;
    home->limits = &limits_;
    home->open = &open_;
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
      one->home.draining = true;
      one->acceptor->Stop();
      for (HttpConnection* connection : All(one->home)) connection->Drain();
    }
  }

  std::size_t open_connections() const override { return open_; }

 private:
  struct One {
    HttpLoop home;
    std::unique_ptr<Acceptor> acceptor;
  };

  // Connections may close themselves meanwhile.
  static std::vector<HttpConnection*> All(const HttpLoop& home) {
    std::vector<HttpConnection*> all;
    for (const auto& [connection, owner] : home.connections) all.push_back(connection);
    return all;
  }

  static void Take(HttpLoop* home, int client) {
    if (home->connections.size() >= home->limits->connections) {
      close(client);
      return;
    }
    auto connection = std::make_unique<HttpConnection>(home, client);
    HttpConnection* const handler = connection.get();
    home->connections.emplace(handler, std::move(connection));
    const Status added = home->loop->Add(client, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, handler);
    if (!added) home->connections.erase(handler);
  }

  // Sends the responses of this turn. True: a client had sent its next request already, which may have been
  // submitted.
  static bool OnTurn(HttpLoop* home) {
    home->submitted = false;
    std::vector<HttpConnection*> finished;
    finished.swap(home->finished);
    for (HttpConnection* connection : finished) connection->OnFinished();
    home->closed.clear();
    return home->submitted || !home->finished.empty();
  }

  static void CheckTimes(HttpLoop* home) {
    home->loop->At(home->loop->now() + kCheckTimes, [home] {
      for (HttpConnection* connection : All(*home)) connection->CheckTime(home->loop->now());
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

std::unique_ptr<FrontEnd> MakeHttpFrontEnd(Service* service, const FrontEndLimits& limits) {
  return std::make_unique<HttpFrontEnd>(service, limits);
}

}  // namespace rewire::serve
