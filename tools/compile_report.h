// SPDX-License-Identifier: Apache-2.0
// What vm-compile and vm-run share of the compiler's command line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compile.h"

namespace rewire::tools {

// `dims` are "NAME=SIZE". kInvalidArgument names the text that is wrong.
Result<compiler::CompileOptions> ParseCompileOptions(const std::vector<std::string>& dims,
                                                     const std::vector<std::string>& max_dims,
                                                     const std::vector<std::string>& disabled_passes);

// One line a node; empty for an empty list.
std::string UnsupportedText(const std::vector<compiler::Unsupported>& nodes);
nlohmann::ordered_json UnsupportedJson(const std::string& input, const Error& error,
                                       const std::vector<compiler::Unsupported>& nodes);

}  // namespace rewire::tools
