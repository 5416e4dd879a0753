// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_front_end.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/http/http_connection.h"
#include "rewire/serve/net/background.h"

namespace rewire::serve {
namespace {

constexpr std::chrono::milliseconds kCheckTimes{500};
// Connections that are taken at once, so that those that are there have their turn.
constexpr int kAcceptedAtOnce = 64;

class Listener : public EventLoop::Handler {
 public:
  Listener(HttpLoop* home, int file) : home_(home), file_(file) {}
  ~Listener() override {
    if (file_ >= 0) close(file_);
  }
  Status Start() { return home_->loop->Add(file_, EPOLLIN, this); }
  void Stop() {
    if (file_ < 0) return;
    home_->loop->Remove(file_, this);
    close(std::exchange(file_, -1));
  }
  void OnEvents(std::uint32_t) override {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      const int client = accept4(file_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client < 0) return;
      if (home_->connections.size() >= home_->limits->connections) {
        close(client);
        continue;
      }
      const int on = 1;
      setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      auto connection = std::make_unique<HttpConnection>(home_, client);
      HttpConnection* const handler = connection.get();
      home_->connections.emplace(handler, std::move(connection));
      const Status added = home_->loop->Add(client, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, handler);
      if (!added) home_->connections.erase(handler);
    }
  }

 private:
  HttpLoop* const home_;
  int file_;
};

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
    one->listener = std::make_unique<Listener>(home, listener);
    if (Status started = one->listener->Start(); !started) return Forward(started);
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
      one->listener->Stop();
      for (HttpConnection* connection : All(one->home)) connection->Drain();
    }
  }

  std::size_t open_connections() const override { return open_; }

 private:
  struct One {
    HttpLoop home;
    std::unique_ptr<Listener> listener;
  };

  // Connections may close themselves meanwhile.
  static std::vector<HttpConnection*> All(const HttpLoop& home) {
    std::vector<HttpConnection*> all;
    for (const auto& [connection, owner] : home.connections) all.push_back(connection);
    return all;
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
