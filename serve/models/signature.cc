// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/signature.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "rewire/executable_format/module.h"
#include "rewire/serve/core/dim_names.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

Status CheckTensor(const char* what, const std::string& name, const TypeNode& type) {
  if (type.kind != TypeKind::kTensor || type.rank == kUnknownRank) {
    return Fail(StatusCode::kUnsupported, "{} '{}' is no tensor of known rank, so it cannot be served", what,
                name);
  }
  if (WireName(type.dtype).empty()) {
    return Fail(StatusCode::kUnsupported,
                "{} '{}' has elements of {}, which the Open Inference Protocol does not have", what, name,
                DTypeName(type.dtype));
  }
  return {};
}

// The number behind a key in what the metadata says of an input of texts: {"offsets": 1, "bytes": 2}.
std::optional<std::uint32_t> NumberBehind(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  text.remove_prefix(found + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" :"), text.size()));
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

bool IsList(const ModelInput& input, DLDataType dtype) {
  return input.dtype == dtype && input.dims.size() == 1;
}

// Finds the inputs of texts. What the metadata says wrongly of them is passed over: it is of no use for
// safety.
void FindTexts(const Module& module, const std::string& function, std::vector<ModelInput>* inputs) {
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const std::string key = "input strings " + function + "." + std::to_string(i);
    for (const auto& [name, text] : module.metadata) {
      if (name != key) continue;
      const auto offsets = NumberBehind(text, "\"offsets\""), bytes = NumberBehind(text, "\"bytes\"");
      if (!offsets || !bytes || *offsets >= inputs->size() || *bytes >= inputs->size()) continue;
      if (!IsList((*inputs)[*offsets], kInt64) || !IsList((*inputs)[*bytes], kUInt8)) continue;
      if ((*inputs)[i].dtype == kInt64) (*inputs)[i].texts = TextParts{*offsets, *bytes};
    }
  }
}

// Whether a tensor is one integer, whatever its rank.
bool IsInteger(const ModelInput& input) {
  return (input.dtype == kInt64 || input.dtype == kInt32) &&
         std::all_of(input.dims.begin(), input.dims.end(), [](Dim dim) { return dim == 1; });
}

// Finds the batch dimension.
void FindBatch(const Module& module, std::string_view largest, ModelSignature* signature) {
  std::optional<std::uint32_t> one;
  std::optional<Dim> first;
  const std::vector<ModelInput>& inputs = signature->inputs;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == largest && IsInteger(inputs[i])) {
      one = i;
      continue;
    }
    if (inputs[i].dims.empty() || !IsSymbol(inputs[i].dims.front())) return;
    if (first && *first != inputs[i].dims.front()) return;
    first = inputs[i].dims.front();
  }
  const auto fits = [&](const ModelOutput& output) {
    return output.derived && !output.dims.empty() && output.dims.front() == *first;
  };
  if (!first || !std::all_of(signature->outputs.begin(), signature->outputs.end(), fits)) return;
  signature->batch_symbol = SymbolOf(*first);
  signature->largest = one;
  if (!module.symbol_limits.empty()) signature->most_rows = module.symbol_limits[SymbolOf(*first)];
}

template <typename Tensors>
std::vector<TensorDescription> DescribeTensors(const Tensors& tensors,
                                               const std::vector<std::string>& symbols) {
  std::vector<TensorDescription> list;
  for (const auto& tensor : tensors) {
    TensorDescription& one = list.emplace_back();
    one.name = tensor.name;
    one.dtype = tensor.dtype;
    for (const Dim dim : tensor.dims) one.shape.push_back(dim < 0 ? -1 : dim);
    one.dims = DimNamesText(tensor.dims, symbols);
  }
  return list;
}

}  // namespace

Result<ModelSignature> ReadSignature(const Program& program, std::string_view largest) {
  const Result<std::uint32_t> entry = program.FindFunction({});
  if (!entry) return Forward(entry);
  const Module& module = program.executable().module();
  const Function& function = module.functions[*entry];
  ModelSignature signature;
  signature.function = *entry;
  signature.symbols.assign(module.symbols.begin(), module.symbols.end());
  std::vector<bool> given(module.symbols.size());
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    ModelInput& input = signature.inputs.emplace_back();
    input.name = function.inputs[i].name.empty() ? std::to_string(i) : function.inputs[i].name;
    const TypeNode& type = function.inputs[i].type.nodes[0];
    if (Status served = CheckTensor("input", input.name, type); !served) return Forward(served);
    input.dtype = type.dtype;
    input.dims.assign(type.dims.begin(), type.dims.end());
    input.handle = {*entry, i};
    for (const Dim dim : input.dims) {
      if (IsSymbol(dim)) given[SymbolOf(dim)] = true;
    }
  }
  FindTexts(module, function.name, &signature.inputs);
  const Array<std::uint32_t> leaves = Leaves(function.result);
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    ModelOutput& output = signature.outputs.emplace_back();
    output.name = i < function.output_names.size() && !function.output_names[i].empty()
                      ? function.output_names[i]
                      : std::to_string(i);
    const TypeNode& type = function.result.nodes[leaves[i]];
    if (Status served = CheckTensor("output", output.name, type); !served) return Forward(served);
    output.dtype = type.dtype;
    output.dims.assign(type.dims.begin(), type.dims.end());
    output.handle = {*entry, i};
    output.derived = std::all_of(output.dims.begin(), output.dims.end(), [&](Dim dim) {
      return dim >= 0 || (IsSymbol(dim) && given[SymbolOf(dim)]);
    });
  }
  FindBatch(module, largest, &signature);
  return signature;
}

std::vector<TensorDescription> DescribeInputs(const ModelSignature& signature) {
  return DescribeTensors(signature.inputs, signature.symbols);
}
std::vector<TensorDescription> DescribeOutputs(const ModelSignature& signature) {
  return DescribeTensors(signature.outputs, signature.symbols);
}

}  // namespace rewire::serve
