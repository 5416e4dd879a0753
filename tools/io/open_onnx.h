// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tools {

// Compiles an ONNX model with all passes. The JSON files beside the kernel libraries `kernels` say which
// operators they have (docs/own-operators.md). Errors: kUnsupported, with a line for each node that cannot be
// compiled, or if these tools were built without the compiler.
Result<Module> OpenOnnx(const std::string& path, const std::vector<std::string>& kernels);

}  // namespace rewire::tools
