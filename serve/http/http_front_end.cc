// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_front_end.h"

#include <sys/epoll.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/core/loop_front_end.h"
#include "rewire/serve/http/http_connection.h"

namespace rewire::serve {
namespace {

class HttpFrontEnd final : public LoopFrontEnd<HttpLoop, HttpConnection> {
 public:
  using LoopFrontEnd::LoopFrontEnd;
  const char* protocol() const override { return "http/1.1"; }
  ~HttpFrontEnd() override {
    // Requests may still be running, in memory of their connections.
    ForEachHome([](HttpLoop* home) {
      for (HttpConnection* connection : All(*home)) connection->Abandon();
    });
    while (service()->in_flight() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  void Take(HttpLoop* home, ServedSocket client) override {
    const int file = client.file();
    auto connection = std::make_unique<HttpConnection>(home, std::move(client));
    HttpConnection* const handler = connection.get();
    home->connections.emplace(handler, std::move(connection));
    const Status added = home->loop->Add(file, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, handler);
    if (!added) home->connections.erase(handler);
  }

  // Sends the responses of this turn. True: a client had sent its next request already, which may have been
  // submitted.
  bool OnTurn(HttpLoop* home) override {
    home->submitted = false;
    std::vector<HttpConnection*> finished;
    finished.swap(home->finished);
    for (HttpConnection* connection : finished) connection->OnFinished();
    home->closed.clear();
    return home->submitted || !home->finished.empty();
  }
};

}  // namespace

std::unique_ptr<FrontEnd> MakeHttpFrontEnd(Service* service, const FrontEndLimits& limits) {
  return std::make_unique<HttpFrontEnd>(service, limits);
}

}  // namespace rewire::serve
