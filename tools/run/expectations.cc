// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/data_files.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/io/tensor_text.h"
#include "rewire/tools/run/text_tensors.h"
#include "rewire/tools/run/value_spec.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kGivenInPlace[] = "the value expected";

class Comparer {
 public:
  Comparer(const Function& function, const Tolerance& tolerance, const std::string& folder,
           std::vector<Output>* outputs)
      : function_(function), tolerance_(tolerance), outputs_(*outputs), files_(folder) {}

  Status AddArchive(const std::string& path);
  Status AddValue(const std::string& target, const ValueSpec& expected);
  std::vector<OutputComparison> Take() { return std::move(comparisons_); }

 private:
  // A part of an output.
  struct Part {
    std::string name;
    Value value;
    const Output* output = nullptr;  // null below an output
  };

  Status AddLeaf(const Part& part, const HostTensor& expected, const std::string& source);
  Status AddNode(const Part& part, const SpecNode& expected);
  void Differs(const std::string& name, std::string how);

  const Function& function_;
  const Tolerance& tolerance_;
  std::vector<Output>& outputs_;
  text::DataFiles files_;
  std::vector<OutputComparison> comparisons_;
};

Status Comparer::AddArchive(const std::string& path) {
  const Result<std::vector<NamedTensor>> members = ReadArchive(path);
  if (!members) return Forward(members);
  for (const NamedTensor& member : *members) {
    const Result<std::uint32_t> leaf = FindOutput(function_, member.name);
    if (!leaf) return Forward(leaf, path);
    Output& output = outputs_[*leaf];
    output.used = true;
    Status added = AddLeaf({output.name, output.value, &output}, member.tensor, path + ":" + member.name);
    if (!added) return added;
  }
  return {};
}

// How an output's strings differ from those expected; empty if they do not.
Result<std::string> TextMismatch(const Output* output, const HostTensor& expected) {
  if (output == nullptr || !output->texts) return std::string("it is no strings whose list the run knows");
  const Result<TextArray> texts = TextsIn(expected);
  if (!texts) return Forward(texts);
  const TextArray& given = *output->texts;
  if (given.shape != texts->shape) {
    return fmt::format("its shape is [{}], expected [{}]", fmt::join(given.shape, ", "),
                       fmt::join(texts->shape, ", "));
  }
  const auto [at, other] = std::mismatch(given.texts.begin(), given.texts.end(), texts->texts.begin());
  if (at == given.texts.end()) return std::string();
  return fmt::format("element {} is '{}', expected '{}'", at - given.texts.begin(), *at, *other);
}

Status Comparer::AddLeaf(const Part& part, const HostTensor& expected, const std::string& source) {
  if (IsText(expected)) {
    Result<std::string> mismatch = TextMismatch(part.output, expected);
    if (!mismatch) return Forward(mismatch, source);
    Comparison comparison;
    comparison.mismatch = *std::move(mismatch);
    comparisons_.push_back({part.name, source, std::move(comparison)});
    return {};
  }
  const Result<std::optional<HostTensor>> given = HostTensorOf(part.value);
  if (!given) return Forward(given, fmt::format("output '{}'", part.name));
  if (!*given) {
    return Fail(StatusCode::kInvalidArgument, fmt::format("--expect: output '{}' is no tensor but {}",
                                                          part.name, ValueKindName(part.value.kind())));
  }
  comparisons_.push_back({part.name, source, Compare(**given, expected, tolerance_)});
  return {};
}

Status Comparer::AddNode(const Part& part, const SpecNode& expected) {
  switch (expected.kind) {
    case SpecNode::Kind::kFile: {
      const std::string reference =
          IsArchivePath(expected.text) ? expected.text + ":" + part.name : expected.text;
      const Result<HostTensor> tensor = files_.Load(reference);
      return tensor ? AddLeaf(part, *tensor, reference) : Status(Forward(tensor));
    }
    case SpecNode::Kind::kLiteral:
      return AddLeaf(part, expected.tensor, kGivenInPlace);
    case SpecNode::Kind::kNumber: {
      const Result<std::optional<HostTensor>> given = HostTensorOf(part.value);
      HostTensor number;
      number.dtype = given && *given ? (*given)->dtype : kInt64;
      std::byte* element = nullptr;
      number.bytes = AllocateBytes(ElementBytes(number.dtype), &element);
      Status parsed = text::ParseElement(number.dtype, expected.text, element);
      return parsed ? AddLeaf(part, number, kGivenInPlace) : parsed;
    }
    case SpecNode::Kind::kRandom:
    case SpecNode::Kind::kTree:
      break;
  }
  return Fail(StatusCode::kInvalidArgument, "--expect: a random tensor cannot be expected");
}

void Comparer::Differs(const std::string& name, std::string how) {
  Comparison comparison;
  comparison.mismatch = std::move(how);
  comparisons_.push_back({name, kGivenInPlace, std::move(comparison)});
}

// Goes through the expected nodes, which are in pre-order, with the parts still to come on a stack.
Status Comparer::AddValue(const std::string& target, const ValueSpec& expected) {
  const Result<std::uint32_t> leaf = FindOutput(function_, target);
  if (!leaf) return Forward(leaf, "--expect");
  Output& output = outputs_[*leaf];
  output.used = true;
  std::vector<Part> open = {{output.name, output.value, &output}};
  for (const SpecNode& node : expected) {
    const Part part = std::move(open.back());
    open.pop_back();
    if (node.kind != SpecNode::Kind::kTree) {
      if (Status added = AddNode(part, node); !added) return added;
      continue;
    }
    const Value& tree = part.value;
    if (tree.kind() != ValueKind::kAdt || tree.field_count() != node.field_count ||
        tree.tag() != node.tag.value_or(tree.tag())) {
      const std::string tag = node.tag ? fmt::format(" with tag {}", *node.tag) : "";
      Differs(part.name, fmt::format("{} given, an ADT of {} fields{} expected", ValueText(tree),
                                     node.field_count, tag));
      return {};
    }
    for (std::uint32_t i = node.field_count; i-- > 0;) {
      open.push_back({fmt::format("{}.{}", part.name, i), tree.field(i), nullptr});
    }
  }
  return {};
}

}  // namespace

Result<std::vector<OutputComparison>> CompareOutputs(const Function& function,
                                                     const std::vector<std::string>& bindings,
                                                     const Tolerance& tolerance, std::vector<Output>* outputs,
                                                     const std::string& folder) {
  Comparer comparer(function, tolerance, folder, outputs);
  for (const std::string& text : bindings) {
    const Result<ValueBinding> binding = ParseValueBinding(text);
    if (!binding) return Forward(binding, "--expect");
    Status added = binding->archive.empty() ? comparer.AddValue(binding->target, binding->value)
                                            : comparer.AddArchive(binding->archive);
    if (!added) return Forward(added);
  }
  return comparer.Take();
}

Json ComparisonJson(const OutputComparison& comparison) {
  const Comparison& result = comparison.comparison;
  Json json = {{"output", comparison.output}, {"expected", comparison.expected}, {"equal", result.equal()}};
  if (!result.mismatch.empty()) {
    json["mismatch"] = result.mismatch;
    return json;
  }
  json["elements"] = result.elements;
  json["different"] = result.different;
  if (result.elements == 0) return json;
  const double difference = result.worst.difference;
  json["worst"] = {{"index", result.worst.index},
                   {"expected", result.worst.expected},
                   {"given", result.worst.given},
                   {"difference", std::isfinite(difference) ? Json(difference) : Json("inf")}};
  return json;
}

}  // namespace rewire::tools
