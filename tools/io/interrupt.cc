// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace rewire::tools {
namespace {

constexpr int kMostPatience = 3;

// A signal handler may touch nothing but lock-free atomics. Cancel does no more either.
std::atomic<int> count{0};
std::atomic<VirtualMachine*> cancelled{nullptr};
std::atomic<int> cancel_after{1};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<VirtualMachine*>::is_always_lock_free);

void OnSignal(int signal) {
  const int now = ++count;
  if (now >= kMostPatience) {
    // Whatever was to be cleaned up does not end.
    struct sigaction by_default = {};
    by_default.sa_handler = SIG_DFL;
    sigaction(signal, &by_default, nullptr);
    kill(getpid(), signal);
    return;
  }
  VirtualMachine* vm = cancelled.load();
  if (vm != nullptr && now >= cancel_after.load()) vm->Cancel();
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // without SA_RESTART, so that a read of a line ends
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    // Ignored signals stay ignored: nohup and background jobs of a shell want that.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
}

int InterruptCount() { return count.load(); }
void ClearInterrupts() { count = 0; }

CancelOnInterrupt::CancelOnInterrupt(VirtualMachine* vm, int after) {
  cancel_after = after;
  cancelled = vm;
}

CancelOnInterrupt::~CancelOnInterrupt() { cancelled = nullptr; }

}  // namespace rewire::tools
