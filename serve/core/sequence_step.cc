// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/sequence_step.h"

#include <cstddef>

namespace rewire::serve {
namespace {

constexpr std::string_view kId = "sequence_id", kStart = "sequence_start", kEnd = "sequence_end";
constexpr std::size_t kMostIdBytes = 128;

}  // namespace

bool IsSequenceParameter(std::string_view name) { return name == kId || name == kStart || name == kEnd; }

Status SetSequenceParameter(const Parameter& parameter, SequenceStep* step) {
  if (parameter.name != kId) {
    const bool* const flag = std::get_if<bool>(&parameter.value);
    if (flag == nullptr) {
      return Fail(StatusCode::kInvalidArgument,
                  "the parameter '" + std::string(parameter.name) + "' must be true or false");
    }
    (parameter.name == kStart ? step->start : step->end) = *flag;
    return {};
  }
  if (const auto* const number = std::get_if<std::int64_t>(&parameter.value)) {
    step->id = *number;
    return {};
  }
  const auto* const text = std::get_if<std::string_view>(&parameter.value);
  if (text == nullptr || text->size() > kMostIdBytes) {
    return Fail(
        StatusCode::kInvalidArgument,
        "the parameter 'sequence_id' must be a whole number of 64 bits or a text of at most 128 bytes");
  }
  step->id = *text;
  return {};
}

bool IsOfSequence(const SequenceStep& step) {
  if (const auto* const number = std::get_if<std::int64_t>(&step.id)) return *number != 0;
  return !std::get<std::string_view>(step.id).empty();
}

std::string SequenceName(const SequenceStep& step) {
  if (const auto* const number = std::get_if<std::int64_t>(&step.id)) return std::to_string(*number);
  return "'" + std::string(std::get<std::string_view>(step.id)) + "'";
}

}  // namespace rewire::serve
