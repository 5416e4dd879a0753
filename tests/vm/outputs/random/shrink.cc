// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/vm/outputs/random/differential.h"

namespace rewire::test {

RandomProgram Shrunk(const RandomProgram& program, const PlanRules& rules) {
  RandomProgram best = program;
  const auto differs = [&rules](const RandomProgram& candidate) {
    const std::string difference = FindDifference(candidate, rules, nullptr);
    return difference.find("differs") != std::string::npos || difference.find("lies in") != std::string::npos;
  };
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::string> lines;
    std::istringstream text(best.text);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    for (std::size_t i = lines.size(); i-- > 0;) {
      RandomProgram candidate = best;
      candidate.text.clear();
      for (std::size_t k = 0; k < lines.size(); ++k) {
        if (k != i) candidate.text += lines[k] + "\n";
      }
      if (!differs(candidate)) continue;
      best = candidate;
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
      changed = true;
    }
  }
  return best;
}

}  // namespace rewire::test
