// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/sequences.h"

#include <chrono>
#include <utility>

#include "rewire/serve/core/sequence_step.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kMostEnded = 10000;

Status Gone(const std::string& why) {
  return Fail(StatusCode::kNotFound, "{}; begin it anew with sequence_start", why);
}

}  // namespace

std::string Sequences::Named(const Sequence& sequence) const {
  return "sequence " + sequence.name + " of model '" + model_.name + "'";
}

Status Sequences::Join(Request* request) {
  std::string name = SequenceName(request->step);
  const auto found = sequences_.find(name);
  if (!request->step.start) {
    if (found == sequences_.end()) {
      const auto ended = ended_.find(name);
      return Gone(ended != ended_.end() ? ended->second.why
                                        : "there is no sequence " + name + " of model '" + model_.name + "'");
    }
    Sequence& sequence = *found->second;
    if (sequence.steps++ == 0) idle_.erase(sequence.idle);
    request->sequence = found->second;
    return {};
  }
  // Steps of the one before that still wait or run end with its state.
  if (found != sequences_.end()) Unlist(found->second.get());
  if (Status made = MakePlace(); !made) return made;
  request->sequence = Add(std::move(name));
  return {};
}

Status Sequences::MakePlace() {
  const std::uint32_t most = model_.settings.sequence.max_sequences;
  if (sequences_.size() < most) return {};
  if (idle_.empty()) {
    return Fail(StatusCode::kBusy,
                "model '{}' has {} sequences, the most that it may have, and each has a step that waits or "
                "runs; try again later",
                model_.name, most);
  }
  ++statistics_.evicted;
  Evict(idle_.front(), Named(*idle_.front()) + " has given its place to a new one, because " +
                           std::to_string(most) + " are the most (max_sequences)");
  return {};
}

std::shared_ptr<Sequence> Sequences::Add(std::string name) {
  auto sequence = std::make_shared<Sequence>();
  sequence->name = name;
  sequence->steps = 1;
  ended_.erase(name);
  sequences_[std::move(name)] = sequence;
  ++statistics_.started;
  return sequence;
}

Result<std::shared_ptr<Sequence>> Sequences::BeginHeld() {
  const std::uint64_t most = model_.settings.sequence.max_bytes;
  if (most != 0 && bytes_ >= most && idle_.empty()) {
    return Fail(
        StatusCode::kBusy,
        "the sequences of model '{}' have {} bytes of state, and may have {} (max_bytes); try again later",
        model_.name, bytes_, most);
  }
  if (Status made = MakePlace(); !made) return made;
  // No id is such a name. It counts as a step that waits, so that the sequence does not end by itself.
  return Add("held " + std::to_string(++held_));
}

Status Sequences::JoinHeld(const std::shared_ptr<Sequence>& sequence, Request* request) {
  if (!sequence->gone) return sequence->gone;
  ++sequence->steps;
  request->sequence = sequence;
  return {};
}

void Sequences::EndHeld(Sequence* sequence) { Unlist(sequence); }

void Sequences::Unlist(Sequence* sequence) {
  if (!sequence->listed) return;
  sequence->listed = false;
  bytes_ -= std::exchange(sequence->bytes, 0);
  if (sequence->steps == 0) idle_.erase(sequence->idle);
  sequences_.erase(std::string(sequence->name));  // a copy, because the sequence may go
}

void Sequences::Drop(Sequence* sequence, std::string why) {
  sequence->gone = Gone(why);
  if (!sequence->listed) return;
  if (ended_order_.size() == kMostEnded) {
    const auto& [name, number] = ended_order_.front();
    const auto oldest = ended_.find(name);
    if (oldest != ended_.end() && oldest->second.number == number) ended_.erase(oldest);
    ended_order_.pop_front();
  }
  ended_order_.emplace_back(sequence->name, ++ends_);
  ended_[sequence->name] = {std::move(why), ends_};
  Unlist(sequence);
}

void Sequences::Evict(Sequence* sequence, const std::string& why) {
  evicted_.push_back({sequence->name, why});
  Drop(sequence, why);
}

void Sequences::Leave(Request* request, bool ran, Clock::time_point now) {
  if (request->sequence == nullptr) return;
  const std::shared_ptr<Sequence> sequence = std::move(request->sequence);
  if (ran) sequence->running = false;
  if (!request->status && sequence->gone) {
    Drop(sequence.get(),
         Named(*sequence) + " has ended, because a step failed: " + request->status.error().message());
  } else if (request->step.end && sequence->gone) {
    Drop(sequence.get(), Named(*sequence) + " has ended with the step that had sequence_end");
  }
  --sequence->steps;
  if (!sequence->listed) return;
  if (ran) {
    std::uint64_t bytes = 0;
    for (const StateTensor& tensor : sequence->state) bytes += tensor.bytes;
    bytes_ += bytes - std::exchange(sequence->bytes, bytes);
  }
  sequence->last_used = now;
  if (sequence->steps == 0) sequence->idle = idle_.insert(idle_.end(), sequence.get());
  const std::uint64_t most = model_.settings.sequence.max_bytes;
  while (most != 0 && bytes_ > most && !idle_.empty()) {
    ++statistics_.evicted;
    Evict(idle_.front(), Named(*idle_.front()) + " has been evicted with its state of " +
                             std::to_string(idle_.front()->bytes) + " bytes, because sequences may have " +
                             std::to_string(most) + " (max_bytes)");
  }
}

Clock::time_point Sequences::EndIdle(Clock::time_point now) {
  const std::uint64_t time = model_.settings.sequence.idle_us;
  if (time == 0) return Clock::time_point::max();
  while (!idle_.empty()) {
    const Clock::time_point end = idle_.front()->last_used + std::chrono::microseconds(time);
    if (end > now) return end;
    ++statistics_.timed_out;
    Evict(idle_.front(), Named(*idle_.front()) + " has ended, because no step came for " +
                             std::to_string(time) + " us (idle_us)");
  }
  return Clock::time_point::max();
}

SequenceStatistics Sequences::statistics() const {
  SequenceStatistics statistics = statistics_;
  statistics.active = sequences_.size();
  statistics.bytes = bytes_;
  return statistics;
}

}  // namespace rewire::serve
