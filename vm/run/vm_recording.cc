// SPDX-License-Identifier: Apache-2.0
//
// A run that is recorded once and replayed: one call of the driver in place of one for each kernel.
//
// The recording has the addresses of the run. So the VM keeps its memory as that run left it, and every
// change of the VM ends the recording. What the host itself computes is not in it. So a run is refused in
// which the host computes anything but what follows from shapes and constants, or writes an output.
//
// Automatic recording is the same for runs that repeat: once a function has run twice with the same bindings,
// the third run is recorded and replayed. Every change of the VM begins the count anew.
#include <utility>

#include "rewire/vm/run/vm_impl.h"

namespace rewire {

Status VmImpl::Record(std::uint32_t function) {
  Settle();
  if (bounded()) {
    return Fail(StatusCode::kUnsupported, "a VM with memory of a fixed size records no runs");
  }
  if (observer != nullptr) {
    return Fail(StatusCode::kInvalidArgument,
                "a run that is observed cannot be recorded; remove the observer");
  }
  // This run makes the stream, compiles device code and takes the memory.
  if (Status ok = Invoke(function); !ok) return ok;
  DropResult();  // the recorded run uses its memory
  return RecordUsed(function);
}

// Records on the one device that the VM has used.
Status VmImpl::RecordUsed(std::uint32_t function) {
  DeviceStreams::Stream* used = nullptr;
  for (std::uint32_t i = 0; i < streams.size(); ++i) {
    if (streams[i].api == nullptr) continue;
    if (used != nullptr) {
      return Fail(StatusCode::kUnsupported, "the VM has used several devices; a recording has one");
    }
    used = &streams[i];
  }
  if (used == nullptr) {
    return Fail(StatusCode::kUnsupported, "function {} gives no work to a device, there is nothing to record",
                FunctionName(function));
  }
  if (used->api->begin_recording == nullptr) {
    return Fail(StatusCode::kUnsupported, "device {}:{} cannot record", used->api->name,
                used->device.device_id);
  }
  return RecordRun(function, used);
}

Status VmImpl::RecordRun(std::uint32_t function, DeviceStreams::Stream* stream) {
  const DeviceApi& api = *stream->api;
  int code = api.begin_recording(api.context, stream->device, stream->stream);
  if (code != REWIRE_DEVICE_OK) return DeviceFailure(api, stream->device, code);
  streams.set_recording(true);
  interrupts.fetch_or(kInFlight, std::memory_order_relaxed);
  recorded_call = kNone;
  const bool leaves_work = std::exchange(async, true);
  Status status = RunOnce(function, InputsOf(function));
  async = leaves_work;
  streams.set_recording(false);
  interrupts.fetch_and(~kInFlight, std::memory_order_relaxed);
  open_ends &= static_cast<std::uint8_t>(~kStarted);
  const Recording made{nullptr, function, stream, stream->first, stream->last, Value()};
  const bool any = stream->busy;
  work.ForgetRecorded(stream);
  void* handle = nullptr;
  code = api.end_recording(api.context, stream->device, stream->stream, &handle);
  const Status ended = code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, stream->device, code);
  EndOfCall();
  const Status failed = streams.TakeFailure().status;
  if (status) status = failed;
  if (status) status = ended;
  if (status && !any) {
    status =
        Fail(StatusCode::kUnsupported, "function {} gives no work to a device, there is nothing to record",
             FunctionName(function));
  }
  if (!status) {
    if (ended) (void)api.destroy_recording(api.context, stream->device, handle);
    work.LetGoRecorded();
    DropResult();
    return status;
  }
  recording = made;
  recording.handle = handle;
  recording.result = shared_result;
  open_ends |= kRecorded;
  return {};
}

Status VmImpl::Replay() {
  if (const Status interrupted = CheckInterrupted(); !interrupted) {
    DropResult();
    return Fail(interrupted.code(), "{} before the recorded run of {}", interrupted.error().message(),
                FunctionName(recording.function));
  }
  Status status = GiveReplay();
  if (status) status = CheckInterrupted();
  if (!async || !status) {
    const Status finished = WaitForStarted();
    if (status) status = finished;
  }
  if (status) {
    if (!has_result()) shared_result = recording.result;
    return {};
  }
  DropResult();
  // After a failure of the device the next run is an ordinary one.
  if (status.code() != StatusCode::kCancelled && status.code() != StatusCode::kDeadlineExceeded)
    DropRecording();
  return status;
}

Status VmImpl::GiveReplay() {
  DeviceStreams::Stream& stream = *recording.stream;
  const DeviceApi& api = *stream.api;
  DeviceWork::Note(&stream, recording.first);
  DeviceWork::Note(&stream, recording.last);
  open_ends |= kStarted;
  const int code = api.replay(api.context, stream.device, recording.handle, stream.stream);
  if (code == REWIRE_DEVICE_OK) return {};
  return Forward(DeviceFailure(api, stream.device, code), "replaying the recorded run");
}

// True if a recording of the function has just been made, because automatic recording is on and the function
// has been run like this before.
bool VmImpl::RecordsRepeated(std::uint32_t function, const RewireFFIAny* run_inputs) {
  constexpr std::uint8_t kPlainRuns = 2;
  const bool set = run_inputs == InputsOf(function) && !detaches_outputs && !outputs.empty();
  if (!set || bounded() || observer != nullptr || (open_ends & kStarted) != 0) return false;
  // A replay writes where the recorded run wrote. So results that nobody has bound would change later.
  const OutputSlots& slots = outputs[function];
  if (slots.bound == 0 || slots.bound != slots.leaves.size()) return false;
  for (const OutputSlot& slot : slots.leaves) {
    if (slot.mode == OutputSlot::kAllocator) return false;
  }
  if (recording.function != function) repeats = 0;
  recording.function = function;
  if (++repeats <= kPlainRuns) return false;
  repeats = 0;
  DropResult();
  const Status recorded = RecordUsed(function);
  if (recorded) return true;
  // Whatever the reason was, it would be met again and again; but for what the host asked of this run alone.
  if (recorded.code() != StatusCode::kCancelled && recorded.code() != StatusCode::kDeadlineExceeded)
    open_ends &= static_cast<std::uint8_t>(~kAutomatic);
  return false;
}

void VmImpl::DropRecording() {
  repeats = 0;
  if ((open_ends & kRecorded) == 0) return;
  open_ends &= static_cast<std::uint8_t>(~kRecorded);
  DeviceStreams::Stream& stream = *recording.stream;
  const DeviceApi& api = *stream.api;
  if (stream.busy) {
    if (Status finished = WaitForStarted(); !finished) {
      late = finished;
      open_ends |= kLate;
    }
  }
  const int code = api.destroy_recording(api.context, stream.device, recording.handle);
  if (code != REWIRE_DEVICE_OK) DeviceStreams::NoteFailure(&stream, DeviceFailure(api, stream.device, code));
  heap.Unpin(recording.result.Release());
  work.LetGoRecorded();
}

}  // namespace rewire
