// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace rewire::serve {
namespace {

// Connections that are taken at once, so that those that are there have their turn.
constexpr int kAcceptedAtOnce = 64;

}  // namespace

Acceptor::~Acceptor() {
  if (listener_ >= 0) close(listener_);
}

Status Acceptor::Start() { return loop_->Add(listener_, EPOLLIN, this); }

void Acceptor::Stop() {
  if (listener_ < 0) return;
  loop_->Remove(listener_, this);
  close(std::exchange(listener_, -1));
}

void Acceptor::OnEvents(std::uint32_t) {
  for (int i = 0; i < kAcceptedAtOnce && listener_ >= 0; ++i) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    taken_(client);
  }
}

}  // namespace rewire::serve
