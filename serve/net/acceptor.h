// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "rewire/base/status.h"
#include "rewire/serve/net/event_loop.h"

namespace rewire::serve {

// Takes the connections of a listening socket, on a loop's thread.
class Acceptor : public EventLoop::Handler {
 public:
  // Takes over the listener. `taken` gets each client's socket and owns it then; it does not block.
  Acceptor(EventLoop* loop, int listener, std::function<void(int)> taken)
      : loop_(loop), listener_(listener), taken_(std::move(taken)) {}
  ~Acceptor() override;
  Status Start();
  // Closes the listener.
  void Stop();
  void OnEvents(std::uint32_t events) override;

 private:
  void Pause();

  EventLoop* const loop_;
  int listener_;
  std::optional<EventLoop::Timer> paused_;  // while the listener is not watched
  std::function<void(int)> taken_;
};

}  // namespace rewire::serve
