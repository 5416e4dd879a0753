// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/known_calls.h"

#include <memory>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/executable.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::aot {
namespace {

// A module whose function main makes this call of constants, and returns the tuple of what it wrote.
Result<Module> ModuleOf(const KernelImport& import, const std::vector<KnownTensor>& inputs,
                        const std::vector<KnownTensor>& outputs) {
  Module module;
  module.kernels.push_back(import);
  CodeWriter code;
  std::vector<std::uint32_t> arguments;
  std::vector<std::uint32_t> results;
  std::uint32_t registers = 0;
  for (const KnownTensor& input : inputs) {
    const auto owner = std::make_shared<const std::vector<std::byte>>(input.bytes);
    Constant constant;
    constant.name = std::to_string(module.constants.size());
    Array<Dim> dims;
    dims.assign(input.dims.begin(), input.dims.end());
    constant.type = TensorType(input.dtype, dims).nodes[0];
    constant.raw_bytes = input.bytes.size();
    constant.stored = {{owner->data(), owner->size()}, owner};
    code.LoadConst(static_cast<std::uint32_t>(module.constants.size()), registers);
    module.constants.push_back(std::move(constant));
    arguments.push_back(registers++);
  }
  constexpr std::uint32_t kAlignment = 64;
  for (const KnownTensor& output : outputs) {
    const CodeWriter::Dims dims{output.dims.data(), output.dims.size()};
    const std::uint32_t storage = registers++;
    code.AllocStorage(kNone, kAlignment, output.dtype, kHostDevice, storage, dims);
    code.AllocTensor(storage, kNone, output.dtype, registers, dims);
    arguments.push_back(registers);
    results.push_back(registers++);
  }
  code.InvokePacked(0, static_cast<std::uint32_t>(outputs.size()), kNone,
                    {arguments.data(), arguments.size()});
  code.AllocADT(0, registers, {results.data(), results.size()});
  code.Ret(registers++);
  Result<Array<std::uint32_t>> words = code.Finish();
  if (!words) return Forward(words);
  Function function;
  function.name = "main";
  function.result = SimpleType(TypeKind::kValue);
  function.output_names.push_back("results");
  function.register_count = registers;
  function.code = *std::move(words);
  module.functions.push_back(std::move(function));
  return module;
}

KnownCalls::Results RunInVm(const KernelImport& import, const std::vector<KnownTensor>& inputs,
                            const std::vector<KnownTensor>& outputs) {
  Result<Module> module = ModuleOf(import, inputs, outputs);
  if (!module) return std::nullopt;
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return std::nullopt;
  const Result<Program> program = Program::Link(*executable);
  if (!program) return std::nullopt;
  const Result<rewire::Value> value = VirtualMachine(*program).TryInvoke("main", Span<const rewire::Value>());
  if (!value) return std::nullopt;
  std::vector<KnownTensor> results = outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const rewire::Value field = value->field(static_cast<std::uint32_t>(i));
    const TensorView view = field.tensor().view();
    const auto* const data = static_cast<const std::byte*>(view.data());
    results[i].bytes.assign(data, data + view.bytes());
  }
  return results;
}

void Append(const KnownTensor& tensor, std::string* key) {
  const auto add = [&](const void* data, std::size_t bytes) {
    key->append(static_cast<const char*>(data), bytes);
    key->push_back('|');
  };
  add(&tensor.dtype, sizeof(tensor.dtype));
  if (!tensor.dims.empty()) add(tensor.dims.data(), tensor.dims.size() * sizeof(std::int64_t));
  if (!tensor.bytes.empty()) add(tensor.bytes.data(), tensor.bytes.size());
}

}  // namespace

const KnownCalls::Results& KnownCalls::Run(const KernelImport& import, const std::vector<KnownTensor>& inputs,
                                           const std::vector<KnownTensor>& outputs) {
  static const Results kNoResults;
  if (!names::StartsWith(import.name, names::kStock)) return kNoResults;
  // Imports are told apart by their place: the module of a source does not change.
  const KernelImport* const place = &import;
  std::string key(reinterpret_cast<const char*>(&place), sizeof(place));
  for (const KnownTensor& input : inputs) Append(input, &key);
  key += '>';
  for (const KnownTensor& output : outputs) Append(output, &key);
  const auto [found, is_new] = results_.try_emplace(std::move(key));
  if (is_new) found->second = RunInVm(import, inputs, outputs);
  return found->second;
}

}  // namespace rewire::aot
