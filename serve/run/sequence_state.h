// SPDX-License-Identifier: Apache-2.0
//
// The state of one sequence: tensors that one step of a model writes as outputs and the next one reads as
// inputs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/arena.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"

namespace rewire::serve {

struct StateTensor {
  std::vector<std::int64_t> shape;
  Arena memory;  // of this tensor alone
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

class StateRows;

struct Sequence {
  // The running step's own, which is one at a time.
  std::vector<StateTensor> state;  // in the order of ModelVersion::state
  bool begun = false;              // a step has ended well
  bool alone = false;              // its steps run with no others any more

  // The elements of `state` are in a row of this block, and not in `state`. Null: they are there. They
  // belong to StateRows, under its lock.
  std::atomic<StateRows*> rows{nullptr};  // read elsewhere as a hint
  std::size_t row = 0;

  // The rest belongs to the table of sequences (run/sequences.h), under its lock.
  std::string name;
  std::uint32_t steps = 0;  // that wait or run
  bool running = false;
  bool listed = true;       // in the table; otherwise a new one has its id
  Status gone;              // why no further step can run
  std::uint64_t bytes = 0;  // of `state`, as they are counted
  Clock::time_point last_used;
  std::list<Sequence*>::iterator idle;  // its place among those without steps
};

// Appends the inputs that a step of a sequence gets from the state, empty until FillState. A first step may
// give some itself, which the state then begins with. Errors: kInvalidArgument if another step gives one.
Status AddStateInputs(const ModelVersion& model, Request* request);

// Gives a step its state, whose inputs are in the model's order. New sequences begin with zeroes. `sizes` has
// those dimensions that the request's own inputs give. The others are as the settings say, or 0. A state of
// positions has the room that the request asks for, and begins with the blocks that it brings. Errors:
// kOutOfMemory.
Status FillState(const ModelVersion& model, const std::vector<std::int64_t>& sizes, Request* request);

}  // namespace rewire::serve
