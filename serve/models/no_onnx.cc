// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/open_onnx.h"

namespace rewire::serve {

Result<Executable> OpenOnnx(const std::string& path) {
  return Fail(StatusCode::kUnsupported,
              "{}: this server was built without the compiler of ONNX: compile the model to a .rwx file", path);
}

}  // namespace rewire::serve
