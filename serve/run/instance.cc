// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/instance.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/serve/run/cache_places.h"
#include "rewire/serve/run/classification.h"
#include "rewire/serve/run/output_memory.h"
#include "rewire/serve/run/request_check.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {
namespace {

const ModelOutput& Named(const ModelSignature& signature, std::string_view name) {
  return *std::find_if(signature.outputs.begin(), signature.outputs.end(),
                       [&](const ModelOutput& output) { return output.name == name; });
}

}  // namespace

// An output whose size is known only during the run.
struct Instance::Growing {
  Arena* memory = nullptr;
  Span<std::byte> place;
  bool placed = false;
  void* data = nullptr;
  std::uint64_t too_large = 0;  // bytes that the place does not have

  static void* Allocate(void* context, std::uint64_t bytes, std::uint64_t) {
    auto* const self = static_cast<Growing*>(context);
    if (self->placed) {
      self->too_large = bytes > self->place.size() ? bytes : 0;
      self->data = self->too_large != 0 ? nullptr : self->place.data();
    } else {
      self->data = self->memory->Allocate(std::max<std::size_t>(bytes, 1));
    }
    return self->data;
  }
};

// NextState: one tensor of a sequence's state, as the running step makes it.
struct Instance::NextState {
  bool in_place = false;  // the output is in the memory of the input
  StateTensor tensor;
  std::unique_ptr<Growing> growing;  // if its size is not known before
};

Instance::Instance(const ModelVersion& model, std::mutex* placing)
    : model_(model), state_rows_(model, placing) {}
Instance::~Instance() = default;

Status Instance::BindOutput(const ModelOutput& output, Request* request, std::uint32_t wanted) {
  OutputTensor& result = request->results.emplace_back();
  result.wanted = wanted;
  const WantedOutput* const place =
      wanted < request->wanted.size() && request->wanted[wanted].owner != nullptr ? &request->wanted[wanted]
                                                                                  : nullptr;
  if (!output.derived) {
    result.name = output.name;
    result.dtype = output.dtype;
    Growing& growing = *growing_.emplace_back(std::make_unique<Growing>());
    growing.memory = &request->memory;
    growing.placed = place != nullptr;
    if (place != nullptr) growing.place = place->place;
    return vm_->TrySetOutput(output.handle, OutputAllocator{&growing, &Growing::Allocate});
  }
  SetShape(output, sizes_, &result);
  if (!SetBytes(&result)) return NoMemoryFor(output.name, result.bytes);
  std::byte* data = nullptr;
  if (place != nullptr) {
    if (place->place.size() < result.bytes)
      return PlaceTooSmall(output.name, result.bytes, place->place.size());
    data = place->place.data();
  } else {
    data = request->memory.Allocate(std::max<std::size_t>(result.bytes, 1));
    if (data == nullptr) return NoMemoryFor(output.name, result.bytes);
  }
  result.data = data;
  return vm_->TrySetOutput(output.handle, TensorView(static_cast<void*>(data), output.dtype, result.shape));
}

Status Instance::TryRunAlone(Request* request, RunTimes* times) {
  const ModelSignature& signature = model_.signature;
  const bool is_step = request->sequence != nullptr;
  if (is_step) {
    if (Status out = state_rows_.TakeOut(request->sequence.get()); !out) return out;
  }
  if (Status good = CheckRequest(signature, request, &sizes_, !is_step); !good) return Forward(good);
  if (is_step) {
    if (request->cache.total != 0) request->cache.room = RoomFor(model_, request->cache.total);
    Status filled = FillState(model_, sizes_, request);
    if (filled) filled = CheckRequest(signature, request, &sizes_);
    if (!filled) return filled;
  }
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const InputTensor& input = request->inputs[i];
    const void* data = input.data.data();
    // A client may write its region while kernels run. They check integers before they use them, as indices
    // or sizes, so these are taken out of its reach. Of floats, only values follow.
    const bool is_shared =
        input.owner != nullptr && input.dtype.code != kFloat && input.dtype.code != kBFloat;
    // The VM would copy it, too, to memory that it would have to take for that.
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % ElementBytes(input.dtype) == 0;
    if (is_shared || !is_aligned) {
      std::byte* const copy = request->memory.Allocate(std::max<std::size_t>(input.data.size(), 1));
      if (copy == nullptr) return NoMemoryFor(signature.inputs[i].name, input.data.size());
      std::memcpy(copy, data, input.data.size());
      data = copy;
    }
    // A donated input is memory that the run may write.
    const TensorView view = input.is_state ? TensorView(const_cast<void*>(data), input.dtype, input.shape)
                                           : TensorView(data, input.dtype, input.shape);
    if (Status set = vm_->TrySetInput(signature.inputs[i].handle, view); !set) return Forward(set);
  }
  request->results.clear();
  growing_.clear();
  const std::size_t count = request->wanted.empty() ? signature.outputs.size() : request->wanted.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const ModelOutput& output =
        request->wanted.empty() ? signature.outputs[i] : Named(signature, request->wanted[i].name);
    if (is_step && IsState(output)) {
      // The server keeps it, and a client gets a copy if it asks.
      if (request->wanted.empty()) continue;
      OutputTensor& result = request->results.emplace_back();
      result.name = output.name;
      result.dtype = output.dtype;
      result.wanted = i;
      continue;
    }
    if (Status bound = BindOutput(output, request, i); !bound) return Forward(bound);
  }
  if (is_step) {
    if (Status bound = BindState(request); !bound) return bound;
  }
  times->infer_start = Clock::now();
  Status run = vm_->TryInvoke(signature.function);
  times->infer_end = Clock::now();
  std::size_t next = 0;
  for (OutputTensor& result : request->results) {
    const ModelOutput& output = Named(signature, result.name);
    if (output.derived || (is_step && IsState(output))) continue;
    const Growing& growing = *growing_[next++];
    if (growing.too_large != 0) return PlaceTooSmall(output.name, growing.too_large, growing.place.size());
    if (!run) continue;
    Result<std::vector<std::int64_t>> shape = vm_->TryOutputShape(output.handle);
    if (!shape) return Forward(shape);
    result.shape = *std::move(shape);
    result.data = static_cast<const std::byte*>(growing.data);
    SetBytes(&result);
  }
  return run && is_step ? KeepState(request) : run;
}

bool Instance::IsState(const ModelOutput& output) const {
  return std::any_of(model_.state.begin(), model_.state.end(), [&](const StatePair& pair) {
    return &model_.signature.outputs[pair.output] == &output;
  });
}

Status Instance::BindState(Request* request) {
  next_state_.clear();
  for (const StatePair& pair : model_.state) {
    const ModelOutput& output = model_.signature.outputs[pair.output];
    const InputTensor& input = request->inputs[pair.input];
    NextState& next = next_state_.emplace_back();
    if (!output.derived) {
      next.growing = std::make_unique<Growing>();
      next.growing->memory = &next.tensor.memory;
      const OutputAllocator allocator{next.growing.get(), &Growing::Allocate};
      if (Status bound = vm_->TrySetOutput(output.handle, allocator); !bound) return bound;
      continue;
    }
    OutputTensor result;
    SetShape(output, sizes_, &result);
    // Donating is refused where another output may be the input itself.
    next.in_place = input.is_state && result.shape == input.shape &&
                    vm_->TryDonate(model_.signature.inputs[pair.input].handle, output.handle);
    if (next.in_place) continue;
    std::byte* const data =
        SetBytes(&result) ? next.tensor.memory.Allocate(std::max<std::size_t>(result.bytes, 1)) : nullptr;
    if (data == nullptr) return NoMemoryFor(output.name, result.bytes);
    next.tensor.data = data;
    next.tensor.shape = result.shape;
    next.tensor.bytes = result.bytes;
    const TensorView view(static_cast<void*>(data), output.dtype, result.shape);
    if (Status bound = vm_->TrySetOutput(output.handle, view); !bound) return bound;
  }
  return {};
}

// After a run: the outputs are the state, and what the client wants of them is copied.
Status Instance::KeepState(Request* request) {
  Sequence& sequence = *request->sequence;
  for (std::size_t i = 0; i < model_.state.size(); ++i) {
    const ModelOutput& output = model_.signature.outputs[model_.state[i].output];
    NextState& next = next_state_[i];
    if (next.growing != nullptr) {
      Result<std::vector<std::int64_t>> shape = vm_->TryOutputShape(output.handle);
      if (!shape) return Forward(shape);
      OutputTensor result;
      result.dtype = output.dtype;
      result.shape = *std::move(shape);
      SetBytes(&result);
      next.tensor.data = static_cast<const std::byte*>(next.growing->data);
      next.tensor.shape = std::move(result.shape);
      next.tensor.bytes = result.bytes;
    }
    if (!next.in_place) sequence.state[i] = std::move(next.tensor);
    for (OutputTensor& result : request->results) {
      if (result.name != output.name) continue;
      if (Status copied = CopyState(i, request, &result); !copied) return copied;
    }
  }
  sequence.begun = true;
  KeepPrefix(request);
  return {};
}

Status Instance::CopyState(std::size_t tensor, Request* request, OutputTensor* result) {
  const StateTensor& state = request->sequence->state[tensor];
  const WantedOutput& wanted = request->wanted[result->wanted];
  result->shape = state.shape;
  result->bytes = state.bytes;
  const auto bytes = static_cast<std::size_t>(state.bytes);
  std::byte* copy = wanted.place.data();
  if (wanted.owner == nullptr) copy = request->memory.Allocate(std::max<std::size_t>(bytes, 1));
  if (copy == nullptr) return NoMemoryFor(std::string(result->name), state.bytes);
  if (wanted.owner != nullptr && wanted.place.size() < bytes)
    return PlaceTooSmall(std::string(result->name), bytes, wanted.place.size());
  if (bytes > 0) std::memcpy(copy, StateOf(*request->sequence, tensor), bytes);
  result->data = copy;
  return {};
}

void Instance::KeepPrefix(Request* request) {
  if (request->cache.keep_to <= request->cache.keep_from) return;
  std::vector<const std::byte*> data;
  for (std::size_t i = 0; i < model_.state.size(); ++i) data.push_back(StateOf(*request->sequence, i));
  KeepBlocks(model_, data, request);
}

void Instance::RunAlone(Request* request, RunTimes* times) {
  Request* const member = request;
  if (request->deadline != Clock::time_point::max() || has_deadline_) {
    has_deadline_ = request->deadline != Clock::time_point::max();
    if (Status set = vm_->TrySetDeadline(LastDeadline({&member, 1})); !set) {
      request->status = set;
      return;
    }
  }
  const bool binds_all = BindsAll(*request);
  if (is_bound_ && !binds_all) Unbind();
  request->status = TryRunAlone(request, times);
  is_bound_ = binds_all && request->status;
  if (!is_bound_) Unbind();
}

// Whether a run of the request alone binds all inputs and outputs anew. Such a request may leave its own
// bound: binding other memory of the same form takes a fraction of the time, and nothing reads the pointers
// before that.
bool Instance::BindsAll(const Request& request) const {
  const bool all_outputs = request.wanted.empty() || request.wanted.size() == model_.signature.outputs.size();
  return request.sequence == nullptr && all_outputs;
}

// Nothing in the VM refers to a request any more. Both calls fail only while the VM runs.
void Instance::Unbind() {
  is_bound_ = false;
  [[maybe_unused]] const Status inputs = vm_->TryClearInputs();
  [[maybe_unused]] const Status outputs = vm_->TryClearOutputs();
}

Clock::time_point Instance::LastDeadline(Span<Request* const> members) const {
  Clock::time_point last = Clock::time_point::min();
  for (const Request* member : members) last = std::max(last, member->deadline);
  return last;
}

Status Instance::ClassifyResults(Request* request) const {
  for (OutputTensor& result : request->results) {
    if (result.wanted >= request->wanted.size() || request->wanted[result.wanted].classes == 0) continue;
    const bool rows = model_.signature.batch_symbol.has_value();
    if (Status done = Classify(request->wanted[result.wanted].classes, rows, &request->memory, &result);
        !done) {
      return done;
    }
  }
  return {};
}

RunTimes Instance::Run(Span<Request* const> members, std::int64_t rows, std::int64_t padded) {
  Prepare();
  RunTimes times;
  times.start = times.infer_start = times.infer_end = Clock::now();
  if (members.size() == 1 && padded == rows) {
    RunAlone(members[0], &times);
  } else {
    RunTogether(members, padded, &times);
  }
  times.end = Clock::now();
  for (Request* member : members) {
    if (member->cancelled)
      member->status = Fail(StatusCode::kCancelled, "the client has cancelled the request");
    if (member->deadline < times.end && member->status) {
      member->status =
          Fail(StatusCode::kDeadlineExceeded, "the request's time was over before its run ended");
    }
    if (member->status) member->status = ClassifyResults(member);
    if (!member->status) member->results.clear();
  }
  return times;
}

}  // namespace rewire::serve
