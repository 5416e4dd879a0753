// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM, taken as the wish to end what is going on, so that a tool can clean up.
#pragma once

#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

// From now on, these signals are counted and do not end the process. The third one does.
void CatchInterrupts();
// How many have come since the last ClearInterrupts.
int InterruptCount();
void ClearInterrupts();

// While it lives, the interrupt that makes the count `after` cancels the VM's run, and so does every later
// one. At most one lives at a time.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt(VirtualMachine* vm, int after);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;
};

}  // namespace rewire::tools
