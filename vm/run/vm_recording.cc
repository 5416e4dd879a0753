// SPDX-License-Identifier: Apache-2.0
//
// A run that is recorded once and replayed: one call of the driver in place of one for each kernel.
//
// The recording has the addresses of the run. So the VM keeps its memory as that run left it, and every
// change of the VM ends the recording. What the host itself computes is not in it. So a run is refused in
// which the host computes anything but shapes.
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
  ReplaceResult({});  // the recorded run uses its memory
  return RecordRun(function, used);
}

Status VmImpl::RecordRun(std::uint32_t function, DeviceStreams::Stream* stream) {
  const DeviceApi& api = *stream->api;
  int code = api.begin_recording(api.context, stream->device, stream->stream);
  if (code != REWIRE_DEVICE_OK) return DeviceFailure(api, stream->device, code);
  streams.set_recording(true);
  interrupts.fetch_or(kInFlight, std::memory_order_relaxed);
  recorded_call = kNone;
  async = true;
  Status status = RunOnce(function, InputsOf(function));
  async = false;
  streams.set_recording(false);
  interrupts.fetch_and(~kInFlight, std::memory_order_relaxed);
  open_ends &= static_cast<std::uint8_t>(~kStarted);
  const Recording made{nullptr, function, stream, stream->first, stream->last};
  const bool any = stream->busy;
  const Status let_go = work.ForgetRecorded(stream);
  void* handle = nullptr;
  code = api.end_recording(api.context, stream->device, stream->stream, &handle);
  EndOfCall();
  if (status) status = let_go;
  if (status && code != REWIRE_DEVICE_OK) status = DeviceFailure(api, stream->device, code);
  if (status && !any) {
    status =
        Fail(StatusCode::kUnsupported, "function {} gives no work to a device, there is nothing to record",
             FunctionName(function));
  }
  if (!status) {
    if (code == REWIRE_DEVICE_OK) api.destroy_recording(api.context, stream->device, handle);
    ReplaceResult({});
    return status;
  }
  recording = made;
  recording.handle = handle;
  open_ends |= kRecorded;
  return {};
}

Status VmImpl::Replay() {
  if ((interrupts.load(std::memory_order_relaxed) & kHasDeadline) != 0 &&
      std::chrono::steady_clock::now() >= deadline) {
    return Fail(StatusCode::kDeadlineExceeded, "the deadline passed before the recorded run of {}",
                FunctionName(recording.function));
  }
  DeviceStreams::Stream& stream = *recording.stream;
  const DeviceApi& api = *stream.api;
  DeviceWork::Note(&stream, recording.first);
  DeviceWork::Note(&stream, recording.last);
  open_ends |= kStarted;
  const int code = api.replay(api.context, stream.device, recording.handle, stream.stream);
  if (code != REWIRE_DEVICE_OK) {
    const Status failed = DeviceFailure(api, stream.device, code);
    (void)WaitForStarted();
    return Forward(failed, "replaying the recorded run");
  }
  return async ? Status() : WaitForStarted();
}

void VmImpl::DropRecording() {
  if ((open_ends & kRecorded) == 0) return;
  open_ends &= static_cast<std::uint8_t>(~kRecorded);
  DeviceStreams::Stream& stream = *recording.stream;
  const DeviceApi& api = *stream.api;
  if (stream.busy) {
    if (Status finished = WaitForStarted(); !finished) {
      late = std::move(finished);
      open_ends |= kLate;
    }
  }
  api.destroy_recording(api.context, stream.device, recording.handle);
}

}  // namespace rewire
