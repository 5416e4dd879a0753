// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/open_onnx.h"

#include <utility>
#include <vector>

#include "rewire/compiler/compile.h"
#include "rewire/tools/io/compile_report.h"

namespace rewire::tools {

Result<Module> OpenOnnx(const std::string& path) {
  std::vector<compiler::Unsupported> unsupported;
  Result<compiler::Compiled> compiled = compiler::CompileOnnx(path, {}, &unsupported);
  if (compiled) return std::move(compiled->module);
  if (unsupported.empty()) return Forward(compiled);
  return Fail(compiled.error().code(), compiled.error().message() + "\n" + UnsupportedText(unsupported));
}

}  // namespace rewire::tools
