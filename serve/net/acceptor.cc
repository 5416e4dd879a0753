// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

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
  if (listener_ >= 0) close(listener_);
}

Status Acceptor::Start() { return loop_->Add(listener_, EPOLLIN, this); }

void Acceptor::Stop() {
  if (listener_ < 0) return;
  if (paused_) {
    loop_->Cancel(*std::exchange(paused_, std::nullopt));
  } else {
    loop_->Remove(listener_, this);
  }
  close(std::exchange(listener_, -1));
}

void Acceptor::OnEvents(std::uint32_t) {
  for (int i = 0; i < kAcceptedAtOnce && listener_ >= 0; ++i) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) Pause();
      return;
    }
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    taken_(client);
  }
}

// Without descriptors or memory for a client, the listener would be ready all the time and keep a core busy.
void Acceptor::Pause() {
  loop_->Remove(listener_, this);
  paused_ = loop_->At(loop_->now() + kPause, [this] {
    paused_.reset();
    if (!Start()) Pause();
  });
}

}  // namespace rewire::serve
