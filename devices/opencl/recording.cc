// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/recording.h"

#include <algorithm>
#include <utility>

#include "rewire/devices/opencl/failure.h"
#include "rewire/devices/opencl/state.h"

namespace rewire::opencl {
namespace {

// Fewer commands than this are enqueued as fast one by one.
constexpr std::size_t kFewest = 2;

}  // namespace

int Command::Enqueue(const Driver& driver, cl_command_queue queue) const {
  switch (kind) {
    case Kind::kLaunch:
      return CodeOf("clEnqueueNDRangeKernel", driver.clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global,
                                                                            local, 0, nullptr, nullptr));
    case Kind::kCopy:
      return CodeOf("clEnqueueCopyBuffer", driver.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset,
                                                                      bytes, 0, nullptr, nullptr));
    case Kind::kFill:
      return CodeOf("clEnqueueFillBuffer", driver.clEnqueueFillBuffer(queue, to, pattern, pattern_bytes,
                                                                      to_offset, bytes, 0, nullptr, nullptr));
    case Kind::kWrite:
      return CodeOf("clEnqueueWriteBuffer", driver.clEnqueueWriteBuffer(queue, to, CL_FALSE, to_offset, bytes,
                                                                        host, 0, nullptr, nullptr));
    case Kind::kRead:
      return CodeOf("clEnqueueReadBuffer", driver.clEnqueueReadBuffer(queue, from, CL_FALSE, from_offset,
                                                                      bytes, host, 0, nullptr, nullptr));
  }
  return REWIRE_DEVICE_FAILED;
}

Recording::~Recording() {
  for (const Step& step : steps_) {
    if (step.buffer != nullptr) buffers_->release(step.buffer);
  }
  for (const Command& command : commands_) {
    if (command.kernel != nullptr) driver_.clReleaseKernel(command.kernel);
  }
  for (cl_mem memory : held_) driver_.clReleaseMemObject(memory);
}

int Recording::Hold(cl_mem memory) {
  if (memory == nullptr || std::find(held_.begin(), held_.end(), memory) != held_.end()) {
    return REWIRE_DEVICE_OK;
  }
  if (const cl_int error = driver_.clRetainMemObject(memory); error != CL_SUCCESS) {
    return FailIn("clRetainMemObject", error);
  }
  held_.push_back(memory);
  return REWIRE_DEVICE_OK;
}

int Recording::Add(const Command& command, const std::vector<cl_mem>& arguments) {
  commands_.push_back(command);
  std::vector<cl_mem> needed = arguments;
  needed.insert(needed.end(), {command.from, command.to});
  for (cl_mem memory : needed) {
    if (const int code = Hold(memory); code != REWIRE_DEVICE_OK) return code;
  }
  return REWIRE_DEVICE_OK;
}

int Recording::Finish(cl_command_queue queue) {
  for (std::size_t i = 0; i < commands_.size();) {
    std::size_t end = i;
    while (end < commands_.size() && commands_[end].OnDeviceAlone()) ++end;
    if (buffers_ != nullptr && end - i >= kFewest) {
      if (const int code = MakeBuffer(queue, i, end); code != REWIRE_DEVICE_OK) return code;
      i = end;
    } else {
      end = std::max(end, i + 1);
      for (; i < end; ++i) steps_.push_back({nullptr, i});
    }
  }
  return REWIRE_DEVICE_OK;
}

int Recording::MakeBuffer(cl_command_queue queue, std::size_t first, std::size_t end) {
  const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                         CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int error = CL_SUCCESS;
  cl_command_buffer_khr buffer = buffers_->create(1, &queue, properties, &error);
  if (error != CL_SUCCESS) return FailIn("clCreateCommandBufferKHR", error);
  steps_.push_back({buffer, first});
  for (std::size_t i = first; i < end; ++i) {
    const Command& is = commands_[i];
    // The queue works in order, and so do its command buffers.
    if (is.kind == Command::Kind::kLaunch) {
      error = buffers_->launch(buffer, nullptr, nullptr, is.kernel, 3, nullptr, is.global, is.local, 0,
                               nullptr, nullptr, nullptr);
      if (error != CL_SUCCESS) return FailIn("clCommandNDRangeKernelKHR", error);
    } else if (is.kind == Command::Kind::kCopy) {
      error = buffers_->copy(buffer, nullptr, is.from, is.to, is.from_offset, is.to_offset, is.bytes, 0,
                             nullptr, nullptr, nullptr);
      if (error != CL_SUCCESS) return FailIn("clCommandCopyBufferKHR", error);
    } else {
      error = buffers_->fill(buffer, nullptr, is.to, is.pattern, is.pattern_bytes, is.to_offset, is.bytes, 0,
                             nullptr, nullptr, nullptr);
      if (error != CL_SUCCESS) return FailIn("clCommandFillBufferKHR", error);
    }
  }
  return CodeOf("clFinalizeCommandBufferKHR", buffers_->finalize(buffer));
}

int Recording::Replay(cl_command_queue queue) const {
  for (const Step& step : steps_) {
    const int code = step.buffer != nullptr
                         ? CodeOf("clEnqueueCommandBufferKHR",
                                  buffers_->enqueue(1, &queue, step.buffer, 0, nullptr, nullptr))
                         : commands_[step.command].Enqueue(driver_, queue);
    if (code != REWIRE_DEVICE_OK) return code;
  }
  return REWIRE_DEVICE_OK;
}

Recording* OpenRecordings::FindSlowly(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = open_.find(queue);
  return entry == open_.end() ? nullptr : entry->second.get();
}

bool OpenRecordings::Begin(cl_command_queue queue, std::unique_ptr<Recording> recording) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!open_.try_emplace(queue, std::move(recording)).second) return false;
  count_.fetch_add(1, std::memory_order_release);
  return true;
}

std::unique_ptr<Recording> OpenRecordings::End(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = open_.find(queue);
  if (entry == open_.end()) return nullptr;
  std::unique_ptr<Recording> ended = std::move(entry->second);
  open_.erase(entry);
  count_.fetch_sub(1, std::memory_order_release);
  return ended;
}

namespace {

int BeginRecording(void* context, DLDevice device, void* stream) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  const CommandBuffers* buffers =
      found->command_buffers.create != nullptr ? &found->command_buffers : nullptr;
  if (state.recordings.Begin(state.QueueOf(device, stream),
                             std::make_unique<Recording>(state.driver, buffers))) {
    return REWIRE_DEVICE_OK;
  }
  return FailWith(REWIRE_DEVICE_FAILED, "the queue is recorded already; end that recording first");
}

int EndRecording(void* context, DLDevice device, void* stream, void** recording) {
  State& state = State::Of(context);
  if (state.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  cl_command_queue queue = state.QueueOf(device, stream);
  std::unique_ptr<Recording> made = state.recordings.End(queue);
  if (made == nullptr) return FailWith(REWIRE_DEVICE_FAILED, "the queue is not recorded");
  const int code = made->Finish(queue);
  if (code == REWIRE_DEVICE_OK) *recording = made.release();
  return code;
}

int ReplayRecording(void* context, DLDevice device, void* recording, void* stream) {
  State& state = State::Of(context);
  if (state.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  return static_cast<const Recording*>(recording)->Replay(state.QueueOf(device, stream));
}

int DestroyRecording(void*, DLDevice, void* recording) {
  delete static_cast<Recording*>(recording);
  return REWIRE_DEVICE_OK;
}

}  // namespace

void AddRecording(RewireDeviceApi* api) {
  api->begin_recording = BeginRecording;
  api->end_recording = EndRecording;
  api->replay = ReplayRecording;
  api->destroy_recording = DestroyRecording;
}

}  // namespace rewire::opencl
