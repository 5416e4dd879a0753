// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/recorder.h"

#include "rewire/vm/run/machine.h"

namespace rewire {

Status Recorder::Record(std::uint32_t function) {
  machine_.Settle();
  if (machine_.memory.bounded()) {
    return Fail(StatusCode::kUnsupported, "a VM with memory of a fixed size records no runs");
  }
  if (machine_.observer != nullptr) {
    return Fail(StatusCode::kInvalidArgument,
                "a run that is observed cannot be recorded; remove the observer");
  }
  // This run makes the stream, compiles device code and takes the memory.
  if (Status ok = machine_.Invoke(function); !ok) return ok;
  machine_.DropResult();  // the recorded run uses its memory
  return RecordUsed(function);
}

// Records on the one device that the VM has used.
Status Recorder::RecordUsed(std::uint32_t function) {
  DeviceStreams::Stream* used = nullptr;
  for (std::uint32_t i = 0; i < machine_.streams.size(); ++i) {
    if (machine_.streams[i].api == nullptr) continue;
    if (used != nullptr) {
      return Fail(StatusCode::kUnsupported, "the VM has used several devices; a recording has one");
    }
    used = &machine_.streams[i];
  }
  if (used == nullptr) {
    return Fail(StatusCode::kUnsupported, "function {} gives no work to a device, there is nothing to record",
                machine_.FunctionName(function));
  }
  if (used->api->begin_recording == nullptr) {
    return Fail(StatusCode::kUnsupported, "device {}:{} cannot record", used->api->name,
                used->device.device_id);
  }
  return RecordRun(function, used);
}

Status Recorder::RecordRun(std::uint32_t function, DeviceStreams::Stream* stream) {
  const DeviceApi& api = *stream->api;
  int code = api.begin_recording(api.context, stream->device, stream->stream);
  if (code != REWIRE_DEVICE_OK) return DeviceFailure(api, stream->device, code);
  machine_.streams.set_recording(true);
  machine_.interrupts.Set(Interrupts::kInFlight);
  last_call_ = kNone;
  const bool leaves_work = std::exchange(machine_.async, true);
  Status status = machine_.RunOnce(function, machine_.inputs.Of(function));
  machine_.async = leaves_work;
  machine_.streams.set_recording(false);
  machine_.interrupts.Clear(Interrupts::kInFlight);
  machine_.open_ends &= static_cast<std::uint8_t>(~Machine::kStarted);
  const DeviceStreams::Source first = stream->first;
  const DeviceStreams::Source last = stream->last;
  const bool any = stream->busy;
  machine_.work.ForgetRecorded(stream);
  void* handle = nullptr;
  code = api.end_recording(api.context, stream->device, stream->stream, &handle);
  const Status ended = code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, stream->device, code);
  machine_.EndOfCall();
  const Status failed = machine_.streams.TakeFailure().status;
  if (status) status = failed;
  if (status) status = ended;
  if (status && !any) {
    status =
        Fail(StatusCode::kUnsupported, "function {} gives no work to a device, there is nothing to record",
             machine_.FunctionName(function));
  }
  if (!status) {
    if (ended) (void)api.destroy_recording(api.context, stream->device, handle);
    machine_.work.LetGoRecorded();
    machine_.DropResult();
    return status;
  }
  handle_ = handle;
  function_ = function;
  stream_ = stream;
  first_ = first;
  last_ = last;
  result_ = machine_.shared_result;
  machine_.open_ends |= Machine::kRecorded;
  return {};
}

Status Recorder::Replay() {
  if (const Status interrupted = machine_.interrupts.Check(); !interrupted) {
    machine_.DropResult();
    return Fail(interrupted.code(), "{} before the recorded run of {}", interrupted.error().message(),
                machine_.FunctionName(function_));
  }
  Status status = GiveReplay();
  if (status) status = machine_.interrupts.Check();
  if (!machine_.async || !status) {
    const Status finished = machine_.WaitForStarted();
    if (status) status = finished;
  }
  if (status) {
    if (!machine_.has_result()) machine_.shared_result = result_;
    return {};
  }
  machine_.DropResult();
  // After a failure of the device the next run is an ordinary one.
  if (status.code() != StatusCode::kCancelled && status.code() != StatusCode::kDeadlineExceeded) Drop();
  return status;
}

Status Recorder::GiveReplay() {
  DeviceStreams::Stream& stream = *stream_;
  const DeviceApi& api = *stream.api;
  DeviceWork::Note(&stream, first_);
  DeviceWork::Note(&stream, last_);
  machine_.open_ends |= Machine::kStarted;
  const int code = api.replay(api.context, stream.device, handle_, stream.stream);
  if (code == REWIRE_DEVICE_OK) return {};
  return Forward(DeviceFailure(api, stream.device, code), "replaying the recorded run");
}

bool Recorder::RecordRepeated(std::uint32_t function, const RewireFFIAny* run_inputs) {
  constexpr std::uint8_t kPlainRuns = 2;
  const bool set =
      run_inputs == machine_.inputs.Of(function) && !machine_.detaches_outputs && !machine_.outputs.empty();
  if (!set || machine_.memory.bounded() || machine_.observer != nullptr ||
      (machine_.open_ends & Machine::kStarted) != 0)
    return false;
  // A replay writes where the recorded run wrote. So results that nobody has bound would change later.
  const OutputSlots& slots = machine_.outputs.Of(function);
  if (slots.bound == 0 || slots.bound != slots.leaves.size()) return false;
  for (const OutputSlot& slot : slots.leaves) {
    if (slot.mode == OutputSlot::kAllocator) return false;
  }
  if (function_ != function) repeats_ = 0;
  function_ = function;
  if (++repeats_ <= kPlainRuns) return false;
  repeats_ = 0;
  machine_.DropResult();
  const Status recorded = RecordUsed(function);
  if (recorded) return true;
  // The same failure would be met again and again; but for what the host asked of this run alone.
  if (recorded.code() != StatusCode::kCancelled && recorded.code() != StatusCode::kDeadlineExceeded)
    machine_.open_ends &= static_cast<std::uint8_t>(~Machine::kAutomatic);
  return false;
}

void Recorder::Drop() {
  repeats_ = 0;
  if ((machine_.open_ends & Machine::kRecorded) == 0) return;
  machine_.open_ends &= static_cast<std::uint8_t>(~Machine::kRecorded);
  DeviceStreams::Stream& stream = *stream_;
  const DeviceApi& api = *stream.api;
  if (stream.busy) {
    if (Status finished = machine_.WaitForStarted(); !finished) {
      machine_.late = finished;
      machine_.open_ends |= Machine::kLate;
    }
  }
  const int code = api.destroy_recording(api.context, stream.device, handle_);
  if (code != REWIRE_DEVICE_OK) DeviceStreams::NoteFailure(&stream, DeviceFailure(api, stream.device, code));
  machine_.heap.Unpin(result_.Release());
  machine_.work.LetGoRecorded();
}

}  // namespace rewire
