// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/batch_rule.h"

#include <algorithm>

#include "rewire/serve/run/request_check.h"

namespace rewire::serve {
namespace {

// Looking further would take time that grows with the queue.
constexpr std::size_t kLookedAt = 4096;

}  // namespace

void KeepFirst(const BatchSettings& settings, std::size_t count, Batch* batch) {
  batch->members.resize(count);
  batch->rows_up_to.resize(count);
  batch->rows = batch->padded = batch->rows_up_to.back();
  for (const std::int64_t size : settings.allowed_sizes) {
    if (size >= batch->rows && (batch->padded == batch->rows || size < batch->padded)) batch->padded = size;
    if (size == batch->rows) {
      batch->padded = size;
      break;
    }
  }
}

Batch ChooseBatch(const BatchSettings& settings, std::int64_t most, const std::vector<Request*>& waiting) {
  Batch batch;
  const Request& first = *waiting.front();
  batch.members.push_back(0);
  if (settings.max_batch_size == 0) return batch;
  std::int64_t rows = first.rows;
  // Full as well if the next one that fits the shape is too large: more waiting makes this batch no larger,
  // or later.
  bool full = rows >= most;
  batch.rows_up_to = {rows};
  for (std::size_t i = 1; i < std::min(waiting.size(), kLookedAt) && rows < most; ++i) {
    if (!FitTogether(first, *waiting[i])) continue;
    const std::int64_t more = waiting[i]->rows;
    full |= more >= most - rows;
    if (more > most - rows) continue;
    batch.members.push_back(i);
    rows += more;
    batch.rows_up_to.push_back(rows);
  }
  // The largest preferred size that is there, unless the time for waiting is over.
  const std::vector<std::int64_t>& preferred = settings.preferred_sizes;
  const Clock::time_point late = first.submitted + std::chrono::microseconds(settings.max_queue_delay_us);
  bool at_once = full || settings.max_queue_delay_us == 0;
  std::size_t kept = batch.members.size();
  for (std::size_t count = kept; count > 0 && !full; --count) {
    if (std::find(preferred.begin(), preferred.end(), batch.rows_up_to[count - 1]) == preferred.end())
      continue;
    kept = count;
    at_once = true;
    break;
  }
  if (!at_once) batch.wait_until = late;
  KeepFirst(settings, kept, &batch);
  return batch;
}

}  // namespace rewire::serve
