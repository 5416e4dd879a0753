// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/continuation.h"

#include <algorithm>

namespace rewire::compiler {

std::vector<Continuation*> EndsOf(Continuation* continuation) {
  std::vector<Continuation*> ends, open = {continuation};
  while (!open.empty()) {
    Continuation* next = open.back();
    open.pop_back();
    if (next->split == nullptr) ends.push_back(next);
    for (auto branch = next->branches.rbegin(); branch != next->branches.rend(); ++branch) {
      open.push_back(&*branch);
    }
  }
  return ends;
}

bool AllFail(Continuation* continuation) {
  const std::vector<Continuation*> ends = EndsOf(continuation);
  return std::all_of(ends.begin(), ends.end(),
                     [](const Continuation* end) { return end->failure.has_value(); });
}

bool SameRanks(Continuation* continuation) {
  const Continuation* first = nullptr;
  for (const Continuation* end : EndsOf(continuation)) {
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
