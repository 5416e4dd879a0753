// SPDX-License-Identifier: Apache-2.0
//
// The driver of a forward dataflow analysis: states are joined where paths meet, and what lies behind a place
// is followed again until nothing changes. An analysis gives its lattice: the type of a state and how two are
// joined.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/executable_format/analysis/blocks.h"

namespace rewire {

// A place is a block of the code, or another point where paths meet, by its number in the order of the code.
template <typename State>
class ForwardDataflow {
 public:
  explicit ForwardDataflow(std::size_t places)
      : entries_(places), reached_(places), queue_(places, BlockQueue::Order::kFirstBlockFirst) {}

  // A path with this state leads to the place. join(State* known, const State& state) makes *known hold what
  // either did, and returns whether that changed it. States must be able to grow only finitely often. Returns
  // whether what is known at the place changed; it is followed again then.
  template <typename Join>
  bool Reach(std::uint32_t place, const State& state, Join&& join) {
    const bool is_first = reached_[place] == 0;
    if (is_first) {
      reached_[place] = 1;
      entries_[place] = state;
    } else if (!join(&entries_[place], state)) {
      return false;
    }
    queue_.Push(place);
    return true;
  }
  // Takes the first place in the order of the code that is to be followed; kNone if nothing is left.
  std::uint32_t Next() { return queue_.empty() ? kNowhere : queue_.Pop(); }
  // Follows every place that has been reached once more, since what the states stand for has changed.
  void FollowAgain() {
    for (std::uint32_t place = 0; place < reached_.size(); ++place) {
      if (reached_[place] != 0) queue_.Push(place);
    }
  }

  bool IsReached(std::uint32_t place) const { return reached_[place] != 0; }
  // The state of a place that is reached.
  const State& entry(std::uint32_t place) const { return entries_[place]; }

  static constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;

 private:
  Array<State> entries_;
  Array<std::uint8_t> reached_;
  BlockQueue queue_;
};

}  // namespace rewire
