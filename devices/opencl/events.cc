// SPDX-License-Identifier: Apache-2.0
//
// Streams are queues that work in order; events are markers in them.
#include "rewire/devices/opencl/state.h"

namespace rewire::opencl {
namespace {

// A point in a queue; null before it was first recorded. One thread uses an event at a time.
struct Event {
  cl_event marker = nullptr;
};

int MakeStream(void* context, DLDevice device, void** stream) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  cl_int error = CL_SUCCESS;
  *stream = state.driver.clCreateCommandQueue(found->context, found->id, 0, &error);
  return CodeOf("clCreateCommandQueue", error);
}

int DestroyStream(void* context, DLDevice, void* stream) {
  const Driver& driver = State::Of(context).driver;
  auto* queue = static_cast<cl_command_queue>(stream);
  driver.clFinish(queue);
  return CodeOf("clReleaseCommandQueue", driver.clReleaseCommandQueue(queue));
}

int Synchronize(void* context, DLDevice device, void* stream) {
  State& state = State::Of(context);
  if (state.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  cl_command_queue queue = state.QueueOf(device, stream);
  if (const int code = state.RefuseIfRecorded(queue, "waiting for the queue"); code != REWIRE_DEVICE_OK)
    return code;
  return CodeOf("clFinish", state.driver.clFinish(queue));
}

int MakeEvent(void*, DLDevice, void** event) {
  *event = new Event();
  return REWIRE_DEVICE_OK;
}

int DestroyEvent(void* context, DLDevice, void* event) {
  auto* own = static_cast<Event*>(event);
  if (own->marker != nullptr) State::Of(context).driver.clReleaseEvent(own->marker);
  delete own;
  return REWIRE_DEVICE_OK;
}

int RecordEvent(void* context, DLDevice device, void* event, void* stream) {
  State& state = State::Of(context);
  if (state.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  auto* own = static_cast<Event*>(event);
  cl_event marker = nullptr;
  cl_command_queue queue = state.QueueOf(device, stream);
  if (const int code = state.RefuseIfRecorded(queue, "an event"); code != REWIRE_DEVICE_OK) return code;
  const cl_int error = state.driver.clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker);
  if (error != CL_SUCCESS) return FailIn("clEnqueueMarkerWithWaitList", error);
  if (own->marker != nullptr) state.driver.clReleaseEvent(own->marker);
  own->marker = marker;
  // Another queue may wait for it only once it has been handed to the device.
  return CodeOf("clFlush", state.driver.clFlush(queue));
}

int WaitEvent(void* context, DLDevice device, void* stream, void* event) {
  State& state = State::Of(context);
  if (state.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  const auto* own = static_cast<const Event*>(event);
  cl_command_queue queue = state.QueueOf(device, stream);
  if (const int code = state.RefuseIfRecorded(queue, "a wait for an event"); code != REWIRE_DEVICE_OK)
    return code;
  if (own->marker == nullptr) return REWIRE_DEVICE_OK;
  return CodeOf("clEnqueueBarrierWithWaitList",
                state.driver.clEnqueueBarrierWithWaitList(queue, 1, &own->marker, nullptr));
}

int QueryEvent(void* context, DLDevice, void* event, std::int32_t* done) {
  const auto* own = static_cast<const Event*>(event);
  *done = 1;
  if (own->marker == nullptr) return REWIRE_DEVICE_OK;
  cl_int status = CL_COMPLETE;
  const cl_int error = State::Of(context).driver.clGetEventInfo(
      own->marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  if (error != CL_SUCCESS) return FailIn("clGetEventInfo", error);
  if (status < 0) return FailIn("the queue's work", status);
  *done = status == CL_COMPLETE ? 1 : 0;
  return REWIRE_DEVICE_OK;
}

int SynchronizeEvent(void* context, DLDevice, void* event) {
  const auto* own = static_cast<const Event*>(event);
  if (own->marker == nullptr) return REWIRE_DEVICE_OK;
  return CodeOf("clWaitForEvents", State::Of(context).driver.clWaitForEvents(1, &own->marker));
}

struct HostCall {
  void (*function)(void* data);
  void* data;
};

void CL_CALLBACK CallHostNow(cl_event, cl_int, void* data) {
  const auto* call = static_cast<const HostCall*>(data);
  call->function(call->data);
  delete call;
}

int CallHost(void* context, DLDevice device, void* stream, void (*function)(void* data), void* data) {
  State& state = State::Of(context);
  if (state.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  cl_event marker = nullptr;
  cl_command_queue queue = state.QueueOf(device, stream);
  if (const int code = state.RefuseIfRecorded(queue, "a call of the host"); code != REWIRE_DEVICE_OK)
    return code;
  cl_int error = state.driver.clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker);
  if (error != CL_SUCCESS) return FailIn("clEnqueueMarkerWithWaitList", error);
  auto* call = new HostCall{function, data};
  error = state.driver.clSetEventCallback(marker, CL_COMPLETE, CallHostNow, call);
  state.driver.clReleaseEvent(marker);
  if (error != CL_SUCCESS) {
    delete call;
    return FailIn("clSetEventCallback", error);
  }
  return CodeOf("clFlush", state.driver.clFlush(queue));
}

}  // namespace

void AddEvents(RewireDeviceApi* api) {
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
}

}  // namespace rewire::opencl
