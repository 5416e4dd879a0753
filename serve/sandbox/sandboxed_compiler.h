// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/description.h"

namespace rewire::serve {

// Compiles a model of ONNX that is not trusted in a process that can compute and nothing else. Returns the
// executable in memory that nobody can change, which this process does not read. `model` is the model's open
// file, and `name` stands in messages. External data cannot be read. Of libraries of `kernels` the process
// reads the operators (compiler/library_operators.h), and loads none. Errors: kUnsupported if this server has
// no sandbox or no compiler; kIo if the process ends; those of compiling.
Result<Descriptor> CompileSandboxed(const Descriptor& model, const std::string& name,
                                    const std::vector<std::string>& kernels, const SandboxSettings& settings);

}  // namespace rewire::serve
