// SPDX-License-Identifier: Apache-2.0
//
// Finds inputs, outputs and symbolic dimensions by name, inputs and outputs by index, too, as the command
// line names them. If a name looks like an index, the name counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tools {

// Errors: kNotFound, with similar names and the names that there are, or the number of entries.
Result<std::uint32_t> FindInput(const Function& function, std::string_view target);
Result<std::uint32_t> FindOutput(const Function& function, std::string_view target);

// "N=4": a symbolic dimension of the module and its size. Of a wrong name and a wrong size, the name is told.
struct SymbolSize {
  std::uint32_t symbol = 0;
  std::int64_t size = 0;
};
// Errors: kNotFound, with similar names and the dimensions that there are; kInvalidArgument.
Result<SymbolSize> FindSymbol(const Module& module, std::string_view text);

// The symbolic dimensions of a function's inputs whose largest size the executable does not give.
std::vector<std::string> OpenDimensions(const Module& module, const Function& function);

// The name of an output, or its index if the executable has no names.
std::string OutputName(const Function& function, std::uint32_t leaf);

}  // namespace rewire::tools
