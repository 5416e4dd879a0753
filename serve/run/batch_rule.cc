// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/batch_rule.h"

#include <algorithm>

#include "rewire/serve/run/request_check.h"

namespace rewire::serve {
namespace {

// Looking further would take time that grows with the queue.
constexpr std::size_t kLookedAt = 4096;

}  // namespace

Batch ChooseBatch(const BatchSettings& settings, const std::vector<Request*>& waiting) {
  Batch batch;
  const Request& first = *waiting.front();
  batch.members.push_back(0);
  if (settings.max_batch_size == 0) return batch;
  batch.rows = batch.padded = first.rows;
  const std::int64_t most = settings.max_batch_size;
  // Full as well if the next one that fits the shape is too large: more waiting makes this batch no larger,
  // or later.
  bool full = batch.rows >= most;
  std::vector<std::int64_t> rows_with = {batch.rows};  // rows up to each member
  for (std::size_t i = 1; i < std::min(waiting.size(), kLookedAt) && batch.rows < most; ++i) {
    if (!FitTogether(first, *waiting[i])) continue;
    const std::int64_t rows = waiting[i]->rows;
    full |= rows >= most - batch.rows;
    if (rows > most - batch.rows) continue;
    batch.members.push_back(i);
    batch.rows += rows;
    rows_with.push_back(batch.rows);
  }
  // The largest preferred size that is there, unless the time for waiting is over.
  const std::vector<std::int64_t>& preferred = settings.preferred_sizes;
  const Clock::time_point late = first.submitted + std::chrono::microseconds(settings.max_queue_delay_us);
  bool at_once = full || settings.max_queue_delay_us == 0;
  for (std::size_t count = rows_with.size(); count > 0 && !full; --count) {
    if (std::find(preferred.begin(), preferred.end(), rows_with[count - 1]) == preferred.end()) continue;
    batch.members.resize(count);
    batch.rows = rows_with[count - 1];
    at_once = true;
    break;
  }
  if (!at_once) batch.wait_until = late;
  batch.padded = batch.rows;
  for (const std::int64_t size : settings.allowed_sizes) {
    if (size >= batch.rows && (batch.padded == batch.rows || size < batch.padded)) batch.padded = size;
    if (size == batch.rows) {
      batch.padded = size;
      break;
    }
  }
  return batch;
}

}  // namespace rewire::serve
