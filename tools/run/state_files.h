// SPDX-License-Identifier: Apache-2.0
//
// vm-run --load-state, --carry and --save-state: inputs that go from one run of the tool to the next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/vm/value.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

// Reads a state and returns its values by input of the function, empty where it has none. Errors: those of
// VirtualMachine::TryLoadState, and kInvalidArgument if the state is of another function.
Result<std::vector<Value>> LoadInputs(VirtualMachine* vm, std::uint32_t function, const std::string& path);

// Writes the inputs that are set. `carries` name outputs of the last run that are written in place of inputs:
// "OUTPUT=INPUT". The VM then has these as inputs, too. Errors: kNotFound with similar names;
// kInvalidArgument if an output does not match the input; those of VirtualMachine::TrySaveState.
Status SaveInputs(VirtualMachine* vm, std::uint32_t function, const std::vector<std::string>& carries,
                  const std::string& path);

}  // namespace rewire::tools
