// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/minimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/hostile/campaign.h"

namespace rewire::hostile {
namespace {

// The kinds of what is found in a file.
std::vector<std::string> Kinds(const Bytes& file, std::uint64_t number) {
  bool first = true;
  const ChildReport report = JudgeInChild(
      [&](Task* task) {
        *task = {number, file};
        return std::exchange(first, false);
      },
      JudgeOfExecutables());
  std::vector<std::string> kinds;
  for (const auto& [_, findings] : report.findings) {
    for (const Finding& finding : findings) kinds.push_back(finding.kind);
  }
  return kinds;
}

}  // namespace

Bytes Minimize(const Mutator& mutator, std::uint64_t number) {
  Mutant mutant = mutator.Make(number);
  const std::vector<std::string> kinds = Kinds(mutant.file, number);
  if (kinds.empty()) {
    fmt::print("nothing is found in mutant {}\n", number);
    return mutant.file;
  }
  fmt::print("mutant {}: {}\n", number, kinds[0]);
  const auto still = [&](const Bytes& file) {
    const std::vector<std::string> now = Kinds(file, number);
    return std::find(now.begin(), now.end(), kinds[0]) != now.end();
  };
  std::vector<bool> without(mutator.Changes(number), false);
  for (std::size_t i = 0; i < without.size(); ++i) {
    without[i] = true;
    Mutant less = mutator.Make(number, without);
    if (still(less.file)) {
      mutant = std::move(less);
    } else {
      without[i] = false;
    }
  }
  fmt::print("from {}\n", mutant.seed);
  for (const std::string& what : mutant.what) fmt::print("  {}\n", what);
  std::optional<Program> program = ParseFile(mutant.file);
  if (!program) return mutant.file;
  for (std::size_t f = 0; f < program->functions.size(); ++f) {
    program->functions[f].notes.clear();
    for (std::size_t i = program->functions[f].code.size(); i-- > 0;) {
      Program less = *program;
      std::vector<Instruction>& code = less.functions[f].code;
      code.erase(code.begin() + static_cast<std::ptrdiff_t>(i));
      for (Instruction& instruction : code) {
        for (Operand& operand : instruction.operands) {
          if (operand.kind == 't' && !operand.raw && operand.value > static_cast<std::int64_t>(i))
            --operand.value;
        }
      }
      const Bytes file = WriteFile(less);
      if (still(file)) {
        program = std::move(less);
        mutant.file = file;
      }
    }
  }
  return mutant.file;
}

}  // namespace rewire::hostile
