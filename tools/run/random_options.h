// SPDX-License-Identifier: Apache-2.0
// The options of a command line that say how random inputs are made.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "rewire/tools/run/input_values.h"

namespace rewire::tools {

// Adds --seed, --range and --dim. `group` is their heading in --help.
void AddRandomOptions(CLI::App* app, InputOptions* options, const std::string& group = "Options");

}  // namespace rewire::tools
