// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs by name or index, as the command line names them. A name wins over an index of the same
// spelling.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "executable_format/module.h"

namespace rewire::tools {

// kNotFound, with near names and how many there are.
Result<std::uint32_t> FindInput(const Function& function, std::string_view target);
Result<std::uint32_t> FindOutput(const Function& function, std::string_view target);

// What an output is called: its name, or its index where the executable has none.
std::string OutputName(const Function& function, std::uint32_t leaf);

}  // namespace rewire::tools
