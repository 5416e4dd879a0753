// SPDX-License-Identifier: Apache-2.0
//
// Runs whose work on devices goes on after the call, and the streams and events that tie it to work of the
// caller's.
#include <utility>

#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/run/machine.h"

namespace rewire {

// In memory of a fixed size the next run begins with the block as it was, so such a run is waited for.
Status Machine::InvokeAsync(std::uint32_t function) {
  async = !memory.bounded();
  Status status = Invoke(function);
  async = false;
  return status;
}

// A cancellation ends the wait as it ends a run.
Status Machine::Wait() {
  interrupts.BeginRun();
  Status finished = WaitForStarted();
  interrupts.EndRun();
  return finished;
}

// Waits for what was started, and tells a failure that nobody was told of.
Status Machine::WaitForStarted() {
  Status first = std::exchange(late, Status());
  open_ends &= static_cast<std::uint8_t>(~kLate);
  if ((open_ends & kStarted) == 0) return first;
  Status status;
  Status finished = Interpreter(*this, &status).WaitForStarted();
  if (!finished) DropResult();
  return first ? finished : first;
}

// Before anything of the VM is changed.
void Machine::Settle() {
  if (Status finished = WaitForStarted(); !finished) {
    late = finished;
    open_ends |= kLate;
  }
  recorder.Drop();
}

// At the beginning of a run, after runs that have left something behind.
Status Machine::ContinueRun(std::uint32_t function, const RewireFFIAny* run_inputs, bool* done) {
  *done = true;
  if ((open_ends & kLate) != 0) return Forward(WaitForStarted(), "work of an earlier run");
  if ((open_ends & kRecorded) != 0) {
    if (recorder.IsOf(function) && run_inputs == inputs.Of(function) && !detaches_outputs) {
      return recorder.Replay();
    }
    recorder.Drop();
  }
  if ((open_ends & kAutomatic) != 0 && recorder.RecordRepeated(function, run_inputs))
    return recorder.Replay();
  *done = false;
  return {};
}

// A device's stream of this VM.
Result<DeviceStreams::Stream*> Machine::StreamOf(DLDevice device, bool events) {
  Status failed;
  DeviceStreams::Stream* stream = streams.Find(device, &failed);
  if (stream == nullptr) return Forward(failed);
  if (events && stream->api->make_event == nullptr) {
    return Fail(StatusCode::kUnsupported, "device {}:{} has no events", stream->api->name, device.device_id);
  }
  return stream;
}

Status Machine::UseStream(DLDevice device, void* stream) {
  const Result<DeviceStreams::Stream*> found = StreamOf(device, false);
  return found ? DeviceStreams::Use(*found, stream) : Forward(found);
}

Result<void*> Machine::DoneEvent(DLDevice device) {
  const Result<DeviceStreams::Stream*> found = StreamOf(device, true);
  if (!found) return Forward(found);
  if (Status marked = DeviceStreams::MarkEvent(*found); !marked) return Forward(marked);
  return (*found)->event;
}

Status Machine::WaitForEvent(DLDevice device, void* event) {
  const Result<DeviceStreams::Stream*> found = StreamOf(device, true);
  if (!found) return Forward(found);
  const DeviceApi& api = *(*found)->api;
  const int code = api.wait_event(api.context, device, (*found)->stream, event);
  return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, device, code);
}

}  // namespace rewire
