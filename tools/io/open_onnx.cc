// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/open_onnx.h"

#include <utility>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/tools/io/compile_report.h"

namespace rewire::tools {

Result<Module> OpenOnnx(const std::string& path) {
  std::vector<UnsupportedNode> unsupported;
  CompileOptions options;
  options.bound_memory = false;
  const Result<Compilation> compiled = Compile(path, options, &unsupported);
  if (compiled) return compiled->executable.module();
  if (unsupported.empty()) return Forward(compiled);
  return Fail(compiled.error().code(), compiled.error().message() + "\n" + UnsupportedText(unsupported));
}

}  // namespace rewire::tools
