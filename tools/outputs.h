// SPDX-License-Identifier: Apache-2.0
// What becomes of a function's outputs: printed, written to files, compared with what was expected.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "executable_format/module.h"
#include "tools/compare.h"
#include "vm/virtual_machine.h"

namespace rewire::tools {

// One leaf of a result. An integer is a scalar tensor of int64 here.
struct Output {
  std::string name;
  std::string type;                  // "f32[2, 3]", or in a few words what else it is
  std::optional<HostTensor> tensor;  // none for trees, closures and storage
  Value value;
  bool used = false;  // written to a file or compared
};

Result<std::vector<Output>> CollectOutputs(const VirtualMachine& vm, const Function& function);

// --output. Returns the files written, each once. Outputs that name the same archive go into it together.
Result<std::vector<std::string>> WriteOutputs(const Function& function,
                                              const std::vector<std::string>& bindings,
                                              std::vector<Output>* outputs);

struct OutputComparison {
  std::string output;
  std::string expected;  // where from: "y.npy", "all.npz:y"
  Comparison comparison;
};
// --expect. A wrong output is no error: see Comparison.
Result<std::vector<OutputComparison>> CompareOutputs(const Function& function,
                                                     const std::vector<std::string>& bindings,
                                                     const Tolerance& tolerance,
                                                     std::vector<Output>* outputs);

// "scores: f32[2, 3]" and the elements below it.
std::string OutputText(const Output& output);
// Elements only up to 1000 of them, as a flat list; NaN and infinities as strings.
nlohmann::ordered_json OutputJson(const Output& output);
nlohmann::ordered_json ComparisonJson(const OutputComparison& comparison);

}  // namespace rewire::tools
