// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/ending.h"

#include <algorithm>

namespace rewire::compiler {

std::vector<Ending*> EndsOf(Ending* ending) {
  std::vector<Ending*> ends, open = {ending};
  while (!open.empty()) {
    Ending* next = open.back();
    open.pop_back();
    if (next->split == nullptr) ends.push_back(next);
    for (auto branch = next->branches.rbegin(); branch != next->branches.rend(); ++branch) {
      open.push_back(&*branch);
    }
  }
  return ends;
}

bool AllFail(Ending* ending) {
  const std::vector<Ending*> ends = EndsOf(ending);
  return std::all_of(ends.begin(), ends.end(), [](const Ending* end) { return end->failure.has_value(); });
}

bool SameRanks(Ending* ending) {
  const Ending* first = nullptr;
  for (const Ending* end : EndsOf(ending)) {
    if (end->failure) continue;
    if (first == nullptr) first = end;
    for (std::size_t i = 0; i < end->results.size() && i < first->results.size(); ++i) {
      const Type &a = first->results[i]->type, &b = end->results[i]->type;
      if (a.IsTensor() && b.IsTensor() && a.ranked && b.ranked && a.rank() != b.rank()) return false;
    }
  }
  return true;
}

}  // namespace rewire::compiler
