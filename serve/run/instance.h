// SPDX-License-Identifier: Apache-2.0
//
// Instance: runs one request or one batch at a time on a VM of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/batch_costs.h"
#include "rewire/serve/run/state_rows.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::serve {

// When the parts of a run took place.
struct RunTimes {
  Clock::time_point start;  // gathering begins
  Clock::time_point infer_start;
  Clock::time_point infer_end;
  Clock::time_point end;  // scattered
};

class Instance {
 public:
  // `placing` is that of StateRows.
  Instance(const ModelVersion& model, std::mutex* placing);
  ~Instance();

  // Runs the members together: `rows` in all, filled up to `padded`. Sets status and results of each. If a
  // batch fails, its members run one by one, so that none fails for another.
  RunTimes Run(Span<Request* const> members, std::int64_t rows, std::int64_t padded);
  // A tensor of the state of a sequence whose step has run here last, in the order of ModelVersion::state.
  const std::byte* StateOf(const Sequence& sequence, std::size_t tensor) {
    const StateTensor& own = sequence.state[tensor];
    return sequence.rows == nullptr ? own.data : state_rows_.past(tensor) + sequence.row * own.bytes;
  }
  // Whether it was the last to run steps of this sequence together with others. Any thread.
  bool HasStateOf(const Sequence& sequence) const { return sequence.rows == &state_rows_; }
  // Ends the run, from any thread. Does nothing if none goes on.
  void Cancel() {
    if (vm_) vm_->Cancel();
  }
  // Makes the VM, before another thread may call Cancel.
  void Prepare() {
    if (!vm_) vm_.emplace(model_.program, model_.limits);
  }

  // The queue's own: what runs here.
  std::vector<Request*> members;
  std::int64_t rows = 0;
  std::int64_t padded = 0;
  BatchCosts::Kind kind = 0;  // of the members
  bool is_timed = false;      // the time of the run is wanted

 private:
  struct Growing;
  struct NextState;
  void RunAlone(Request* request, RunTimes* times);
  Status TryRunAlone(Request* request, RunTimes* times);
  Status BindOutput(const ModelOutput& output, Request* request, std::uint32_t wanted);
  // Both are for steps of sequences.
  Status BindState(Request* request);
  Status KeepState(Request* request);
  // Behind a step: copies a tensor of its state, which the client wants as well.
  Status CopyState(std::size_t tensor, Request* request, OutputTensor* result);
  bool IsState(const ModelOutput& output) const;
  // Behind a step: copies what it is to keep of its state, which may be a row.
  void KeepPrefix(Request* request);
  // Batches. `invoked`: the run has begun, so that state that it writes in place is lost if it fails.
  Status TryRunBatch(std::vector<Request*>* members, std::int64_t padded, RunTimes* times, bool* invoked);
  Status GatherState(std::vector<Request*>* members);
  Status MakeRoom(const std::vector<Request*>& members);
  Status GatherInputs(const std::vector<Request*>& members, std::int64_t padded, Arena* memory);
  Status BindBatch(const std::vector<Request*>& members, Arena* memory, std::vector<OutputTensor>* whole);
  void ScatterOutputs(const std::vector<OutputTensor>& whole, std::int64_t padded,
                      const std::shared_ptr<Arena>& memory, Request* member, std::int64_t first);
  void RunTogether(Span<Request* const> members, std::int64_t padded, RunTimes* times);
  Status ClassifyResults(Request* request) const;
  bool BindsAll(const Request& request) const;
  void Unbind();
  Clock::time_point LastDeadline(Span<Request* const> members) const;

  const ModelVersion& model_;
  std::optional<VirtualMachine> vm_;
  std::vector<std::int64_t> sizes_;  // of symbolic dimensions
  std::vector<std::unique_ptr<Growing>> growing_;
  std::vector<NextState> next_state_;  // of the running step, in the order of ModelVersion::state
  StateRows state_rows_;               // of steps that run together
  std::vector<bool> in_place_;         // of a running batch, in that order
  bool has_deadline_ = false;
  bool is_bound_ = false;  // inputs and outputs are those of the last request, which BindsAll
};

}  // namespace rewire::serve
