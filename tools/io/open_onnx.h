// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tools {

// Compiles an ONNX model with all passes. Errors: kUnsupported, with a line for each node that cannot be
// compiled, or if these tools were built without the compiler.
Result<Module> OpenOnnx(const std::string& path);

}  // namespace rewire::tools
