// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/state_files.h"

#include <fmt/format.h>

#include <utility>

namespace rewire::tools {

Result<std::vector<Value>> LoadInputs(VirtualMachine* vm, std::uint32_t function, const std::string& path) {
  const Result<std::uint32_t> loaded = vm->TryLoadState(path);
  if (!loaded) return Forward(loaded, "--load-state");
  const Module& module = vm->program().executable().module();
  if (*loaded != function) {
    const std::string& name = module.functions[*loaded].name;
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format(
            "--load-state: {} has the state of function {}, and function {} runs; write --function {}", path,
            name, module.functions[function].name, name));
  }
  std::vector<Value> values;
  for (std::uint32_t i = 0; i < module.functions[function].inputs.size(); ++i) {
    Result<Value> value = vm->TryInput(InputHandle{function, i});
    if (!value) return Forward(value);
    values.push_back(*std::move(value));
  }
  return values;
}

Status SaveInputs(VirtualMachine* vm, std::uint32_t function, const std::vector<std::string>& carries,
                  const std::string& path) {
  const std::string& name = vm->program().executable().module().functions[function].name;
  std::vector<std::pair<InputHandle, Value>> carried;  // before any is set: an input may be a result, too
  for (const std::string& carry : carries) {
    const std::size_t equals = carry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == carry.size()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("--carry: OUTPUT=INPUT expected, such as next=state; '{}' given", carry));
    }
    const Result<OutputHandle> output = vm->program().FindOutput(carry.substr(0, equals), name);
    if (!output) return Forward(output, "--carry");
    const Result<InputHandle> input = vm->program().FindInput(carry.substr(equals + 1), name);
    if (!input) return Forward(input, "--carry");
    Result<Value> value = vm->TryOutput(output->leaf);
    if (!value) return Forward(value, "--carry");
    carried.emplace_back(*input, *std::move(value));
  }
  for (const auto& [input, value] : carried) {
    if (Status set = vm->TrySetInput(input, value); !set) return Forward(set, "--carry");
  }
  return vm->TrySaveState(path, name);
}

}  // namespace rewire::tools
