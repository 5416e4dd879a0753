// SPDX-License-Identifier: Apache-2.0
//
// Replaces open_onnx.cc in a build without the compiler.
#include "rewire/tools/io/open_onnx.h"

namespace rewire::tools {

Result<Module> OpenOnnx(const std::string& path, const std::vector<std::string>& /*kernels*/) {
  return Fail(StatusCode::kUnsupported, path + ": these tools were built without the ONNX compiler");
}

}  // namespace rewire::tools
