// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "executable_format/module.h"

namespace rewire::tools {

// Compiles an ONNX model with all passes. kUnsupported: with a line for each node that cannot be compiled; or
// that these tools were built without the compiler.
Result<Module> OpenOnnx(const std::string& path);

}  // namespace rewire::tools
