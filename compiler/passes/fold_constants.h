// SPDX-License-Identifier: Apache-2.0
// Constant folding by running the VM itself: a node whose inputs are constants becomes a program of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "vm/loader/kernel_set.h"

namespace rewire::compiler {

class ConstantFolder {
 public:
  // Loads the stock kernels; without them nothing is folded.
  ConstantFolder();

  bool HasKernel(const std::string& name) const;
  // The node's outputs; nothing when it fails or makes something other than tensors. What fails now is left
  // to fail when the program runs, with its message.
  std::optional<std::vector<HostTensor>> Fold(const Node& node) const;

 private:
  KernelSet kernels_;
};

}  // namespace rewire::compiler
