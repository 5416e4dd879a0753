// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/signal_target.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace rewire::tools {
namespace {

struct Cancelled {
  int cancels = 0;
  void Cancel() { ++cancels; }
};

TEST_CASE("a signal target cancels the machine that is set") {
  SignalTarget<Cancelled> target;
  Cancelled outer, inner;
  target.Cancel();
  CHECK(target.Exchange(&outer) == nullptr);
  target.Cancel();
  CHECK(target.Exchange(&inner) == &outer);
  target.Cancel();
  target.Cancel();
  CHECK(target.Exchange(&outer) == &inner);
  CHECK(target.Exchange(nullptr) == &outer);
  target.Cancel();
  CHECK(outer.cancels == 1);
  CHECK(inner.cancels == 2);
}

// A machine whose Cancel goes on until Exchange has returned on another thread, or had time for it.
struct Slow {
  std::atomic<bool>* inside;
  std::atomic<bool>* returned;
  bool overtaken = false;

  void Cancel() {
    *inside = true;
    for (int i = 0; i < 2000 && !*returned; ++i) sched_yield();
    overtaken = *returned;
  }
};

TEST_CASE("a machine is not let go of while a handler on another thread uses it") {
  std::atomic<bool> inside{false}, returned{false};
  Slow machine{&inside, &returned};
  SignalTarget<Slow> target;
  target.Exchange(&machine);
  std::thread handler([&] { target.Cancel(); });
  while (!inside) sched_yield();
  target.Exchange(nullptr);
  returned = true;
  handler.join();
  CHECK_FALSE(machine.overtaken);
}

}  // namespace
}  // namespace rewire::tools
