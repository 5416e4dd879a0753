// SPDX-License-Identifier: Apache-2.0
// --explain-outputs: what a function copies between devices, and what reads the copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"

namespace rewire::tools {

struct DeviceCopyPlan {
  std::uint32_t pc = 0;
  std::string from, to;  // devices: "cpu", "opencl:0"
  std::string source;    // the node of the model that the copied value comes from; empty if that is not noted
  // The readers of the copy: names of kernels, "an output", "what an If gives or a Loop carries", or the
  // mnemonic of an instruction.
  std::vector<std::string> readers;
};

// The copies in the order of the code.
std::vector<DeviceCopyPlan> DeviceCopies(const Module& module, const Function& function);
// A line for each of them.
std::string DeviceCopiesText(const Module& module, const Function& function);

}  // namespace rewire::tools
