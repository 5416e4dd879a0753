// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/arena.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {

// StateRows: the state of sequences whose steps run together on one instance. Each tensor of the model's
// state is one block, and each sequence is a row of it. A sequence keeps its row from step to step, so
// nothing is copied while the same ones run together. One that comes or goes costs copies of one or two rows.
// Sequences that run alone have their state in memory of their own.
class StateRows {
 public:
  // `placing` is that of all instances of the model: it is held while rows move.
  StateRows(const ModelVersion& model, std::mutex* placing) : model_(model), placing_(placing) {}
  StateRows(const StateRows&) = delete;
  StateRows& operator=(const StateRows&) = delete;

  // Makes the state of these steps the first rows, and puts the steps in the order of their rows. Other
  // sequences leave the block. Errors: kOutOfMemory; kInvalidArgument if a state has another shape than the
  // rest. Then each sequence still has its state.
  Status Gather(std::vector<Request*>* steps);
  // The first row of a tensor of state, in the order of ModelVersion::state, and the place for what comes
  // next, unless that is written over it. Null if there is no memory.
  std::byte* past(std::size_t tensor) { return blocks_[tensor].now; }
  std::byte* MakePresent(std::size_t tensor);
  // Makes what stands in the other place the state from now on.
  void Flip(std::size_t tensor) { std::swap(blocks_[tensor].now, blocks_[tensor].next); }
  // The state of these steps is lost: their sequences begin anew.
  void Drop(const std::vector<Request*>& steps);

  // Gives a sequence that may be a row, of any instance, its state in memory of its own. Errors:
  // kOutOfMemory.
  Status TakeOut(Sequence* sequence);

 private:
  struct Block {
    std::vector<std::int64_t> shape;  // of one row
    std::size_t row_bytes = 0;
    Arena memory;
    std::byte* now = nullptr;
    std::byte* next = nullptr;
  };
  // With `placing_`.
  Status TakeOutLocked(Sequence* sequence);
  Status MakeBlocks(const Sequence& like);
  bool HasShapeOf(const Sequence& sequence) const;
  void TakeIn(const std::shared_ptr<Sequence>& sequence);
  void Move(std::size_t from, std::size_t to);

  const ModelVersion& model_;
  std::mutex* const placing_;
  std::vector<Block> blocks_;                       // in the order of ModelVersion::state
  std::vector<std::weak_ptr<Sequence>> residents_;  // of each row; those that have ended leave theirs
};

}  // namespace rewire::serve
