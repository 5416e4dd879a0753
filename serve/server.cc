// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/server.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "rewire/serve/net/listen.h"

namespace rewire::serve {

Server::Server(std::unique_ptr<Service> service, std::uint32_t loops, std::chrono::microseconds busy_poll)
    : service_(std::move(service)),
      loop_count_(loops != 0 ? loops : std::max(1U, std::thread::hardware_concurrency())),
      busy_poll_(busy_poll) {}

Server::~Server() {
  Stop();
  front_ends_.clear();
}

Status Server::MakeLoops() {
  while (loops_.size() < loop_count_) {
    Result<std::unique_ptr<EventLoop>> loop = EventLoop::Make();
    if (!loop) return Forward(loop);
    Loop& one = loops_.emplace_back();
    one.loop = *std::move(loop);
    one.loop->SetBusyPoll(busy_poll_);
    one.lane = service_->MakeLane();
    one.loop->OnTurn([lane = one.lane.get()] {
      lane->Run();
      return false;
    });
  }
  return {};
}

Status Server::Accept(Loop* loop, Descriptor listener, const FrontEnd::Taker& taker,
                      std::shared_ptr<const TlsContext> tls) {
  std::function<void(Descriptor)> taken = [taker](Descriptor client) {
    taker(ServedSocket(std::move(client)));
  };
  if (tls != nullptr) {
    const auto done = [loop, taker](ServedSocket client, std::string_view protocol) {
      for (const auto& [name, other] : loop->takers) {
        if (name == protocol) return other(std::move(client));
      }
      taker(std::move(client));
    };
    loop->handshakes.push_back(std::make_unique<TlsHandshakes>(loop->loop.get(), std::move(tls), done));
    taken = [handshakes = loop->handshakes.back().get()](Descriptor client) {
      handshakes->Take(std::move(client));
    };
  }
  loop->acceptors.push_back(
      std::make_unique<Acceptor>(loop->loop.get(), std::move(listener), std::move(taken)));
  return loop->acceptors.back()->Start();
}

Result<int> Server::Add(std::unique_ptr<FrontEnd> front_end, const std::string& address,
                        std::shared_ptr<const TlsContext> tls) {
  if (Status made = MakeLoops(); !made) return Forward(made);
  std::string same = address;
  int port = 0;
  bool listens = !address.empty();
  for (Loop& one : loops_) {
    const FrontEnd::Taker taker = front_end->Open(one.loop.get(), one.lane.get());
    one.takers.emplace_back(front_end->protocol(), taker);
    if (!listens) continue;
    Result<Descriptor> listener = Listen(same);
    if (!listener) return Forward(listener);
    port = PortOf(listener->get());
    // The other loops listen on the port that the first one has got.
    if (port != 0) same = address.substr(0, address.rfind(':') + 1) + std::to_string(port);
    if (Status accepts = Accept(&one, *std::move(listener), taker, tls); !accepts) return Forward(accepts);
    listens = port != 0;  // a socket of Unix has one listener
  }
  front_ends_.push_back(std::move(front_end));
  return port;
}

Status Server::Start() {
  if (Status made = MakeLoops(); !made) return Forward(made);
  for (Loop& one : loops_) {
    one.thread = std::thread([loop = one.loop.get()] { loop->Run(); });
  }
  return {};
}

std::size_t Server::Drain(std::chrono::milliseconds time) {
  for (Loop& one : loops_) {
    one.loop->Post([loop = &one] {
      for (const std::unique_ptr<Acceptor>& acceptor : loop->acceptors) acceptor->Stop();
      for (const std::unique_ptr<TlsHandshakes>& handshakes : loop->handshakes) handshakes->Stop();
    });
    for (const std::unique_ptr<FrontEnd>& front_end : front_ends_) {
      one.loop->Post([loop = one.loop.get(), end = front_end.get()] { end->StartDraining(loop); });
    }
  }
  const auto until = std::chrono::steady_clock::now() + time;
  std::size_t open = 0;
  do {
    open = 0;
    for (const std::unique_ptr<FrontEnd>& front_end : front_ends_) open += front_end->open_connections();
    if (open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } while (open > 0 && std::chrono::steady_clock::now() < until);
  service_->StartDraining();
  return open;
}

void Server::Stop() {
  service_->StartDraining();
  for (Loop& one : loops_) one.loop->Stop();
  for (Loop& one : loops_) {
    if (one.thread.joinable()) one.thread.join();
  }
}

}  // namespace rewire::serve
