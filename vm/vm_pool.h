// SPDX-License-Identifier: Apache-2.0
// The VMs behind Program::TryRun: idle ones wait here for the next call, whichever thread it comes from.
#pragma once

#include <mutex>
#include <vector>

#include "vm/virtual_machine.h"

namespace rewire {

class VmPool {
 public:
  // At most this many idle VMs are kept; more exist while more threads run at once.
  static constexpr std::size_t kMaxIdle = 64;

  VirtualMachine Take(const Program& program);
  void Give(VirtualMachine vm);

 private:
  std::mutex mutex_;
  std::vector<VirtualMachine> idle_;
};

}  // namespace rewire
