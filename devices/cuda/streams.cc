// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and calls of the host.
#include <utility>

#include "rewire/devices/cuda/state.h"

namespace rewire::cuda {
namespace {

// Calls one function of the driver in the device's context.
template <typename Call>
int In(void* context, DLDevice device, const char* function, const Call& call) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  return CodeOf(state.driver, function, call(state.driver));
}

// The same for what gives something back.
template <typename Call>
int InToRelease(void* context, DLDevice device, const char* function, const Call& call) {
  State& state = State::Of(context);
  const Entered entered = state.EnterToRelease(device);
  if (!entered) return REWIRE_DEVICE_FAILED;
  return CodeOf(state.driver, function, call(state.driver));
}

CUevent EventOf(void* event) { return static_cast<CUevent>(event); }

int MakeStream(void* context, DLDevice device, void** stream) {
  CUstream made = nullptr;
  const int code = In(context, device, "cuStreamCreate", [&](const CudaDriver& driver) {
    return driver.cuStreamCreate(&made, kStreamNonBlocking);
  });
  *stream = made;
  if (code != REWIRE_DEVICE_OK) return code;
  State& state = State::Of(context);
  state.pinned.AddStream();
  state.attached_events.AddStream(made);
  // The driver may give an address again that an earlier stream had.
  (void)state.stream_failures.Take(made);
  return code;
}

// Waits for the stream's work, and for the events that are attached to it.
CUresult SynchronizeAll(const State& state, void* stream) {
  const CUresult waiting = WaitForAttached(state, stream);
  return waiting != CUDA_SUCCESS ? waiting : state.driver.cuStreamSynchronize(StreamOf(stream));
}

int DestroyStream(void* context, DLDevice device, void* stream) {
  State& state = State::Of(context);
  const int waited = In(context, device, "cuStreamSynchronize",
                        [&](const CudaDriver&) { return SynchronizeAll(state, stream); });
  state.attached_events.RemoveStream(stream);
  const int code = InToRelease(context, device, "cuStreamDestroy", [&](const CudaDriver& driver) {
    return driver.cuStreamDestroy(StreamOf(stream));
  });
  (void)FreePinned(state, state.pinned.RemoveStream());
  return waited != REWIRE_DEVICE_OK ? waited : code;
}

int Synchronize(void* context, DLDevice device, void* stream) {
  const int code = In(context, device, "cuStreamSynchronize",
                      [&](const CudaDriver&) { return SynchronizeAll(State::Of(context), stream); });
  if (code != REWIRE_DEVICE_OK) return code;
  std::string failure = State::Of(context).stream_failures.Take(stream);
  return failure.empty() ? code : devices::FailWith(REWIRE_DEVICE_FAILED, std::move(failure));
}

int FailStream(void* context, DLDevice /*device*/, void* stream, const char* message) {
  State::Of(context).stream_failures.Note(stream, message);
  return REWIRE_DEVICE_OK;
}

int AttachEvent(void* context, DLDevice /*device*/, void* stream, void* event) {
  if (State::Of(context).attached_events.Attach(stream, EventOf(event))) return REWIRE_DEVICE_OK;
  return devices::FailWith(REWIRE_DEVICE_UNSUPPORTED,
                           "the stream is none of this library's, so events cannot be attached to it");
}

int DetachEvent(void* context, DLDevice /*device*/, void* stream, void* event) {
  State::Of(context).attached_events.Detach(stream, EventOf(event));
  return REWIRE_DEVICE_OK;
}

int MakeEvent(void* context, DLDevice device, void** event) {
  CUevent made = nullptr;
  const int code = In(context, device, "cuEventCreate", [&](const CudaDriver& driver) {
    return driver.cuEventCreate(&made, kEventDisableTiming);
  });
  *event = made;
  return code;
}

int DestroyEvent(void* context, DLDevice device, void* event) {
  return InToRelease(context, device, "cuEventDestroy",
                     [&](const CudaDriver& driver) { return driver.cuEventDestroy(EventOf(event)); });
}

int RecordEvent(void* context, DLDevice device, void* event, void* stream) {
  return In(context, device, "cuEventRecord", [&](const CudaDriver& driver) {
    const CUresult waiting = WaitForAttached(State::Of(context), stream);
    return waiting != CUDA_SUCCESS ? waiting : driver.cuEventRecord(EventOf(event), StreamOf(stream));
  });
}

int WaitEvent(void* context, DLDevice device, void* stream, void* event) {
  return In(context, device, "cuStreamWaitEvent", [&](const CudaDriver& driver) {
    return driver.cuStreamWaitEvent(StreamOf(stream), EventOf(event), 0);
  });
}

int QueryEvent(void* context, DLDevice device, void* event, std::int32_t* done) {
  *done = 1;
  return In(context, device, "cuEventQuery", [&](const CudaDriver& driver) {
    const CUresult answer = driver.cuEventQuery(EventOf(event));
    if (answer != CUDA_ERROR_NOT_READY) return answer;
    *done = 0;
    return CUDA_SUCCESS;
  });
}

int SynchronizeEvent(void* context, DLDevice device, void* event) {
  return In(context, device, "cuEventSynchronize",
            [&](const CudaDriver& driver) { return driver.cuEventSynchronize(EventOf(event)); });
}

int CallHost(void* context, DLDevice device, void* stream, void (*function)(void* data), void* data) {
  return In(context, device, "cuLaunchHostFunc", [&](const CudaDriver& driver) {
    return driver.cuLaunchHostFunc(StreamOf(stream), function, data);
  });
}

}  // namespace

CUresult WaitForAttached(const State& state, void* stream) {
  for (const CUevent event : state.attached_events.Of(stream)) {
    const CUresult waiting = state.driver.cuStreamWaitEvent(StreamOf(stream), event, 0);
    if (waiting != CUDA_SUCCESS) return waiting;
  }
  return CUDA_SUCCESS;
}

void AddStreams(RewireStreamWorkApi* with) {
  RewireDeviceApi* const api = &with->device;
  api->make_stream = MakeStream;
  api->destroy_stream = DestroyStream;
  api->synchronize = Synchronize;
  api->make_event = MakeEvent;
  api->destroy_event = DestroyEvent;
  api->record_event = RecordEvent;
  api->wait_event = WaitEvent;
  api->query_event = QueryEvent;
  api->synchronize_event = SynchronizeEvent;
  api->call_host = CallHost;
  with->fail_stream = FailStream;
  with->attach_event = AttachEvent;
  with->detach_event = DetachEvent;
}

}  // namespace rewire::cuda
