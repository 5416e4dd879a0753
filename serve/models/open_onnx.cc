// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/open_onnx.h"

#if REWIRE_SERVE_COMPILES
#include <vector>

#include "rewire/compiler/compiler.h"
#endif

namespace rewire::serve {

#if REWIRE_SERVE_COMPILES
Result<Executable> OpenOnnx(const std::string& path) {
  std::vector<UnsupportedNode> unsupported;
  CompileOptions options;
  options.bound_memory = false;
  const Result<Compilation> compiled = Compile(path, options, &unsupported);
  if (compiled) return compiled->executable;
  std::string text = compiled.error().message();
  for (const UnsupportedNode& node : unsupported)
    text += "\n  " + node.op_type + " '" + node.node + "': " + node.reason;
  return Fail(compiled.error().code(), text);
}
#else
Result<Executable> OpenOnnx(const std::string&) {
  return Fail(StatusCode::kUnsupported,
              "this server was built without the compiler of ONNX: compile the model to a .rwx file");
}
#endif

}  // namespace rewire::serve
