// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "rewire/base/unfinished_files.h"
#include "rewire/tools/io/signal_target.h"

namespace rewire::tools {
namespace {

constexpr int kMostPatience = 3;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
// StatusCode::kCancelled, as tools print errors.
constexpr char kJson[] =
    "{\n  \"error\": {\n    \"code\": 14,\n    \"name\": \"cancelled\",\n    \"message\": "
    "\"interrupted\"\n  }\n}\n";
static_assert(static_cast<int>(StatusCode::kCancelled) == 14);

// A signal handler may touch nothing but lock-free atomics.
std::atomic<const char*> tool_name{""};
std::atomic<bool> says_json{false};
std::atomic<int> catching{0};
std::atomic<int> count{0};
std::atomic<int> last_signal{0};
SignalTarget<VirtualMachine> cancelled;
std::atomic<int> cancel_after{1};
static_assert(std::atomic<int>::is_always_lock_free);

void EndBy(int signal) {
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  kill(getpid(), signal);
}

void Say(int descriptor, const char* text) {
  // There is nobody to tell when this fails.
  if (write(descriptor, text, std::strlen(text)) < 0) return;
}

void OnSignal(int signal) {
  const int before = errno;
  const int now = ++count;
  last_signal = signal;
  if (catching == 0 || now >= kMostPatience) {
    RemoveUnfinishedFiles();
    Say(STDERR_FILENO, tool_name);
    Say(STDERR_FILENO, ": error: interrupted\n");
    if (says_json) Say(STDOUT_FILENO, kJson);
    EndBy(signal);
    return;
  }
  if (now >= cancel_after.load()) cancelled.Cancel();
  errno = before;
}

}  // namespace

void EndOnInterrupt(const char* tool, bool json) {
  tool_name = tool;
  says_json = json;
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // without SA_RESTART, so that reading a line ends
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) {
    struct sigaction before = {};
    // Ignored signals stay ignored: nohup and background jobs of a shell want that.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
}

CatchInterrupts::CatchInterrupts() { ++catching; }
CatchInterrupts::~CatchInterrupts() { --catching; }
int InterruptCount() { return count.load(); }
void ClearInterrupts() { count = 0; }
void EndIfInterrupted() {
  if (count > 0) EndBy(last_signal);
}

CancelOnInterrupt::CancelOnInterrupt(VirtualMachine* vm, int after) {
  cancel_after = after;
  cancelled.Exchange(vm);
}

CancelOnInterrupt::~CancelOnInterrupt() { cancelled.Exchange(nullptr); }

}  // namespace rewire::tools
