// SPDX-License-Identifier: Apache-2.0
// How an instance runs several requests as one.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/serve/run/cache_places.h"
#include "rewire/serve/run/instance.h"
#include "rewire/serve/run/output_memory.h"
#include "rewire/serve/run/request_check.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {
namespace {

// The integer of a tensor of one INT64 or INT32.
std::int64_t IntegerOf(const InputTensor& tensor) {
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  if (tensor.dtype == kInt64) {
    std::memcpy(&wide, tensor.data.data(), sizeof(wide));
    return wide;
  }
  std::memcpy(&narrow, tensor.data.data(), sizeof(narrow));
  return narrow;
}

}  // namespace

// Gives steps of generations as much room each as the longest of them needs, because rows have one shape.
Status Instance::MakeRoom(const std::vector<Request*>& members) {
  std::int64_t room = 0;
  for (const Request* member : members) {
    if (member->cache.total == 0) return {};
    room = std::max(room, RoomFor(model_, member->cache.total));
    if (member->sequence->begun) room = std::max(room, RoomOf(model_, *member->sequence));
  }
  for (Request* member : members) {
    member->cache.room = room;
    if (!member->sequence->begun || RoomOf(model_, *member->sequence) == room) continue;
    if (Status out = state_rows_.TakeOut(member->sequence.get()); !out) return out;
    if (Status grown = GrowState(model_, room, member->sequence.get()); !grown) return grown;
  }
  return {};
}

// Makes the state of steps the first rows of the instance's blocks.
Status Instance::GatherState(std::vector<Request*>* members) {
  if (Status made = MakeRoom(*members); !made) return made;
  for (Request* member : *members) {
    if (member->sequence->begun) continue;
    if (Status good = CheckRequest(model_.signature, member, &sizes_, false); !good) return good;
    if (Status filled = FillState(model_, sizes_, member); !filled) return filled;
  }
  if (Status gathered = state_rows_.Gather(members); !gathered) return gathered;
  Request& first = *members->front();
  for (std::size_t i = 0; i < model_.state.size(); ++i) {
    const StateTensor& tensor = first.sequence->state[i];
    InputTensor& input = first.inputs[model_.state[i].input];
    input.shape = tensor.shape;
    input.data = {state_rows_.past(i), static_cast<std::size_t>(tensor.bytes)};
  }
  return {};
}

// Sets the inputs but those of state: rows behind each other.
Status Instance::GatherInputs(const std::vector<Request*>& members, std::int64_t padded, Arena* memory) {
  const ModelSignature& signature = model_.signature;
  std::vector<std::int64_t> shape;
  for (std::uint32_t i = 0; i < signature.inputs.size(); ++i) {
    const ModelInput& input = signature.inputs[i];
    const InputTensor& like = members[0]->inputs[i];
    if (like.is_state) continue;
    shape = like.shape;
    if (signature.largest == i) {
      const InputTensor* largest = &like;
      for (const Request* member : members) {
        if (IntegerOf(member->inputs[i]) > IntegerOf(*largest)) largest = &member->inputs[i];
      }
      const TensorView view(static_cast<const void*>(largest->data.data()), input.dtype, shape);
      if (Status set = vm_->TrySetInput(input.handle, view); !set) return Forward(set);
      continue;
    }
    const std::size_t row_bytes = shape[0] == 0 ? 0 : like.data.size() / static_cast<std::size_t>(shape[0]);
    shape[0] = padded;
    const std::size_t bytes = row_bytes * static_cast<std::size_t>(padded);
    std::byte* const gathered = memory->Allocate(std::max<std::size_t>(bytes, 1));
    if (gathered == nullptr) return NoMemoryFor(input.name, bytes);
    std::size_t used = 0;
    for (const Request* member : members) {
      const Span<const std::byte> data = member->inputs[i].data;
      if (!data.empty()) std::memcpy(gathered + used, data.data(), data.size());
      used += data.size();
    }
    std::memset(gathered + used, 0, bytes - used);
    const TensorView view(static_cast<const void*>(gathered), input.dtype, shape);
    if (Status set = vm_->TrySetInput(input.handle, view); !set) return Forward(set);
  }
  return {};
}

// Binds outputs to memory of the batch, and those of state to rows. What generations read is written over,
// which copies nothing. Other sequences keep what they had, so that each can run alone if the batch fails.
Status Instance::BindBatch(const std::vector<Request*>& members, Arena* memory,
                           std::vector<OutputTensor>* whole) {
  const ModelSignature& signature = model_.signature;
  const bool is_step = members[0]->sequence != nullptr;
  in_place_.assign(is_step ? model_.state.size() : 0, false);
  for (std::size_t i = 0; i < in_place_.size(); ++i) {
    const StatePair& pair = model_.state[i];
    OutputTensor all;
    SetShape(signature.outputs[pair.output], sizes_, &all);
    const OutputHandle output = signature.outputs[pair.output].handle;
    const InputHandle input = signature.inputs[pair.input].handle;
    const DLDataType dtype = all.dtype;
    const TensorView past(static_cast<void*>(state_rows_.past(i)), dtype, all.shape);
    if (Status set = vm_->TrySetInput(input, past); !set) return Forward(set);
    in_place_[i] = members[0]->held != nullptr && vm_->TryDonate(input, output);
    if (in_place_[i]) continue;
    std::byte* const data = state_rows_.MakePresent(i);
    if (data == nullptr) return NoMemoryFor(signature.outputs[pair.output].name, all.bytes);
    const TensorView present(static_cast<void*>(data), dtype, all.shape);
    if (Status bound = vm_->TrySetOutput(output, present); !bound) return Forward(bound);
  }
  whole->resize(signature.outputs.size());
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    const ModelOutput& output = signature.outputs[i];
    OutputTensor& all = (*whole)[i];
    SetShape(output, sizes_, &all);
    if (is_step && IsState(output)) continue;
    std::byte* const data = SetBytes(&all) ? memory->Allocate(std::max<std::size_t>(all.bytes, 1)) : nullptr;
    if (data == nullptr) return NoMemoryFor(output.name, all.bytes);
    all.data = data;
    const TensorView view(static_cast<void*>(data), output.dtype, all.shape);
    if (Status bound = vm_->TrySetOutput(output.handle, view); !bound) return Forward(bound);
  }
  return {};
}

// Gives a member its results: rows from `first` on.
void Instance::ScatterOutputs(const std::vector<OutputTensor>& whole, std::int64_t padded,
                              const std::shared_ptr<Arena>& memory, Request* member, std::int64_t first) {
  member->results.clear();
  member->batch = memory;
  member->status = {};
  const std::size_t count = member->wanted.empty() ? whole.size() : member->wanted.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const WantedOutput* const wanted = member->wanted.empty() ? nullptr : &member->wanted[i];
    const OutputTensor& all =
        wanted == nullptr ? whole[i]
                          : *std::find_if(whole.begin(), whole.end(), [&](const OutputTensor& output) {
                              return output.name == wanted->name;
                            });
    if (all.data == nullptr && wanted == nullptr) continue;  // state, which the server keeps
    OutputTensor& result = member->results.emplace_back(all);
    result.wanted = i;
    if (all.data == nullptr) {
      const auto& state = model_.state;
      const auto pair = std::find_if(state.begin(), state.end(), [&](const StatePair& one) {
        return model_.signature.outputs[one.output].name == all.name;
      });
      member->status = CopyState(static_cast<std::size_t>(pair - state.begin()), member, &result);
      if (!member->status) return;
      continue;
    }
    const std::uint64_t row_bytes = padded == 0 ? 0 : all.bytes / static_cast<std::uint64_t>(padded);
    result.shape[0] = member->rows;
    result.bytes = row_bytes * static_cast<std::uint64_t>(member->rows);
    result.data = all.data + row_bytes * static_cast<std::uint64_t>(first);
    if (wanted == nullptr || wanted->owner == nullptr) continue;
    if (wanted->place.size() < result.bytes) {
      member->status = PlaceTooSmall(std::string(result.name), result.bytes, wanted->place.size());
      return;
    }
    std::memcpy(wanted->place.data(), result.data, result.bytes);
    result.data = wanted->place.data();
  }
}

Status Instance::TryRunBatch(std::vector<Request*>* members, std::int64_t padded, RunTimes* times,
                             bool* invoked) {
  const ModelSignature& signature = model_.signature;
  const auto memory = std::make_shared<Arena>();
  const bool is_step = members->front()->sequence != nullptr;
  if (is_step) {
    if (Status gathered = GatherState(members); !gathered) return gathered;
  }
  // The sizes of all dimensions but the first are those of any member.
  if (Status good = CheckRequest(signature, members->front(), &sizes_); !good) return Forward(good);
  sizes_[*signature.batch_symbol] = padded;
  if (Status gathered = GatherInputs(*members, padded, memory.get()); !gathered) return gathered;
  std::vector<OutputTensor> whole;
  if (Status bound = BindBatch(*members, memory.get(), &whole); !bound) return bound;
  times->infer_start = Clock::now();
  *invoked = true;
  Status run = vm_->TryInvoke(signature.function);
  times->infer_end = Clock::now();
  if (!run) return run;
  for (std::size_t i = 0; i < in_place_.size(); ++i) {
    if (!in_place_[i]) state_rows_.Flip(i);
  }
  std::int64_t first = 0;
  for (Request* member : *members) {
    ScatterOutputs(whole, padded, memory, member, first);
    if (is_step) {
      member->sequence->begun = true;
      KeepPrefix(member);
    }
    first += member->rows;
  }
  return {};
}

void Instance::RunTogether(Span<Request* const> members, std::int64_t padded, RunTimes* times) {
  const Clock::time_point deadline = LastDeadline(members);
  has_deadline_ = deadline != Clock::time_point::max();
  Status run = vm_->TrySetDeadline(deadline);
  std::vector<Request*> rows(members.begin(), members.end());
  bool invoked = false;
  if (is_bound_) Unbind();
  if (run) run = TryRunBatch(&rows, padded, times, &invoked);
  Unbind();
  if (run) return;
  if (invoked && std::find(in_place_.begin(), in_place_.end(), true) != in_place_.end()) {
    // Each begins anew, and runs alone from then on, so that only one that is wrong by itself fails.
    state_rows_.Drop(rows);
    for (Request* member : members) {
      member->status = {};
      member->results.clear();
      member->state_lost = true;
    }
    return;
  }
  for (Request* member : members) {
    if (members.size() == 1) {
      member->status = run;
    } else {
      RunAlone(member, times);
    }
  }
}

}  // namespace rewire::serve
