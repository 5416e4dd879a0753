// SPDX-License-Identifier: Apache-2.0
//
// Sequences: those of one version of a model, by their ids.
//
// Its requests run one at a time, in the order in which they came. A sequence ends with the step that says
// so, with a step that fails, when it has been idle for too long, and when others need its place. Then the
// next request of its id fails, and the error says which of these it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/description.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {

// EvictedSequence: one that the server has ended, and why.
struct EvictedSequence {
  std::string name;  // 5, or 'five' for a text
  std::string why;
};

// One thread at a time: under the lock of the model's queue.
class Sequences {
 public:
  explicit Sequences(const ModelVersion& model) : model_(model) {}

  // Makes a request that is to wait a step of its sequence, which begins if the request says so. Errors:
  // kNotFound if there is none, with why it has ended, if that is known. kBusy if no further one may begin,
  // and each has a step that waits or runs.
  Status Join(Request* request);
  // Begins a sequence that has no id and no end but EndHeld. Errors: kBusy, as for Join.
  Result<std::shared_ptr<Sequence>> BeginHeld();
  // Makes a request a step of it. Errors: kNotFound if a step before has failed.
  static Status JoinHeld(const std::shared_ptr<Sequence>& sequence, Request* request);
  void EndHeld(Sequence* sequence);
  // Whether no other step of the sequence runs.
  static bool MayRun(const Request& request) {
    return request.sequence == nullptr || !request.sequence->running;
  }
  // The step runs from now on.
  static void Begin(Request* request) {
    if (request->sequence != nullptr) request->sequence->running = true;
  }
  // The request has its status. `ran`: Begin was called for it.
  void Leave(Request* request, bool ran, Clock::time_point now);
  // Ends those that have been idle for too long. Returns when the next one will have been.
  Clock::time_point EndIdle(Clock::time_point now);

  SequenceStatistics statistics() const;
  // Returns those that have given their place or memory or were idle for too long, since the last call.
  std::vector<EvictedSequence> TakeEvicted() { return std::exchange(evicted_, {}); }

 private:
  // Makes place for one more. Errors: kBusy.
  Status MakePlace();
  std::shared_ptr<Sequence> Add(std::string name);
  // Takes it out of the table. `why` is told to the next request of its id.
  void Drop(Sequence* sequence, std::string why);
  // The same, for one that has not ended by itself.
  void Evict(Sequence* sequence, const std::string& why);
  void Unlist(Sequence* sequence);
  std::string Named(const Sequence& sequence) const;

  const ModelVersion& model_;
  std::map<std::string, std::shared_ptr<Sequence>> sequences_;
  std::list<Sequence*> idle_;  // without a step that waits or runs, the longest first
  struct Ended {
    std::string why;
    std::uint64_t number = 0;  // of the end; a name may end again
  };
  std::map<std::string, Ended> ended_;                            // the last ones
  std::list<std::pair<std::string, std::uint64_t>> ended_order_;  // their names and numbers, the oldest first
  std::uint64_t ends_ = 0;
  std::vector<EvictedSequence> evicted_;
  std::uint64_t held_ = 0;  // how many have begun
  std::uint64_t bytes_ = 0;
  SequenceStatistics statistics_;
};

}  // namespace rewire::serve
