// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM: a tool cleans up, says so, and ends by that signal.
#pragma once

#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

// From now on, such a signal removes unfinished files, prints "<tool>: error: interrupted" on stderr, with
// `json` also an error object on stdout, and ends the process. `tool` must stay.
void EndOnInterrupt(const char* tool, bool json);

// While it lives, the signals are only counted, for a tool that can end by itself. The third one still ends
// the process.
class CatchInterrupts {
 public:
  CatchInterrupts();
  ~CatchInterrupts();
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
};
// How many have come since the last ClearInterrupts.
int InterruptCount();
void ClearInterrupts();
// Ends the process by the last signal that was counted, if there was one.
void EndIfInterrupted();

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
