// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: streams, events, host functions.
#include <memory>

#include "rewire/tests/simulated_cuda/simulator.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace rewire::simulated_cuda {
namespace {

CUresult CreateStream(const char* function, CUstream* handle, unsigned flags, int priority) {
  Call call(function);
  if (call.Fails()) return call.result();
  if (handle == nullptr || (flags & ~kStreamNonBlocking) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_unique<Stream>();
  stream->device = call.device();
  stream->timeline = call.simulator().NewTimeline();
  stream->flags = flags;
  stream->priority = priority;
  *handle = reinterpret_cast<CUstream>(stream.get());
  call.simulator().streams[*handle] = std::move(stream);
  return CUDA_SUCCESS;
}

Event* FindEvent(const Call& call, CUevent handle) {
  const auto found = call.simulator().events.find(handle);
  return found == call.simulator().events.end() ? nullptr : found->second.get();
}

}  // namespace

REWIRE_SIMULATED_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return CreateStream("cuStreamCreate", stream, flags, 0);
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return CreateStream("cuStreamCreateWithPriority", stream, flags, priority);
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  Call call("cuStreamDestroy", Call::kRelease);
  const auto found = call.simulator().streams.find(handle);
  if (found == call.simulator().streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  // Work that is queued is still run.
  call.simulator().EndTimeline(found->second->timeline);
  const std::unique_ptr<Stream> ended = std::move(found->second);
  call.simulator().streams.erase(found);
  if (ended->capture != nullptr) ended->capture->invalid = true;
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  Call call("cuStreamSynchronize");
  if (call.Fails()) return call.result();
  const Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Device* device = stream->device;
  call.simulator().WaitForStream(call.lock(), *stream);
  return device->lost;
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamQuery(CUstream handle) {
  Call call("cuStreamQuery");
  if (call.Fails()) return call.result();
  const Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream->device->lost != CUDA_SUCCESS) return stream->device->lost;
  if (!call.simulator().IsDone(stream->timeline->now())) return CUDA_ERROR_NOT_READY;
  call.simulator().HostKnows(stream->timeline->clock, stream->timeline->end);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned) {
  Call call("cuStreamWaitEvent");
  if (call.Fails()) return call.result();
  Stream* stream = call.FindStream(handle);
  Event* event = FindEvent(call, event_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!event->recorded) return CUDA_SUCCESS;
  if (event->capture != nullptr) {
    // The stream joins the capture that the event was recorded in.
    if (event->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (call.simulator().captures.count(event->capture.get()) == 0) return CUDA_ERROR_CAPTURED_EVENT;
    if (stream->capture != nullptr && stream->capture != event->capture) {
      stream->capture->invalid = event->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream == &stream->device->legacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    stream->capture = event->capture;
    for (const std::size_t node : event->capture_last) stream->capture_last.push_back(node);
    return CUDA_SUCCESS;
  }
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  call.simulator().OrderAfter(stream, event->moment, event->clock, event->time);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user_data) {
  Call call("cuLaunchHostFunc");
  if (call.Fails()) return call.result();
  Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = 'f';
  work.name = "host function";
  work.run = [function, user_data] {
    CurrentThread().in_host_function = true;
    function(user_data);
    CurrentThread().in_host_function = false;
    return CUDA_SUCCESS;
  };
  return call.simulator().Enqueue(stream, std::move(work));
}

REWIRE_SIMULATED_EXPORT CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  Call call("cuEventCreate");
  if (call.Fails()) return call.result();
  if (handle == nullptr || (flags & ~(kEventBlockingSync | kEventDisableTiming)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->flags = flags;
  event->device = call.device();
  *handle = reinterpret_cast<CUevent>(event.get());
  call.simulator().events[*handle] = std::move(event);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
  Call call("cuEventDestroy", Call::kRelease);
  return call.Returns(call.simulator().events.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

REWIRE_SIMULATED_EXPORT CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  Call call("cuEventRecord");
  if (call.Fails()) return call.result();
  Event* event = FindEvent(call, handle);
  Stream* stream = call.FindStream(stream_handle);
  if (event == nullptr || stream == nullptr || event->device != stream->device)
    return CUDA_ERROR_INVALID_HANDLE;
  call.simulator().RecordEvent(event, stream);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuEventQuery(CUevent handle) {
  Call call("cuEventQuery");
  if (call.Fails()) return call.result();
  const Event* event = FindEvent(call, handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (event->device->lost != CUDA_SUCCESS) return event->device->lost;
  if (event->recorded && !call.simulator().IsDone(event->moment)) return CUDA_ERROR_NOT_READY;
  call.simulator().HostKnows(event->clock, event->time);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuEventSynchronize(CUevent handle) {
  Call call("cuEventSynchronize");
  if (call.Fails()) return call.result();
  const Event* event = FindEvent(call, handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  const Device* device = event->device;
  if (event->recorded) call.simulator().Wait(call.lock(), event->moment, event->clock, event->time);
  return device->lost;
}

REWIRE_SIMULATED_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  Call call("cuEventElapsedTime");
  if (call.Fails()) return call.result();
  const Event* first = FindEvent(call, from);
  const Event* last = FindEvent(call, to);
  if (first == nullptr || last == nullptr || !first->recorded || !last->recorded ||
      ((first->flags | last->flags) & kEventDisableTiming) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!call.simulator().IsDone(first->moment) || !call.simulator().IsDone(last->moment))
    return CUDA_ERROR_NOT_READY;
  *milliseconds =
      static_cast<float>((static_cast<double>(last->time) - static_cast<double>(first->time)) * 1e-6);
  return CUDA_SUCCESS;
}

}  // namespace rewire::simulated_cuda

// NOLINTEND(readability-identifier-naming)
