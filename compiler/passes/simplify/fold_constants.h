// SPDX-License-Identifier: Apache-2.0
// Constant folding by running the VM itself: a node whose inputs are constants becomes a program of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/limits.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::compiler {

class ConstantFolder {
 public:
  // Uses the stock kernels; without them nothing is folded. `weight_bytes`: of the model. `for_device`:
  // those of devices, too.
  ConstantFolder(const CompileLimits& limits, std::uint64_t weight_bytes, bool for_device);

  const KernelSet& kernels() const { return kernels_; }
  bool HasKernel(const std::string& name) const;
  // The node's outputs; nothing when it fails, makes something other than tensors or passes a limit. What
  // fails now is left to fail when the program runs, with its message.
  std::optional<std::vector<HostTensor>> Fold(const Node& node);

 private:
  std::optional<std::vector<HostTensor>> Run(const Node& node, std::chrono::nanoseconds time) const;

  std::chrono::nanoseconds node_time_;
  std::chrono::nanoseconds time_left_;
  std::uint64_t bytes_left_;
  KernelSet kernels_;
};

}  // namespace rewire::compiler
