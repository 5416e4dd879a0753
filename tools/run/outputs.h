// SPDX-License-Identifier: Apache-2.0
//
// Prints a function's outputs or writes them to files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/tools/run/mapped_output.h"
#include "rewire/tools/run/output_lists.h"
#include "rewire/tools/run/text_tensors.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

// One leaf of a result. An integer is a scalar tensor of int64 here.
struct Output {
  std::string name;
  std::string type;                  // "f32[2, 3]", or in a few words what else it is
  std::optional<HostTensor> tensor;  // none for trees, closures and storage
  Value value;
  bool used = false;  // written to a file or compared
  // The strings, if their list is two other outputs.
  std::optional<TextArray> texts;
  bool is_list = false;  // one of these two
  OutputLists lists;
};

// Returns a tensor or an integer on the host; nullopt for other values. Errors: kUnsupported if it is on
// another device.
Result<std::optional<HostTensor>> HostTensorOf(const Value& value);

Result<std::vector<Output>> CollectOutputs(const VirtualMachine& vm, const Function& function);

// Implements --output. Returns the files that were written, each once. Outputs with the same archive are
// written to it together. Outputs that already lie in a file only get their header.
Result<std::vector<std::string>> WriteOutputs(const Function& function,
                                              const std::vector<std::string>& bindings,
                                              const MappedOutputs& mapped, std::vector<Output>* outputs);

// "scores: f32[2, 3]" and the elements below it. Strings stand in quotation marks, a map's keys in a line.
std::string OutputText(const Output& output);
// Its first line alone: name and type.
std::string OutputHead(const Output& output);
// How many elements are NaN; 0 for element types that have none, or that no kernel computes with.
std::uint64_t CountNan(const HostTensor& tensor);
// Elements (strings where they stand for such) as a flat list, only for up to 1000 of them. NaN and
// infinities are strings.
nlohmann::ordered_json OutputJson(const Output& output);

}  // namespace rewire::tools
