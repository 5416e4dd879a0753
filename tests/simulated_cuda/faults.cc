// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/simulated_cuda/faults.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

namespace rewire::simulated_cuda {
namespace {

constexpr std::size_t kMostDevices = 16;
std::array<const DeviceMemory*, kMostDevices> watched;
std::atomic<std::size_t> watched_count{0};
struct sigaction before_segv, before_bus;
thread_local void (*caught_here)() = nullptr;

void OnFault(int signal, siginfo_t* info, void*) {
  if (caught_here != nullptr) caught_here();  // does not return
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  for (std::size_t i = 0; i < watched_count; ++i) {
    if (!watched[i]->Has(address)) continue;
    static constexpr char kText[] = "simulated CUDA: host code used an address of device memory\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  }
  // The access is tried again, and what was there before is told of it.
  sigaction(signal, signal == SIGSEGV ? &before_segv : &before_bus, nullptr);
}

}  // namespace

void WatchFaults() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == OnFault) continue;
    (signal == SIGSEGV ? before_segv : before_bus) = now;
    struct sigaction action = {};
    action.sa_sigaction = OnFault;
    // A kernel's fault leaves the handler for another stack, so the signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(signal, &action, nullptr);
  }
}

void WatchHostAccess(const DeviceMemory& memory) {
  const std::size_t at = watched_count;
  if (at == kMostDevices) return;
  watched[at] = &memory;
  watched_count = at + 1;
}

void CatchFaultsOnThisThread(void (*caught)()) { caught_here = caught; }

}  // namespace rewire::simulated_cuda
