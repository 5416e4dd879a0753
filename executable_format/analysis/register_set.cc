// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/analysis/register_set.h"

#include "rewire/base/assert.h"

namespace rewire {

bool RegisterSet::Merge(const RegisterSet& other) {
  REWIRE_ASSERT(words_.size() == other.words_.size(), "sets of {} and {} words", words_.size(),
                other.words_.size());
  bool changed = false;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t merged = words_[i] | other.words_[i];
    changed = changed || merged != words_[i];
    words_[i] = merged;
  }
  return changed;
}

}  // namespace rewire
