// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/open_onnx.h"

#include <vector>

#include "rewire/compiler/compiler.h"

namespace rewire::serve {

Result<Executable> OpenOnnx(const std::string& path) {
  std::vector<UnsupportedNode> unsupported;
  CompileOptions options;
  options.bound_memory = false;
  const Result<Compilation> compiled = Compile(path, options, &unsupported);
  if (compiled) return compiled->executable;
  std::string text = compiled.error().message();
  for (const UnsupportedNode& node : unsupported) text += "\n  " + node.op_type + " '" + node.node + "': " + node.reason;
  return Fail(compiled.error().code(), text);
}

}  // namespace rewire::serve
