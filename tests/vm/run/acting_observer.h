// SPDX-License-Identifier: Apache-2.0
// An observer that runs a function of the test's while the VM is in the middle of a run.
#pragma once

#include <functional>

#include "rewire/vm/observer.h"

namespace rewire::test {

struct ActingObserver : Observer {
  bool instructions = false;
  bool kernels = false;
  std::function<void()> action;
  bool wants_instructions() const override { return instructions; }
  bool wants_kernels() const override { return kernels; }
  void OnInstruction(const Instruction&) override { action(); }
  void OnKernel(const KernelCall&) override { action(); }
};

}  // namespace rewire::test
