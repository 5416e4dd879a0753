// SPDX-License-Identifier: Apache-2.0
//
// Finds the node of the model that makes the first NaN of a kernel's result. A call of rewire.fused does the
// work of several nodes: its program is computed again, one step more each time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

class NanMaker {
 public:
  // Call it before each instruction. Looks for NaN in the arguments of a call, and copies those of
  // rewire.fused, which may overwrite them.
  void BeforeInstruction(const Observer::Instruction& instruction);

  // For the kernel call that was the last instruction, if its result has NaN: "Log 'take_log'"; the note of
  // the call where its nodes cannot be told apart. Empty for a call without a note, and if an argument had
  // NaN.
  std::string Of(const Module& module, std::uint32_t function, std::uint32_t pc) const;

 private:
  // The steps up to this one, computed from the kept arguments.
  std::optional<HostTensor> Compute(std::size_t steps) const;

  bool passes_nan_on_ = false;      // an argument of the last instruction had NaN
  std::vector<std::string> steps_;  // of the program; empty if the last instruction calls another kernel
  std::vector<HostTensor> arguments_;
};

}  // namespace rewire::tools
