// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire::serve {

// Compiles a model of ONNX. Errors: kUnsupported, with a line for each node that cannot be compiled, or if
// this server was built without the compiler.
Result<Executable> OpenOnnx(const std::string& path);

}  // namespace rewire::serve
