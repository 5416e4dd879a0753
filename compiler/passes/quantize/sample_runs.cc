// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/sample_runs.h"

#include <utility>

#include "rewire/compiler/emit/emit.h"

namespace rewire::compiler {

Result<SampleProgram> SampleProgram::Make(Graph graph, const Building& building) {
  const std::size_t results = graph.main.results.size();
  if (Status optimized = building.optimize(&graph); !optimized) return Forward(optimized, "calibration");
  Result<Module> module = EmitModule(graph);
  if (!module) return Forward(module, "calibration");
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return Forward(executable, "calibration");
  LinkOptions options;
  options.kernels = building.kernels;
  const Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) return Forward(program, "calibration");
  return SampleProgram(*program, results);
}

Result<std::vector<rewire::Value>> SampleProgram::Run(const std::vector<rewire::Value>& inputs) const {
  const Result<rewire::Value> made = program_.TryRun("main", {inputs.data(), inputs.size()});
  if (!made) return Forward(made, "calibration");
  if (results_ == 1) return std::vector<rewire::Value>{*made};
  std::vector<rewire::Value> values;
  for (std::uint32_t i = 0; i < results_; ++i) values.push_back(made->field(i));
  return values;
}

Span<const float> SampleElements(const rewire::Value& value) {
  if (value.kind() != ValueKind::kTensor) return {};
  const TensorView view = value.tensor().view();
  if (view.dtype() != kFloat32 || !view.IsContiguous()) return {};
  return {static_cast<const float*>(view.data()), static_cast<std::size_t>(view.bytes() / sizeof(float))};
}

}  // namespace rewire::compiler
