// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace rewire::serve {
namespace {

// Connections that are taken at once, so that those that are there have their turn.
constexpr int kAcceptedAtOnce = 64;
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Acceptor::~Acceptor() {
  if (paused_) loop_->Cancel(*paused_);
}

Status Acceptor::Start() { return loop_->Add(listener_.get(), EPOLLIN, this); }

void Acceptor::Stop() {
  if (!listener_.is_open()) return;
  if (paused_) {
    loop_->Cancel(*std::exchange(paused_, std::nullopt));
  } else {
    loop_->Remove(listener_.get(), this);
  }
  listener_.Close();
}

void Acceptor::OnEvents(std::uint32_t) {
  for (int i = 0; i < kAcceptedAtOnce && listener_.is_open(); ++i) {
    Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) Pause();
      return;
    }
    const int on = 1;
    setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    taken_(std::move(client));
  }
}

// Without descriptors or memory for a client, the listener would be ready all the time and keep a core busy.
void Acceptor::Pause() {
  loop_->Remove(listener_.get(), this);
  paused_ = loop_->At(loop_->now() + kPause, [this] {
    paused_.reset();
    if (!Start()) Pause();
  });
}

}  // namespace rewire::serve
