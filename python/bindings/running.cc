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
std::atomic<void (*)(int)> pythons_handler{nullptr};  // set before ours is installed
unsigned long main_thread = 0;

void OnInterrupt(int signal) {
  const int before = errno;
  ++handlers;
  if (VirtualMachine* machine = running.load()) machine->Cancel();
  --handlers;
  pythons_handler.load()(signal);
  errno = before;
}

}  // namespace

void RememberMainThread() {
  const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(thread.attr("ident"));
}

CancelOnCtrlC::CancelOnCtrlC(VirtualMachine* machine) {
  on_main_thread_ = PyThread_get_thread_ident() == main_thread;
  if (!on_main_thread_) return;
  outer_ = running.exchange(machine);
  // Ours stays installed, so that most runs only look. signal.signal() replaces it, and then it is installed
  // again.
  struct sigaction now = {};
  if (sigaction(SIGINT, nullptr, &now) != 0 || now.sa_handler == OnInterrupt) return;
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || (now.sa_flags & SA_SIGINFO) != 0) return;
  pythons_handler = now.sa_handler;
  now.sa_handler = OnInterrupt;
  sigaction(SIGINT, &now, nullptr);
}

CancelOnCtrlC::~CancelOnCtrlC() {
  if (!on_main_thread_) return;
  running.store(outer_);
  // A handler on another thread may still hold the machine.
  while (handlers.load() != 0) sched_yield();
}

void RaiseInterrupt(const Status& status) {
  if (!status && PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace rewire::python
