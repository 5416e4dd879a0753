// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/remote_call.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/executable_format/types.h"
#include "rewire/serve/core/dim_names.h"
#include "rewire/vm/c_api/program.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::serve {
namespace {

// One run of a VM at a time.
class Caller {
 public:
  explicit Caller(std::shared_ptr<const RemoteCall> call) : call_(std::move(call)) {}

  Status Run(const RewireFFIAny* args, std::size_t count) {
    const std::size_t inputs = call_->signature.inputs.size(), outputs = call_->signature.outputs.size();
    patience_.stopped = rewire_kernel_api()->cancelled;
    inputs_ = Tensors(args, inputs);
    outputs_ = Tensors(args + inputs, count - inputs);
    const bool shapes = outputs > 0 && outputs_.size() == 2 * outputs;
    Status done = shapes ? call_->derived ? DeriveShapes() : AskForShapes() : Finish();
    // The rest of an answer would stand in front of the next one.
    if (!done || (!shapes && channel_ != nullptr && !channel_->usable())) channel_.reset();
    return done;
  }

 private:
  static std::vector<const DLTensor*> Tensors(const RewireFFIAny* args, std::size_t count) {
    std::vector<const DLTensor*> tensors;
    for (std::size_t i = 0; i < count; ++i) tensors.push_back(RewireTensorOf(&args[i]));
    return tensors;
  }
  static Span<const std::int64_t> ShapeOf(const DLTensor& tensor) {
    return {tensor.shape, static_cast<std::size_t>(tensor.ndim)};
  }
  static std::byte* DataOf(const DLTensor& tensor) {
    return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  }
  // Tells the program an output's shape and size.
  Status Tell(std::size_t output, Span<const std::int64_t> shape) {
    const RemoteTensor& of = call_->signature.outputs[output];
    const std::optional<std::uint64_t> bytes = TensorBytes(of.dtype, shape);
    if (!bytes || *bytes > std::uint64_t{1} << 62)
      return Fail(StatusCode::kInvalidArgument, "output '{}' has more bytes than there are", of.name);
    if (!shape.empty())
      std::memcpy(DataOf(*outputs_[2 * output]), shape.data(), shape.size() * sizeof(std::int64_t));
    std::memcpy(DataOf(*outputs_[2 * output + 1]), &*bytes, sizeof *bytes);
    return {};
  }

  // By the names of the inputs' dimensions.
  Status DeriveShapes() {
    std::vector<std::string> symbols;
    std::vector<std::int64_t> sizes;
    const auto dims_of = [&](const RemoteTensor& tensor) {
      std::optional<std::vector<Dim>> dims = ParseDimNames(tensor.dims, &symbols);
      sizes.resize(symbols.size(), 0);
      if (tensor.dims.empty()) dims = std::vector<Dim>(tensor.shape.begin(), tensor.shape.end());
      return *std::move(dims);
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::vector<Dim> dims = dims_of(call_->signature.inputs[i]);
      for (std::size_t j = 0; j < dims.size(); ++j) {
        if (IsSymbol(dims[j])) sizes[SymbolOf(dims[j])] = inputs_[i]->shape[j];
      }
    }
    for (std::size_t i = 0; i < call_->signature.outputs.size(); ++i) {
      std::vector<Dim> shape = dims_of(call_->signature.outputs[i]);
      for (Dim& dim : shape) dim = IsSymbol(dim) ? sizes[SymbolOf(dim)] : dim;
      if (Status told = Tell(i, {shape.data(), shape.size()}); !told) return told;
    }
    return {};
  }

  Status AskForShapes() {
    if (Status begun = Begin(); !begun) return begun;
    for (const AnsweredTensor& output : answered_) {
      if (Status told = Tell(NumberOf(output), {output.shape.data(), output.shape.size()}); !told)
        return told;
    }
    return {};
  }

  Status Finish() {
    if (call_->derived) {
      if (Status begun = Begin(); !begun) return begun;
    } else if (channel_ == nullptr) {
      return Fail(StatusCode::kInternal, "nothing has been asked");
    }
    std::vector<Span<std::byte>> places;
    for (const AnsweredTensor& output : answered_) {
      const DLTensor& tensor = *outputs_[NumberOf(output)];
      const Span<const std::int64_t> shape = ShapeOf(tensor);
      if (!std::equal(shape.begin(), shape.end(), output.shape.begin(), output.shape.end()))
        return Fail(StatusCode::kRuntimeFailed, "output '{}' has another shape than the model says",
                    output.name);
      places.push_back({DataOf(tensor), static_cast<std::size_t>(output.bytes)});
    }
    return channel_->Receive(places, patience_);
  }

  std::size_t NumberOf(const AnsweredTensor& output) const {
    std::size_t number = 0;
    while (call_->signature.outputs[number].name != output.name) ++number;
    return number;
  }

  // Sends the request, and receives the heads of all outputs.
  Status Begin() {
    for (bool again = false;; again = true) {
      const bool fresh = channel_ == nullptr || !channel_->usable();
      if (fresh) {
        Result<std::unique_ptr<Channel>> opened = call_->open(patience_);
        if (!opened) return Forward(opened);
        channel_ = *std::move(opened);
      }
      answered_.clear();
      const Status begun = BeginOver();
      if (begun) return CheckAnswer();
      // A server may close a connection that nobody has used for long.
      if (fresh || again || begun.code() != StatusCode::kIo || !channel_->nothing_arrived()) return begun;
      channel_.reset();
    }
  }

  Status BeginOver() {
    InferCall request;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      SentTensor& sent = request.inputs.emplace_back();
      sent.tensor = &call_->signature.inputs[i];
      sent.shape = ShapeOf(*inputs_[i]);
      const std::optional<std::uint64_t> bytes = TensorBytes(sent.tensor->dtype, sent.shape);
      if (!bytes)
        return Fail(StatusCode::kInvalidArgument, "input '{}' has more bytes than there are",
                    sent.tensor->name);
      sent.bytes = {DataOf(*inputs_[i]), static_cast<std::size_t>(*bytes)};
      if (Status placed = Place(DataOf(*inputs_[i]), *bytes, &sent.place); !placed) return placed;
    }
    placed_.assign(call_->signature.outputs.size(), false);
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      WantedTensor& wanted = request.outputs.emplace_back();
      wanted.tensor = &call_->signature.outputs[i];
      if (!call_->derived) continue;
      const std::optional<std::uint64_t> bytes = TensorBytes(wanted.tensor->dtype, ShapeOf(*outputs_[i]));
      if (!bytes) continue;
      wanted.is_known = true;
      wanted.shape = ShapeOf(*outputs_[i]);
      wanted.bytes = *bytes;
      if (Status placed = Place(DataOf(*outputs_[i]), *bytes, &wanted.place); !placed) return placed;
      placed_[i] = !wanted.place.region.empty();
    }
    return channel_->Begin(request, &answered_, patience_);
  }

  Status Place(const void* data, std::uint64_t bytes, RegionPlace* place) {
    if (call_->regions == nullptr) return {};
    call_->regions->UnregisterFreed(channel_.get(), patience_);
    Result<RegionPlace> found = call_->regions->Find(data, bytes, channel_.get(), patience_);
    if (found) *place = *found;
    return found ? Status() : Forward(found);
  }

  Status CheckAnswer() const {
    const std::vector<RemoteTensor>& outputs = call_->signature.outputs;
    std::vector<bool> seen(outputs.size());
    for (const AnsweredTensor& answer : answered_) {
      const auto found = std::find_if(outputs.begin(), outputs.end(),
                                      [&](const RemoteTensor& output) { return output.name == answer.name; });
      const auto number = static_cast<std::size_t>(found - outputs.begin());
      if (found == outputs.end() || seen[number])
        return Fail(StatusCode::kUnsupported, "the server's output '{}' was not asked for", answer.name);
      seen[number] = true;
      // Nothing would write the caller's memory.
      if (answer.in_region && !placed_[number])
        return Fail(StatusCode::kUnsupported,
                    "the server says that its output '{}' is in a region, and no region was given for it",
                    answer.name);
      const std::optional<std::uint64_t> bytes =
          TensorBytes(answer.dtype, {answer.shape.data(), answer.shape.size()});
      if (answer.dtype != found->dtype || answer.shape.size() != found->shape.size() || !bytes ||
          (!answer.in_region && *bytes != answer.bytes))
        return Fail(StatusCode::kUnsupported,
                    "the server's output '{}' is not of the type that the model says", answer.name);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!seen[i])
        return Fail(StatusCode::kUnsupported, "the server's output '{}' is missing", outputs[i].name);
    }
    return {};
  }

  std::shared_ptr<const RemoteCall> call_;
  std::unique_ptr<Channel> channel_;
  Patience patience_;
  std::vector<const DLTensor*> inputs_, outputs_;
  std::vector<bool> placed_;  // the outputs that the server was told to write into a region
  std::vector<AnsweredTensor> answered_;
};

// The caller of the running VM, which is made at its first call.
Caller* CallerOfVm(const std::shared_ptr<const RemoteCall>& call) {
  if (void* const slot = rewire_kernel_api()->get_slot(); slot != nullptr) return static_cast<Caller*>(slot);
  auto made = std::make_unique<Caller>(call);
  Caller* const caller = made.get();
  rewire_kernel_api()->set_slot(made.release(), [](void* state) { delete static_cast<Caller*>(state); });
  return caller;
}

int CallRemote(void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* /*result*/) {
  const auto& call = *static_cast<const std::shared_ptr<const RemoteCall>*>(handle);
  Status done;
  try {
    done = CallerOfVm(call)->Run(args, static_cast<std::size_t>(count));
  } catch (const std::exception& error) {
    done = Fail(StatusCode::kOutOfMemory, "{}", error.what());
  }
  if (done) return 0;
  SetKernelError("", (call->text + ": " + done.error().message()).c_str());
  return -1;
}

}  // namespace

PackedFunction MakeRemoteFunction(std::shared_ptr<const RemoteCall> call) {
  auto owner = std::make_shared<std::shared_ptr<const RemoteCall>>(std::move(call));
  PackedFunction function;
  function.call = &CallRemote;
  function.handle = owner.get();
  function.owner = std::move(owner);
  return function;
}

}  // namespace rewire::serve
