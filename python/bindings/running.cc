// SPDX-License-Identifier: Apache-2.0
#include "rewire/python/bindings/running.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>

#include "rewire/tools/io/signal_target.h"

namespace rewire::python {
namespace {

tools::SignalTarget<VirtualMachine> running;
std::atomic<void (*)(int)> pythons_handler{nullptr};  // set before ours is installed
unsigned long main_thread = 0;

void OnInterrupt(int signal) {
  const int before = errno;
  running.Cancel();
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
  outer_ = running.Exchange(machine);
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
  if (on_main_thread_) running.Exchange(outer_);
}

void RaiseInterrupt(const Status& status) {
  if (!status && PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace rewire::python
