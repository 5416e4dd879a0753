// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/run_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/tensor_io.h"

namespace rewire::tools {
namespace {

constexpr const char kRandom[] = "random";
constexpr std::string_view kFill = "fill:";

}  // namespace

RunInputs::RunInputs(const Module& module, InputOptions options)
    : module_(module), options_(std::move(options)) {}

Status RunInputs::Start(std::uint32_t function, bool with_options) {
  function_ = function;
  values_.clear();
  if (!with_options) return {};
  for (const std::string& dim : options_.dims) {
    if (Status set = SetDim(dim); !set) return Forward(set, "--dim");
  }
  for (const std::string& binding : options_.inputs) {
    if (Status set = Set(binding); !set) return Forward(set, "--input");
  }
  return {};
}

Status RunInputs::SetDim(const std::string& dim) {
  const Result<SymbolSize> found = FindSymbol(module_, dim);
  if (!found) return Forward(found);
  dims_[module_.symbols[found->symbol]] = std::to_string(found->size);
  return {};
}

Status RunInputs::Set(const std::string& binding) {
  const Function& function = module_.functions[function_];
  if (binding.starts_with('@')) {
    const std::string path = binding.substr(1);
    const Result<std::vector<NamedTensor>> members = ReadArchive(path);
    if (!members) return Forward(members);
    for (const NamedTensor& member : *members) {
      const Result<std::uint32_t> input = FindInput(function, member.name);
      if (!input) return Forward(input, path);
      values_[*input] = fmt::format("@{}:{}", path, member.name);
    }
    return {};
  }
  const std::size_t equals = binding.find('=');
  if (equals == std::string::npos) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("'{}': expected NAME=VALUE, such as x=@x.npy", binding));
  }
  const Result<std::uint32_t> input = FindInput(function, binding.substr(0, equals));
  if (!input) return Forward(input);
  return SetOne(*input, binding.substr(equals + 1));
}

Status RunInputs::SetOne(std::uint32_t input, const std::string& value) {
  std::string text = value;
  if (value.starts_with(kFill)) {
    const Result<std::string> filled = Filled(input, value.substr(kFill.size()));
    if (!filled) return Forward(filled);
    text = *filled;
  } else if (value != kRandom) {
    const Result<ValueSpec> parsed = ParseValueSpec(value);
    if (!parsed) return Forward(parsed);
  }
  values_[input] = text;
  return {};
}

Result<std::string> RunInputs::Filled(std::uint32_t input, const std::string& number) const {
  const NamedType& declared = module_.functions[function_].inputs[input];
  const auto unknown = [&](const std::string& hint) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("input '{}' is {}: `fill:` does not know its dtype and shape; {}", declared.name,
                            TypeText(declared.type, module_.symbols), hint));
  };
  const std::string write = fmt::format("write {}=2x3xf32={}", declared.name, number);
  const TypeNode& type = declared.type.nodes[0];
  if (type.kind != TypeKind::kTensor || type.rank == kUnknownRank || type.dtype == kUnknownDType) {
    return unknown(write);
  }
  std::string text;
  for (const Dim dim : type.dims) {
    if (dim == kUnknownDim) return unknown(write);
    if (!IsSymbol(dim)) {
      text += fmt::format("{}x", dim);
      continue;
    }
    const std::string& symbol = module_.symbols[SymbolOf(dim)];
    const auto size = dims_.find(symbol);
    if (size == dims_.end()) return unknown(fmt::format("say `dim {}=SIZE` first", symbol));
    text += size->second + "x";
  }
  text += fmt::format("{}={}", DTypeName(type.dtype), number);
  if (const Result<ValueSpec> parsed = ParseValueSpec(text); !parsed) return Forward(parsed);
  return text;
}

Result<std::vector<Value>> RunInputs::Make() const {
  const Function& function = module_.functions[function_];
  InputOptions options = options_;
  options.inputs.clear();
  options.dims.clear();
  std::string missing;
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    // Names may be stripped from a file.
    const std::string& name = function.inputs[i].name;
    const std::string target = name.empty() ? std::to_string(i) : name;
    const auto value = values_.find(i);
    if (value == values_.end() && !options_.random) {
      missing += (missing.empty() ? "" : ", ") + target;
    } else if (value != values_.end() && value->second != kRandom) {
      options.inputs.push_back(fmt::format("{}={}", target, value->second));
    }
  }
  if (!missing.empty()) {
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format("these inputs of {} are not set: {}; say `input NAME=VALUE` or `input NAME=random`",
                    function.name, missing));
  }
  for (const auto& [symbol, size] : dims_) options.dims.push_back(symbol + "=" + size);
  options.random = true;
  return MakeInputs(module_, function, options);
}

std::string RunInputs::Text() const {
  const Function& function = module_.functions[function_];
  std::vector<std::vector<std::string>> rows = {{"input", "type", "set to"}};
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    const NamedType& input = function.inputs[i];
    const auto value = values_.find(i);
    const std::string otherwise = options_.random ? kRandom : "(nothing)";
    std::string text = value == values_.end() ? otherwise : value->second;
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    rows.push_back({input.name, TypeText(input.type, module_.symbols), text});
  }
  std::string text = TableText(rows, {});
  for (const auto& [symbol, size] : dims_) text += fmt::format("  {} = {}\n", symbol, size);
  return text;
}

}  // namespace rewire::tools
