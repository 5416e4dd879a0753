// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/against/against.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/against/onnx_runtime.h"
#include "rewire/tools/against/program_values.h"
#include "rewire/tools/against/search.h"
#include "rewire/tools/record/value_names.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

// The tolerance that tests/models allows for all its models: both programs round, and each rounding is passed
// on.
constexpr double kRelative = 1e-4;
constexpr double kStepsOfHalf = 4;  // of the last bit of a float of 16 bits

Json NumberJson(double number) { return std::isfinite(number) ? Json(number) : Json("inf"); }

std::string PythonOf(const AgainstOptions& options) {
  if (!options.python.empty()) return options.python;
  const char* named = std::getenv("REWIRE_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

// Floats may be off by a part of themselves and of the largest element, from which they may be the
// difference. Integers are exact, but those of 8 bits may be rounded from floats.
Tolerance AllowedFor(const HostTensor& given, const HostTensor& expected, const AgainstOptions& options) {
  if (!IsFloat(expected.dtype)) {
    const bool rounded = expected.dtype.bits == 8 && expected.dtype.code != kBool;
    return {options.relative.value_or(0), options.absolute.value_or(rounded ? 1 : 0)};
  }
  double relative = kRelative;
  for (const DLDataType dtype : {given.dtype, expected.dtype}) {
    if (dtype.bits != 16) continue;
    relative = std::max(relative, kStepsOfHalf / (dtype.code == kBFloat ? 128 : 1024));
  }
  relative = options.relative.value_or(relative);
  return {relative, options.absolute.value_or(0) + relative * LargestMagnitude(expected)};
}

// The program may compute in f32 what the model has in f16.
HostTensor Widened(const HostTensor& half) {
  HostTensor wide;
  wide.dtype = kFloat32;
  wide.shape = half.shape;
  const std::size_t count = half.bytes.view.size() / 2;
  std::byte* to = nullptr;
  wide.bytes = AllocateBytes(count * sizeof(float), &to);
  for (std::size_t i = 0; i < count; ++i) {
    const auto element = static_cast<float>(text::ElementValue(half.dtype, half.bytes.view.data() + 2 * i));
    std::memcpy(to + i * sizeof(float), &element, sizeof(element));
  }
  return wide;
}

class Comparing {
 public:
  Comparing(VirtualMachine* vm, std::uint32_t function, const AgainstOptions& options)
      : vm_(*vm),
        module_(vm->program().executable().module()),
        function_(module_.functions[function]),
        options_(options),
        values_(vm, function) {}

  Result<AgainstReport> Run(Span<const Value> inputs);

 private:
  Result<std::vector<NamedTensor>> Feeds(Span<const Value> inputs) const;
  Comparison CompareValue(const HostTensor& given, const HostTensor& expected) const;
  Result<std::map<std::string, Comparison>> CompareOutputs();
  Result<std::map<std::string, Comparison>> CompareValues(const std::vector<std::string>& names);
  void ReportFirst(const FirstDifference& first);
  std::string MadeText(const std::string& value) const;

  VirtualMachine& vm_;
  const Module& module_;
  const Function& function_;
  const AgainstOptions& options_;
  ProgramValues values_;
  std::unique_ptr<OnnxRuntime> runtime_;
  AgainstReport report_;
};

Result<std::vector<NamedTensor>> Comparing::Feeds(Span<const Value> inputs) const {
  std::vector<NamedTensor> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = function_.inputs[i].name;
    const std::string key = fmt::format("input strings {}.{}", function_.name, i);
    const bool strings = std::any_of(module_.metadata.begin(), module_.metadata.end(),
                                     [&](const auto& entry) { return entry.first == key; });
    const Result<std::optional<HostTensor>> tensor = HostTensorOf(inputs[i]);
    if (!tensor) return Forward(tensor, name);
    if (strings || !*tensor) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("input '{}' is {}: --against can give only tensors of numbers to ONNX Runtime",
                              name, strings ? "strings" : ValueKindName(inputs[i].kind())));
    }
    feeds.push_back({name, **tensor});
  }
  return feeds;
}

Comparison Comparing::CompareValue(const HostTensor& given, const HostTensor& expected) const {
  const Tolerance allowed = AllowedFor(given, expected, options_);
  const bool narrower = given.dtype == kFloat32 && IsFloat(expected.dtype) && expected.dtype.bits == 16;
  return Compare(given, narrower ? Widened(expected) : expected, allowed);
}

Result<std::map<std::string, Comparison>> Comparing::CompareOutputs() {
  std::vector<std::string> names;
  for (const Output& output : values_.outputs()) {
    const std::vector<std::string>& known = runtime_->graph().outputs;
    const bool has = std::find(known.begin(), known.end(), output.name) != known.end();
    if (has && output.tensor && !output.lists.strings.is_array()) names.push_back(output.name);
  }
  const Result<std::map<std::string, HostTensor>> expected = runtime_->Values(names);
  if (!expected) return Forward(expected);
  std::map<std::string, Comparison> compared;
  for (const Output& output : values_.outputs()) {
    const auto found = expected->find(output.name);
    if (found == expected->end()) continue;
    compared[output.name] = CompareValue(*output.tensor, found->second);
  }
  if (!compared.empty()) return compared;
  return Fail(
      StatusCode::kInvalidArgument,
      fmt::format("{} has no output that is a tensor of numbers and is called as one of the program: is it "
                  "the same model?",
                  options_.model));
}

Result<std::map<std::string, Comparison>> Comparing::CompareValues(const std::vector<std::string>& names) {
  const Result<std::map<std::string, HostTensor>> given = values_.Values(names);
  if (!given) return Forward(given);
  const Result<std::map<std::string, HostTensor>> expected = runtime_->Values(names);
  if (!expected) return Forward(expected);
  std::map<std::string, Comparison> compared;
  for (const auto& [name, tensor] : *expected) {
    const auto found = given->find(name);
    if (found == given->end()) continue;
    Comparison comparison = CompareValue(found->second, tensor);
    // A value of another dtype is not the model's own, whatever its name says.
    const bool other = found->second.shape == tensor.shape && !comparison.mismatch.empty();
    if (!other) compared[name] = std::move(comparison);
  }
  return compared;
}

// ", made at main@412 by rewire.conv".
std::string Comparing::MadeText(const std::string& value) const {
  const auto place = values_.places().find(value);
  if (place == values_.places().end()) return "";
  const Function& function = module_.functions[place->second.function];
  const std::uint32_t* instruction = function.code.data() + place->second.pc;
  std::string text = fmt::format(", made at {}@{}", function.name, place->second.pc);
  if (OpcodeOf(*instruction) == Opcode::kInvokePacked) {
    constexpr std::uint32_t kKernel = WordOf(Opcode::kInvokePacked, "kernel");
    text += " by " + module_.kernels[instruction[kKernel]].name;
  }
  return text;
}

void Comparing::ReportFirst(const FirstDifference& first) {
  const OnnxGraph& graph = runtime_->graph();
  const Comparison& comparison = first.comparison;
  Json json = {{"value", first.value}, {"nodes", Json::array()}, {"inputs", Json::array()}};
  std::string text = fmt::format("first value that differs: '{}'{}\n", first.value, MadeText(first.value));
  if (const auto place = values_.places().find(first.value); place != values_.places().end()) {
    json["function"] = module_.functions[place->second.function].name;
    json["pc"] = place->second.pc;
  }
  if (!comparison.mismatch.empty()) {
    json["mismatch"] = comparison.mismatch;
    text += fmt::format("  {} by ONNX Runtime\n", comparison.mismatch);
  } else {
    const Comparison::Worst& worst = comparison.worst;
    json["different"] = comparison.different;
    json["elements"] = comparison.elements;
    json["max_abs"] = NumberJson(worst.difference);
    json["max_rel"] = NumberJson(comparison.largest_relative);
    json["index"] = worst.index;
    json["given"] = worst.given;
    json["expected"] = worst.expected;
    text +=
        fmt::format("  {} of {} elements; worst at [{}]: ONNX Runtime {}, Rewire {}\n", comparison.different,
                    comparison.elements, fmt::join(worst.index, ", "), worst.expected, worst.given);
    text += fmt::format("  largest error {:.6g}, in parts of the element {:.6g}\n", worst.difference,
                        comparison.largest_relative);
  }
  text += first.nodes.size() == 1
              ? "the node that makes it is wrong:\n"
              : "one of these nodes is wrong; the program does not keep what is between them:\n";
  for (const std::size_t node : first.nodes) {
    json["nodes"].push_back({{"name", graph.nodes[node].name}, {"operator", graph.nodes[node].type}});
    text += fmt::format("  {} '{}'\n", graph.nodes[node].type, graph.nodes[node].name);
  }
  if (!first.inputs.empty()) text += "what it is made of:\n";
  for (const FirstDifference::Input& input : first.inputs) {
    const char* state = input.state == InputState::kEqual        ? "equal"
                        : input.state == InputState::kModelInput ? "input"
                                                                 : "constant";
    json["inputs"].push_back({{"name", input.name}, {"state", state}});
    text += fmt::format("  '{}' {}\n", input.name,
                        input.state == InputState::kEqual ? "is equal"
                        : input.state == InputState::kModelInput
                            ? "is an input, and given to both"
                            : "is a constant of the model, and not compared");
  }
  report_.json["first"] = std::move(json);
  report_.text += text;
}

Result<AgainstReport> Comparing::Run(Span<const Value> inputs) {
  if (ValueNames(module_).empty()) {
    return Fail(
        StatusCode::kInvalidArgument,
        "the executable does not say which of its values are the model's; compile it again, or give the "
        "map of names if it was stripped (--map)");
  }
  const Result<std::vector<NamedTensor>> feeds = Feeds(inputs);
  if (!feeds) return Forward(feeds);
  Result<std::unique_ptr<OnnxRuntime>> runtime =
      OnnxRuntime::Start(PythonOf(options_), options_.model, {feeds->data(), feeds->size()});
  if (!runtime) return Forward(runtime);
  runtime_ = *std::move(runtime);
  if (Status learnt = values_.Learn(); !learnt) return Forward(learnt);
  const Result<std::map<std::string, Comparison>> outputs = CompareOutputs();
  if (!outputs) return Forward(outputs);
  report_.json = {{"model", options_.model}, {"equal", true}, {"outputs", Json::array()}};
  for (const auto& [name, comparison] : *outputs) {
    report_.equal = report_.equal && comparison.equal();
    report_.json["outputs"].push_back({{"name", name}, {"equal", comparison.equal()}});
    report_.text += fmt::format("{}: {}\n", name, ComparisonText(comparison, "ONNX Runtime's"));
  }
  report_.json["equal"] = report_.equal;
  if (report_.equal) {
    report_.text += "no node differs\n";
    return std::move(report_);
  }
  std::map<std::string, std::uint64_t> comparable;
  for (const auto& [name, place] : values_.places()) comparable[name] = place.bytes;
  DifferenceSearch search(runtime_->graph(), std::move(comparable),
                          [this](const std::vector<std::string>& names) { return CompareValues(names); });
  const Result<FirstDifference> first = search.Find(*outputs);
  if (!first) return Forward(first);
  ReportFirst(*first);
  report_.json["compared"] = search.compared();
  report_.json["rounds"] = search.rounds();
  report_.text += fmt::format("{} values were compared, in {} rounds\n", search.compared(), search.rounds());
  return std::move(report_);
}

}  // namespace

Result<AgainstReport> CompareAgainst(VirtualMachine* vm, std::uint32_t function, Span<const Value> inputs,
                                     const AgainstOptions& options) {
  return Comparing(vm, function, options).Run(inputs);
}

}  // namespace rewire::tools
