// SPDX-License-Identifier: Apache-2.0
// In place of open_onnx.cc in a build without the compiler.
#include "tools/open_onnx.h"

namespace rewire::tools {

Result<Module> OpenOnnx(const std::string& path) {
  return Fail(StatusCode::kUnsupported, path + ": these tools were built without the ONNX compiler");
}

}  // namespace rewire::tools
