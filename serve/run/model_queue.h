// SPDX-License-Identifier: Apache-2.0
//
// ModelQueue: the requests of one version of a model, and the instances that run them.
//
// A request waits only if no instance is idle, or if the settings ask for a delay. On a lane, it also waits
// until the end of the loop's turn. An instance that has finished takes the next batch by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/serve/core/description.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/server_log.h"
#include "rewire/serve/core/traces.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/batch_costs.h"
#include "rewire/serve/run/batch_rule.h"
#include "rewire/serve/run/instance.h"
#include "rewire/serve/run/prefix_cache.h"
#include "rewire/serve/run/sequences.h"
#include "rewire/serve/run/worker_pool.h"

namespace rewire::serve {

// Is told of a sequence that the server has ended: its model, its name, and why.
using SequenceListener =
    std::function<void(const std::string& model, const std::string& sequence, const std::string& why)>;

// Runners: shared by the queues of a server.
struct Runners {
  SequenceListener evicted = {};  // may be empty
  WorkerPool* workers = nullptr;
  Alarms* alarms = nullptr;
  Traces* traces = nullptr;
  ServerLog* log = nullptr;
  std::atomic<std::size_t> in_flight{0};
  std::atomic<bool> draining{false};
};

class ModelQueue : public std::enable_shared_from_this<ModelQueue> {
 public:
  ModelQueue(std::shared_ptr<const ModelVersion> model, Runners* runners);

  const ModelVersion& model() const { return *model_; }
  std::uint32_t instance_count() const { return static_cast<std::uint32_t>(instances_.size()); }

  // Lets the request wait; its `program` must be this queue. False: it is finished, with an error. Start must
  // follow.
  bool Enqueue(Request* request);
  // Starts what can be started. `here`: short runs take place on the calling thread.
  void Start(bool here);
  void Cancel(Request* request);
  // A sequence for HeldModel, which ends with EndHeld. Null if the model keeps no state.
  Result<std::shared_ptr<Sequence>> BeginHeld();
  void EndHeld(Sequence* sequence);
  PrefixCache& prefixes() { return prefixes_; }
  ModelStatistics Statistics() const;
  // Finishes a request, and counts it as in flight no more.
  void Finish(Request* request);

 private:
  struct Ended {
    std::vector<Request*> requests;
  };
  // Sets the status of a request that is refused, before the lock is taken.
  void Check(Request* request) const;
  // With the lock: makes the request a step of its sequence, if it is in one.
  Status Join(Request* request);
  // With the lock: takes requests out of the queue whose time is over, or whose sequence has ended.
  void TakeLate(Clock::time_point now, Ended* ended);
  // With the lock: gives the next batch to an idle instance. Null if there is none, or nothing to run yet.
  Instance* NextBatch(Clock::time_point now);
  // Whether batches are formed only where they are worth it.
  bool ChoosesByCost() const;
  // For such a model: the batch, of as many requests as are worth it.
  Batch ChooseByCost(Clock::time_point now);
  // The same for models with state: steps of different sequences. False if none may run.
  bool ChooseSteps(Batch* batch) const;
  // Takes an idle instance: the one whose rows the first member's state is among, or any.
  Instance* TakeIdle(const Request& first);
  void SetAlarm(Clock::time_point when);
  void OnAlarm();
  bool IsShort(const Instance& instance) const;
  // NextBatch, and whether its run will be short. Finishes the requests that are late.
  Instance* Take(bool* is_short);
  // Runs this batch and those that follow, on a worker.
  void Work(Instance* instance);
  // Runs the instance's batch and finishes its members.
  void RunOnce(Instance* instance);
  void Count(const Instance& instance, const RunTimes& times);
  void CountCosts(const Instance& instance, std::uint64_t ns);
  // Without the lock: logs these sequences and tells the host.
  void Tell(const std::vector<EvictedSequence>& evicted) const;

  const std::shared_ptr<const ModelVersion> model_;
  Runners* const runners_;
  mutable std::mutex mutex_;
  std::mutex placing_;             // of state that moves between rows (serve/run/state_rows.h)
  std::vector<Request*> waiting_;  // the oldest first
  std::vector<std::unique_ptr<Instance>> instances_;
  std::vector<Instance*> idle_;
  // No request that waits is late before. It may be the deadline of one that waits no more.
  Clock::time_point first_deadline_ = Clock::time_point::max();
  Clock::time_point alarm_ = Clock::time_point::max();
  std::uint64_t run_ns_ = 0;     // a moving mean over runs; 0: never run
  std::uint64_t run_bytes_ = 0;  // the same of their inputs' bytes
  ModelStatistics statistics_;
  std::map<std::uint64_t, BatchStatistics> batches_;
  BatchCosts costs_;
  Sequences sequences_;
  PrefixCache prefixes_;
};

}  // namespace rewire::serve
