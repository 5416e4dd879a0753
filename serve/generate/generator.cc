// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/generator.h"

#include <algorithm>
#include <string_view>

#include "rewire/base/near_names.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

Result<TensorDescription> FindTensor(std::string_view setting, const char* what, const std::string& name,
                                     const std::vector<TensorDescription>& tensors) {
  std::vector<std::string> names;
  for (const TensorDescription& tensor : tensors) {
    if (tensor.name == name) return tensor;
    names.push_back(tensor.name);
  }
  return Fail(StatusCode::kInvalidArgument, "generator.{}: the model has no {} '{}'{}", setting, what, name,
              KnownNames(std::string(what) + "s", name, names));
}

// `least` and `most`: the ranks that are expected.
Status FindInput(std::string_view setting, const std::string& name,
                 const std::vector<TensorDescription>& inputs, std::size_t least, std::size_t most,
                 GeneratorInput* input) {
  if (name.empty()) return {};
  const Result<TensorDescription> tensor = FindTensor(setting, "input", name, inputs);
  if (!tensor) return Forward(tensor);
  const std::size_t rank = tensor->shape.size();
  const bool integers = tensor->dtype == kInt64 || tensor->dtype == kInt32;
  // All dimensions but the last are those of one text.
  const bool one_text = rank == 0 || std::all_of(tensor->shape.begin(), tensor->shape.end() - 1,
                                                 [](std::int64_t size) { return size == -1 || size == 1; });
  if (!integers || rank < least || rank > most || !one_text) {
    return Fail(
        StatusCode::kInvalidArgument,
        "generator.{}: input '{}' is {} of {} dimensions; INT64 or INT32 of {} to {} is expected, for one "
        "text",
        setting, name, WireName(tensor->dtype), rank, least, most);
  }
  *input = {name, tensor->dtype, rank};
  return {};
}

}  // namespace

Result<Generator> ReadGenerator(const GeneratorSettings& settings, const std::vector<std::string>& state,
                                const std::vector<TensorDescription>& inputs,
                                const std::vector<TensorDescription>& outputs) {
  Generator generator;
  generator.settings = settings;
  generator.keeps_state = !state.empty();
  for (const Status& found : {FindInput("tokens", settings.tokens, inputs, 1, 2, &generator.tokens),
                              FindInput("positions", settings.positions, inputs, 1, 2, &generator.positions),
                              FindInput("mask", settings.mask, inputs, 1, 2, &generator.mask),
                              FindInput("last", settings.last, inputs, 0, 2, &generator.last),
                              FindInput("total", settings.total, inputs, 0, 2, &generator.total)}) {
    if (!found) return found;
  }
  for (const TensorDescription& input : inputs) {
    const std::string& name = input.name;
    const bool given = std::find(state.begin(), state.end(), name) != state.end() ||
                       name == settings.tokens || name == settings.positions || name == settings.mask ||
                       name == settings.last || name == settings.total;
    if (given) continue;
    return Fail(
        StatusCode::kInvalidArgument,
        "generator: nothing gives input '{}'; name it in generator.positions, mask, last or total, or in "
        "sequence.state",
        name);
  }
  const Result<TensorDescription> tokens = FindTensor("tokens", "input", settings.tokens, inputs);
  if (!tokens) return Forward(tokens);
  const std::int64_t size = tokens->shape.back();
  if (size != -1 && (size != 1 || state.empty())) {
    return Fail(
        StatusCode::kInvalidArgument,
        "generator.tokens: input '{}' takes {} tokens; any number is expected, or 1 with sequence.state",
        settings.tokens, size);
  }
  generator.step_size = size == 1 ? 1 : 0;
  const Result<TensorDescription> logits = FindTensor("logits", "output", settings.logits, outputs);
  if (!logits) return Forward(logits);
  if (logits->dtype != kFloat32 || logits->shape.empty()) {
    return Fail(StatusCode::kInvalidArgument,
                "generator.logits: output '{}' is {} of {} dimensions; FP32 of at least 1 is expected",
                settings.logits, WireName(logits->dtype), logits->shape.size());
  }
  generator.vocabulary = std::max<std::int64_t>(logits->shape.back(), 0);
  if (!settings.tokenizer.empty()) {
    Result<std::shared_ptr<const Tokenizer>> tokenizer = OpenTokenizer(settings.tokenizer);
    if (!tokenizer) return Forward(tokenizer, "generator.tokenizer");
    generator.tokenizer = *std::move(tokenizer);
  }
  return generator;
}

}  // namespace rewire::serve
