// SPDX-License-Identifier: Apache-2.0
//
// The options --parameters and --weights of vm-compile.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"

namespace rewire::tools {

// Each of `chosen` is "all", the name of a constant of the model, or a file of parameters, which stands for
// the names in it.
Status ReadParameterOptions(const std::vector<std::string>& chosen, CompileOptions* compile);

// Writes the model's own parameters to a file, whose ending decides the format.
Status WriteWeights(const std::string& path, const ParameterSet& parameters);

// "12 parameters with 3.4 MB are bound when a program is linked (vm-run --params)"; empty without parameters.
std::string ParametersText(const CompileReport& report);

}  // namespace rewire::tools
