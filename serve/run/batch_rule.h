// SPDX-License-Identifier: Apache-2.0
//
// The rule by which requests that wait are run together.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/serve/core/description.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

struct Batch {
  std::vector<std::size_t> members;      // positions among those that wait, rising
  std::vector<std::int64_t> rows_up_to;  // rows of the members up to each
  std::int64_t rows = 0;
  std::int64_t padded = 0;  // rows with those that fill it up
  // Not to be run yet, if an instance is idle: others may come until then.
  Clock::time_point wait_until = Clock::time_point::min();
};

// The batch that begins with the request that has waited longest: it, and those behind it that fit, up to
// `most` rows. Requests of other shapes are passed over, and lose nothing by that. `waiting` is not empty. A
// request that has more rows than `most` is a batch alone.
Batch ChooseBatch(const BatchSettings& settings, std::int64_t most, const std::vector<Request*>& waiting);
// Makes it a batch of its first members.
void KeepFirst(const BatchSettings& settings, std::size_t count, Batch* batch);

}  // namespace rewire::serve
