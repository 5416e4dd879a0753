// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/state_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace rewire::serve {
namespace {

void CopyRow(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// A row for each sequence of the largest batch, all zero because rows that fill a batch up are read, too.
// Null if there is no memory.
std::byte* AllocateRows(std::size_t row_bytes, std::int64_t most, Arena* memory) {
  const auto count = static_cast<std::size_t>(most);
  if (row_bytes > std::numeric_limits<std::size_t>::max() / 4 / count) return nullptr;
  std::byte* const rows = memory->Allocate(std::max<std::size_t>(row_bytes * count, 1));
  if (rows != nullptr) std::memset(rows, 0, row_bytes * count);
  return rows;
}

Status NoMemoryForState() {
  return Fail(StatusCode::kOutOfMemory, "there is no memory for the state of sequences that run together");
}

}  // namespace

Status StateRows::TakeOut(Sequence* sequence) {
  const std::lock_guard<std::mutex> lock(*placing_);
  StateRows* const rows = sequence->rows;
  return rows == nullptr ? Status() : rows->TakeOutLocked(sequence);
}

Status StateRows::TakeOutLocked(Sequence* sequence) {
  std::vector<Arena> memory(blocks_.size());
  std::vector<std::byte*> data;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    data.push_back(memory[i].Allocate(std::max<std::size_t>(blocks_[i].row_bytes, 1)));
    if (data.back() == nullptr) return NoMemoryForState();
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t bytes = blocks_[i].row_bytes;
    CopyRow(data[i], blocks_[i].now + sequence->row * bytes, bytes);
    sequence->state[i].memory = std::move(memory[i]);
    sequence->state[i].data = data[i];
  }
  residents_[sequence->row].reset();
  sequence->rows = nullptr;
  return {};
}

bool StateRows::HasShapeOf(const Sequence& sequence) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].shape != sequence.state[i].shape) return false;
  }
  return !blocks_.empty();
}

Status StateRows::MakeBlocks(const Sequence& like) {
  std::vector<Block> blocks(model_.state.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    block.shape = like.state[i].shape;
    block.row_bytes = static_cast<std::size_t>(like.state[i].bytes);
    block.now = AllocateRows(block.row_bytes, model_.settings.batching.max_batch_size, &block.memory);
    if (block.now == nullptr) return NoMemoryForState();
  }
  blocks_ = std::move(blocks);
  residents_.clear();
  return {};
}

std::byte* StateRows::MakePresent(std::size_t tensor) {
  Block& block = blocks_[tensor];
  if (block.next == nullptr) {
    block.next = AllocateRows(block.row_bytes, model_.settings.batching.max_batch_size, &block.memory);
  }
  return block.next;
}

void StateRows::Move(std::size_t from, std::size_t to) {
  for (const Block& block : blocks_) {
    CopyRow(block.now + to * block.row_bytes, block.now + from * block.row_bytes, block.row_bytes);
  }
  residents_[to] = std::move(residents_[from]);
  if (const std::shared_ptr<Sequence> moved = residents_[to].lock()) moved->row = to;
}

void StateRows::TakeIn(const std::shared_ptr<Sequence>& sequence) {
  const std::size_t row = residents_.size();
  StateRows* const from = sequence->rows;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t bytes = blocks_[i].row_bytes;
    const std::byte* const state =
        from == nullptr ? sequence->state[i].data : from->blocks_[i].now + sequence->row * bytes;
    CopyRow(blocks_[i].now + row * bytes, state, bytes);
    sequence->state[i].memory = Arena();
    sequence->state[i].data = nullptr;
  }
  if (from != nullptr) from->residents_[sequence->row].reset();
  residents_.push_back(sequence);
  sequence->rows = this;
  sequence->row = row;
}

Status StateRows::Gather(std::vector<Request*>* steps) {
  const std::lock_guard<std::mutex> lock(*placing_);
  for (std::size_t row = 0; row < residents_.size(); ++row) {
    const std::shared_ptr<Sequence> resident = residents_[row].lock();
    const bool stays = std::any_of(steps->begin(), steps->end(),
                                   [&](const Request* step) { return step->sequence == resident; });
    if (resident == nullptr || stays) continue;
    if (Status out = TakeOutLocked(resident.get()); !out) return out;
  }
  if (!HasShapeOf(*steps->front()->sequence)) {
    // Rows of another shape are not among these steps, unless those differ from each other.
    for (const std::weak_ptr<Sequence>& resident : residents_) {
      const std::shared_ptr<Sequence> sequence = resident.lock();
      if (sequence == nullptr) continue;
      if (Status out = TakeOutLocked(sequence.get()); !out) return out;
    }
    if (Status made = MakeBlocks(*steps->front()->sequence); !made) return made;
  }
  for (const Request* step : *steps) {
    if (HasShapeOf(*step->sequence)) continue;
    return Fail(StatusCode::kInvalidArgument, "sequences whose state differs in shape do not run together");
  }
  for (std::size_t row = 0; row < residents_.size();) {
    if (!residents_[row].expired()) {
      ++row;
    } else {
      if (row + 1 < residents_.size()) Move(residents_.size() - 1, row);
      residents_.pop_back();
    }
  }
  for (const Request* step : *steps) {
    if (step->sequence->rows != this) TakeIn(step->sequence);
  }
  std::sort(steps->begin(), steps->end(),
            [](const Request* a, const Request* b) { return a->sequence->row < b->sequence->row; });
  return {};
}

void StateRows::Drop(const std::vector<Request*>& steps) {
  const std::lock_guard<std::mutex> lock(*placing_);
  for (const Request* step : steps) {
    Sequence& sequence = *step->sequence;
    residents_[sequence.row].reset();
    sequence.rows = nullptr;
    sequence.state.clear();
    sequence.begun = false;
    sequence.alone = true;
  }
}

}  // namespace rewire::serve
