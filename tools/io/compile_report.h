// SPDX-License-Identifier: Apache-2.0
//
// The compiler's command line options that vm-compile and vm-run share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"

namespace rewire::tools {

// `dims` are "NAME=SIZE". Errors: kInvalidArgument, which names the wrong text.
Result<CompileOptions> ParseCompileOptions(const std::vector<std::string>& dims,
                                           const std::vector<std::string>& max_dims,
                                           const std::vector<std::string>& disabled_passes);

// The schemas of these JSON files. Later ones count before earlier ones.
Result<std::vector<OperatorSchema>> ReadOperatorFiles(const std::vector<std::string>& files);

// One line per node; empty for an empty list.
std::string UnsupportedText(const std::vector<UnsupportedNode>& nodes);
nlohmann::ordered_json UnsupportedJson(const std::string& input, const Error& error,
                                       const std::vector<UnsupportedNode>& nodes);

}  // namespace rewire::tools
