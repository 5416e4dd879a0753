// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/open_onnx.h"

#if REWIRE_SERVE_COMPILES
#include <chrono>
#include <utility>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/library_operators.h"
#include "rewire/serve/models/unsupported_nodes.h"
#endif

namespace rewire::serve {

#if REWIRE_SERVE_COMPILES
Result<CompiledOnnx> OpenOnnx(const std::string& path, const std::vector<std::string>& kernels,
                              const std::string& cache) {
  std::vector<UnsupportedNode> unsupported;
  CompileOptions options;
  Result<std::vector<OperatorSchema>> operators = ReadLibraryOperators(kernels);
  if (!operators) return Forward(operators);
  options.operators = *std::move(operators);
  options.bound_memory = false;
  options.compress = false;  // as libonnxruntime does, so that both find one entry of a cache
  options.cache = cache;
  Result<Compilation> compiled = Compile(path, options, &unsupported);
  if (compiled) {
    const CompileReport& report = compiled->report;
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(report.time).count();
    return CompiledOnnx{
        std::move(compiled->executable),
        report.from_cache ? "found in the cache" : "compiled in " + std::to_string(time) + " ms",
        report.cache_problem};
  }
  return Fail(compiled.error().code(), "{}", WithNodes(compiled.error(), unsupported));
}
#else
Result<CompiledOnnx> OpenOnnx(const std::string&, const std::vector<std::string>&, const std::string&) {
  return Fail(StatusCode::kUnsupported,
              "this server was built without the compiler of ONNX: compile the model to a .rwx file");
}
#endif

}  // namespace rewire::serve
