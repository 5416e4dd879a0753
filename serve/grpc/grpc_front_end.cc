// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/grpc_front_end.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/core/loop_front_end.h"
#include "rewire/serve/grpc/grpc_connection.h"

namespace rewire::serve {
namespace {

class GrpcFrontEnd final : public LoopFrontEnd<GrpcConnections, GrpcConnection> {
 public:
  using LoopFrontEnd::LoopFrontEnd;
  const char* protocol() const override { return "h2"; }
  ~GrpcFrontEnd() override {
    // The end of a connection cancels what its client has asked for, and that may still be running.
    ForEachHome([](GrpcConnections* home) {
      home->connections.clear();
      home->closed.clear();
    });
    ForEachHome([](const GrpcConnections* home) {
      while (home->running.load(std::memory_order_acquire) > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }

 private:
  void Take(GrpcConnections* home, ServedSocket client) override {
    auto connection = std::make_unique<GrpcConnection>(home, std::move(client));
    GrpcConnection* const handler = connection.get();
    home->connections.emplace(handler, std::move(connection));
    handler->Touch();  // its settings are sent, and it is watched from then on
  }

  // The lane has run what was submitted in this turn. True: more has been submitted since.
  bool OnTurn(GrpcConnections* home) override {
    home->submitted = false;
    std::vector<std::shared_ptr<GrpcQuestion>> finished;
    finished.swap(home->finished);
    for (const std::shared_ptr<GrpcQuestion>& question : finished) question->call->OnFinished(question);
    std::vector<GrpcConnection*> unsent;
    unsent.swap(home->unsent);
    for (GrpcConnection* connection : unsent) connection->Flush();
    for (std::shared_ptr<GrpcQuestion>& question : finished) home->LetGo(std::move(question));
    home->closed.clear();
    return home->submitted || !home->finished.empty() || !home->unsent.empty();
  }
};

}  // namespace

std::unique_ptr<FrontEnd> MakeGrpcFrontEnd(Service* service, const FrontEndLimits& limits) {
  return std::make_unique<GrpcFrontEnd>(service, limits);
}

}  // namespace rewire::serve
