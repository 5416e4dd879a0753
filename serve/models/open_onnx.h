// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire::serve {

struct CompiledOnnx {
  Executable executable;
  std::string origin;         // "compiled in 812 ms" or "found in the cache"
  std::string cache_problem;  // why the cache was not used, or the executable not kept; else empty
};

// Compiles a model of ONNX, unless the folder `cache` has its executable (CompileOptions::cache); empty:
// there is none. Libraries of `kernels` have operators of the model (compiler/library_operators.h). Errors:
// kUnsupported, with a line for each node that cannot be compiled, or if this server was built without the
// compiler. Those of ReadLibraryOperators.
Result<CompiledOnnx> OpenOnnx(const std::string& path, const std::vector<std::string>& kernels,
                              const std::string& cache);

}  // namespace rewire::serve
