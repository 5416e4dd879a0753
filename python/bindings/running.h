// SPDX-License-Identifier: Apache-2.0
//
// A run of a program: without the GIL, and ended by Ctrl-C on Python's main thread.
#pragma once

#include <nanobind/nanobind.h>

#include "rewire/base/status.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::python {

namespace nb = nanobind;

// Remembers which thread is Python's main one. Call it once, with the GIL.
void RememberMainThread();

// While it lives, on Python's main thread, SIGINT also cancels the machine's run. Python's own handler still
// runs, so that the interrupt is raised afterwards. Other threads are left alone: Python interrupts its main
// thread.
class CancelOnCtrlC {
 public:
  explicit CancelOnCtrlC(VirtualMachine* machine);
  ~CancelOnCtrlC();
  CancelOnCtrlC(const CancelOnCtrlC&) = delete;
  CancelOnCtrlC& operator=(const CancelOnCtrlC&) = delete;

 private:
  bool on_main_thread_ = false;
  VirtualMachine* outer_ = nullptr;  // runs may nest
};

// Raises what Python makes of an interrupt if that ended the run; its handler may raise nothing.
void RaiseInterrupt(const Status& status);

// Calls `work`, which runs the machine, and returns its status. The GIL is held before and after.
template <typename Work>
Status RunWithoutGil(VirtualMachine* machine, const Work& work) {
  Status status;
  {
    const CancelOnCtrlC cancel(machine);
    const nb::gil_scoped_release released;
    status = work();
  }
  if (status.code() == StatusCode::kCancelled) RaiseInterrupt(status);
  return status;
}

}  // namespace rewire::python
