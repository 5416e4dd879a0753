// SPDX-License-Identifier: Apache-2.0
// What becomes of a function's outputs: printed or written to files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "executable_format/module.h"
#include "executable_format/tensor_files/host_tensor.h"
#include "tools/mapped_output.h"
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

// A tensor or an integer on the host; none for what is neither. kUnsupported: on another device.
Result<std::optional<HostTensor>> HostTensorOf(const Value& value);

Result<std::vector<Output>> CollectOutputs(const VirtualMachine& vm, const Function& function);

// --output. Returns the files written, each once. Outputs that name the same archive go into it together;
// those that lie in a file already only get their header.
Result<std::vector<std::string>> WriteOutputs(const Function& function,
                                              const std::vector<std::string>& bindings,
                                              const MappedOutputs& mapped, std::vector<Output>* outputs);

// "scores: f32[2, 3]" and the elements below it.
std::string OutputText(const Output& output);
// Elements only up to 1000 of them, as a flat list; NaN and infinities as strings.
nlohmann::ordered_json OutputJson(const Output& output);

}  // namespace rewire::tools
