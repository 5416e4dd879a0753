// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/open_onnx.h"

#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/library_operators.h"
#include "rewire/tools/io/compile_report.h"

namespace rewire::tools {

Result<Module> OpenOnnx(const std::string& path, const std::vector<std::string>& kernels) {
  std::vector<UnsupportedNode> unsupported;
  CompileOptions options;
  options.bound_memory = false;
  Result<std::vector<OperatorSchema>> operators = ReadLibraryOperators(kernels);
  if (!operators) return Forward(operators);
  options.operators = *std::move(operators);
  const Result<Compilation> compiled = Compile(path, options, &unsupported);
  if (compiled) return compiled->executable.module();
  if (unsupported.empty()) return Forward(compiled);
  return Fail(compiled.error().code(), compiled.error().message() + "\n" + UnsupportedText(unsupported));
}

}  // namespace rewire::tools
