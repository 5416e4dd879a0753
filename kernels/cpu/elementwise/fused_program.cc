// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/elementwise/fused_program.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

namespace rewire::kernel::cpu {
namespace {

struct Operation {
  std::string_view name;
  std::uint8_t operands;
  std::uint8_t numbers;
};
constexpr Operation kOperations[] = {
#define REWIRE_FUSED_ROW(name, text, operands, numbers, ...) {text, operands, numbers},
    REWIRE_FUSED_OPERATIONS(REWIRE_FUSED_ROW, REWIRE_FUSED_ROW)
#undef REWIRE_FUSED_ROW
};

// Removes the text before the separator, and the separator, from *rest and returns it.
std::string_view TakeText(std::string_view* rest, char separator) {
  const std::size_t at = rest->find(separator);
  const std::string_view taken = rest->substr(0, at);
  *rest = at == std::string_view::npos ? std::string_view() : rest->substr(at + 1);
  return taken;
}

template <typename T>
bool ReadOperandNumber(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Status FusedProgram::Make(std::string_view text, FusedProgram* program) {
  do {
    std::string_view step = TakeText(&text, ';');
    if (!step.empty() && step.front() == ' ') step.remove_prefix(1);
    if (Status s = program->AddStep(step); !s.ok()) return s;
  } while (!text.empty());
  program->TakeBytes();
  return program->PlaceResults();
}

Status FusedProgram::AddStep(std::string_view text) {
  if (steps_.size() == kMostSteps)
    return ValueError("attribute 'program' has more than ", kMostSteps, " steps");
  std::string_view rest = text;
  const std::string_view name = TakeText(&rest, ' ');
  const auto* row = std::find_if(std::begin(kOperations), std::end(kOperations),
                                 [&](const Operation& operation) { return operation.name == name; });
  if (row == std::end(kOperations)) {
    return ValueError("attribute 'program': step ", steps_.size(), " is '", std::string(text),
                      "', expected an operation of rewire.fused");
  }
  FusedStep step;
  step.code = static_cast<FusedCode>(row - kOperations);
  step.operand_count = row->operands;
  for (std::size_t i = 0; i < row->operands; ++i) {
    FusedOperand* operand = &step.operands[i];
    if (Status s = ReadOperand(TakeText(&rest, ' '), operand); !s.ok()) return s;
    if (i + row->numbers >= row->operands && operand->kind != FusedOperand::kNumber) {
      return ValueError("attribute 'program': operand ", i, " of step ", steps_.size(), " ('",
                        std::string(text), "') must be a number");
    }
    if (operand->kind == FusedOperand::kInput) inputs_ = std::max(inputs_, operand->index + 1);
  }
  if (!rest.empty()) {
    return ValueError("attribute 'program': step ", steps_.size(), " is '", std::string(text), "', expected ",
                      static_cast<int>(row->operands), " operands");
  }
  const bool of_bytes = step.code == FusedCode::kDequantize || step.code == FusedCode::kQuantize;
  const float zero = step.operands[2].number;
  if (of_bytes && !(zero >= -128 && zero <= 255 && zero == std::floor(zero))) {
    return ValueError("attribute 'program': step ", steps_.size(), " is '", std::string(text),
                      "', expected a zero from -128 to 255");
  }
  steps_.push_back(step);
  return Status();
}

Status FusedProgram::ReadOperand(std::string_view text, FusedOperand* operand) const {
  const bool is_input = text.size() > 1 && text[0] == 'x', is_result = text.size() > 1 && text[0] == 'r';
  if (!is_input && !is_result) {
    operand->kind = FusedOperand::kNumber;
    if (ReadOperandNumber(text, &operand->number)) return Status();
  } else {
    operand->kind = is_input ? FusedOperand::kInput : FusedOperand::kRegister;
    const auto end = static_cast<std::int16_t>(is_input ? kMostInputs : static_cast<int>(steps_.size()));
    if (ReadOperandNumber(text.substr(1), &operand->index) && operand->index >= 0 && operand->index < end)
      return Status();
  }
  return ValueError("attribute 'program': operand '", std::string(text), "' of step ", steps_.size(),
                    " is no input below x", kMostInputs, ", no earlier result and no number");
}

void FusedProgram::TakeBytes() {
  std::array<int, kMostInputs> reads{};
  for (const FusedStep& step : steps_) {
    for (const FusedOperand& operand : step.operands) {
      if (operand.kind == FusedOperand::kInput) ++reads[static_cast<std::size_t>(operand.index)];
    }
  }
  std::vector<FusedStep> kept;
  std::vector<FusedOperand> results;  // of the steps so far
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    FusedStep step = steps_[i];
    for (FusedOperand& operand : step.operands) {
      if (operand.kind == FusedOperand::kRegister) operand = results[static_cast<std::size_t>(operand.index)];
    }
    const FusedOperand& first = step.operands[0];
    const bool reads_input = first.kind == FusedOperand::kInput;
    if (step.code == FusedCode::kDequantize && i + 1 < steps_.size() && reads_input &&
        steps_[i].operands[0].kind == FusedOperand::kInput &&
        reads[static_cast<std::size_t>(first.index)] == 1) {
      bytes_[static_cast<std::size_t>(first.index)] = {
          step.operands[1].number, static_cast<std::int32_t>(step.operands[2].number), true};
      results.push_back(first);
      continue;
    }
    results.push_back({FusedOperand::kRegister, static_cast<std::int16_t>(kept.size()), 0});
    kept.push_back(step);
  }
  steps_ = std::move(kept);
}

Status FusedProgram::PlaceResults() {
  std::array<std::size_t, kMostSteps> last_read{};  // of each result
  std::array<int, kMostSteps> reads{};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const FusedOperand& operand : steps_[i].operands) {
      if (operand.kind != FusedOperand::kRegister) continue;
      last_read[static_cast<std::size_t>(operand.index)] = i;
      ++reads[static_cast<std::size_t>(operand.index)];
    }
  }
  for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
    const FusedOperand& next = steps_[i + 1].operands[0];
    steps_[i].joins =
        reads[i] == 1 && next.kind == FusedOperand::kRegister && static_cast<std::size_t>(next.index) == i;
  }
  std::array<std::int16_t, kMostSteps> places{};
  std::array<bool, kMostRegisters> taken{};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    FusedStep& step = steps_[i];
    for (FusedOperand& operand : step.operands) {
      if (operand.kind != FusedOperand::kRegister) continue;
      const auto result = static_cast<std::size_t>(operand.index);
      operand.index = places[result];
      // An operation may write over its operands, since each element is read before it is written.
      if (last_read[result] == i) taken[static_cast<std::size_t>(operand.index)] = false;
    }
    if (i + 1 == steps_.size()) break;
    if (last_read[i] == 0) return ValueError("attribute 'program': no step reads r", i);
    const auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) {
      return ValueError("attribute 'program' needs more than ", kMostRegisters,
                        " results at a time, at step ", i);
    }
    *free = true;
    step.to = places[i] = static_cast<std::int16_t>(free - taken.begin());
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
