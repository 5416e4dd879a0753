// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/status.h"
#include "rewire/serve/net/event_loop.h"

namespace rewire::serve {

// Takes the connections of a listening socket, on a loop's thread.
class Acceptor : public EventLoop::Handler {
 public:
  // `taken` gets each client's socket, and does not block.
  Acceptor(EventLoop* loop, Descriptor listener, std::function<void(Descriptor)> taken)
      : loop_(loop), listener_(std::move(listener)), taken_(std::move(taken)) {}
  ~Acceptor() override;
  Status Start();
  // Closes the listener.
  void Stop();
  void OnEvents(std::uint32_t events) override;

 private:
  void Pause();

  EventLoop* const loop_;
  Descriptor listener_;
  std::optional<EventLoop::Timer> paused_;  // while the listener is not watched
  std::function<void(Descriptor)> taken_;
};

}  // namespace rewire::serve
