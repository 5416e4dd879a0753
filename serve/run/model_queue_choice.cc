// SPDX-License-Identifier: Apache-2.0
// How a queue chooses what runs next.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "rewire/serve/run/model_queue.h"
#include "rewire/serve/run/request_check.h"

namespace rewire::serve {
namespace {

BatchCosts::Kind KindOf(const Request& request) {
  std::uint64_t bytes = 0;
  for (const InputTensor& input : request.inputs) bytes += input.data.size();
  return BatchCosts::KindOf(bytes / static_cast<std::uint64_t>(std::max<std::int64_t>(1, request.rows)));
}

}  // namespace

Instance* ModelQueue::NextBatch(Clock::time_point now) {
  if (waiting_.empty() || idle_.empty()) return nullptr;
  Batch batch;
  const BatchSettings& batching = model_->settings.batching;
  if (ChoosesByCost()) {
    batch = ChooseByCost(now);
  } else if (model_->state.empty()) {
    batch = ChooseBatch(batching, batching.max_batch_size, waiting_);
  } else if (!ChooseSteps(&batch)) {
    return nullptr;
  }
  if (batch.wait_until > now && !runners_->draining) {
    SetAlarm(batch.wait_until);
    return nullptr;
  }
  Instance* const instance = TakeIdle(*waiting_[batch.members.front()]);
  instance->Prepare();
  instance->rows = batch.rows;
  instance->padded = batch.padded;
  instance->members.clear();
  for (const std::size_t i : batch.members) {
    Sequences::Begin(waiting_[i]);
    instance->members.push_back(std::exchange(waiting_[i], nullptr));
  }
  if (ChoosesByCost()) {
    instance->kind = KindOf(*instance->members[0]);
    instance->is_timed = costs_.Wants(instance->kind, batch.rows, batch.members.size() > 1);
  }
  const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(batch.members.front());
  if (batch.members.size() == 1) {
    waiting_.erase(first);
  } else {
    waiting_.erase(std::remove(first, waiting_.end(), nullptr), waiting_.end());
  }
  return instance;
}

// Steps of sequences always run together: one that runs alone takes its state out of the rows that they
// share.
bool ModelQueue::ChoosesByCost() const {
  const BatchSettings& batching = model_->settings.batching;
  return batching.max_batch_size != 0 && !batching.always && model_->state.empty();
}

Batch ModelQueue::ChooseByCost(Clock::time_point now) {
  const BatchSettings& batching = model_->settings.batching;
  const Request& first = *waiting_.front();
  const BatchCosts::Kind kind = KindOf(first);
  if (costs_.RunsAlone(kind)) {
    Batch alone;
    alone.members = {0};
    alone.rows_up_to = {first.rows};
    KeepFirst(batching, 1, &alone);
    return alone;
  }
  // Nothing waits for a batch that will not be formed.
  const std::int64_t most = batching.max_queue_delay_us == 0
                                ? batching.max_batch_size
                                : costs_.RowsToWaitFor(kind, first.rows, batching.max_batch_size);
  Batch batch = ChooseBatch(batching, most, waiting_);
  if (batch.members.size() > 1 && (batch.wait_until <= now || runners_->draining)) {
    KeepFirst(batching, costs_.Choose(kind, batch.rows_up_to), &batch);
  }
  return batch;
}

// Steps of one sequence run one after the other, and others pass them by.
bool ModelQueue::ChooseSteps(Batch* batch) const {
  const auto next =
      std::find_if(waiting_.begin(), waiting_.end(), [](Request* one) { return Sequences::MayRun(*one); });
  if (next == waiting_.end()) return false;
  const bool batches = model_->settings.batching.max_batch_size != 0;
  if (!batches || !MayShareRun(*model_, **next)) {
    if (batches) batch->rows = batch->padded = (*next)->rows;
    batch->members.push_back(static_cast<std::size_t>(next - waiting_.begin()));
    return true;
  }
  std::vector<Request*> steps;
  std::vector<std::size_t> places;
  std::unordered_set<const Sequence*> seen;
  for (auto one = next; one != waiting_.end(); ++one) {
    // Behind a step that waits, others of its sequence wait, too.
    if (!Sequences::MayRun(**one) || !seen.insert((*one)->sequence.get()).second) continue;
    if (!MayShareRun(*model_, **one)) continue;
    steps.push_back(*one);
    places.push_back(static_cast<std::size_t>(one - waiting_.begin()));
  }
  const BatchSettings& batching = model_->settings.batching;
  *batch = ChooseBatch(batching, batching.max_batch_size, steps);
  for (std::size_t& member : batch->members) member = places[member];
  return true;
}

Instance* ModelQueue::TakeIdle(const Request& first) {
  auto taken = idle_.end() - 1;
  if (first.sequence != nullptr) {
    const auto has_state = [&](const Instance* one) { return one->HasStateOf(*first.sequence); };
    const auto found = std::find_if(idle_.begin(), idle_.end(), has_state);
    if (found != idle_.end()) taken = found;
  }
  Instance* const instance = *taken;
  idle_.erase(taken);
  return instance;
}

}  // namespace rewire::serve
