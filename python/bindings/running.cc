// SPDX-License-Identifier: Apache-2.0
#include "rewire/python/bindings/running.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>

namespace rewire::python {
namespace {

// A signal handler may touch nothing but lock-free atomics. Cancel does no more either.
std::atomic<VirtualMachine*> running{nullptr};
std::atomic<int> handlers{0};  // that run now, on any thread
static_assert(std::atomic<VirtualMachine*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
struct sigaction pythons_action;  // while ours is installed
unsigned long main_thread = 0;

void OnInterrupt(int signal) {
  const int before = errno;
  ++handlers;
  if (VirtualMachine* machine = running.load()) machine->Cancel();
  --handlers;
  pythons_action.sa_handler(signal);
  errno = before;
}

}  // namespace

void RememberMainThread() {
  const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(thread.attr("ident"));
}

CancelOnCtrlC::CancelOnCtrlC(VirtualMachine* machine) {
  if (PyThread_get_thread_ident() != main_thread) return;
  outer_ = running.exchange(machine);
  if (outer_ != nullptr) return;
  if (sigaction(SIGINT, nullptr, &pythons_action) != 0 || pythons_action.sa_handler == SIG_DFL ||
      pythons_action.sa_handler == SIG_IGN || (pythons_action.sa_flags & SA_SIGINFO) != 0) {
    return;  // nobody wants to know
  }
  struct sigaction action = pythons_action;
  action.sa_handler = OnInterrupt;
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

CancelOnCtrlC::~CancelOnCtrlC() {
  if (PyThread_get_thread_ident() != main_thread) return;
  if (installed_) {
    // What a kernel in Python has installed meanwhile stays.
    struct sigaction now = {};
    if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == OnInterrupt)
      sigaction(SIGINT, &pythons_action, nullptr);
  }
  running.store(outer_);
  // A handler on another thread may still hold the machine.
  while (handlers.load() != 0) sched_yield();
}

void RaiseInterrupt(const Status& status) {
  if (!status && PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace rewire::python
