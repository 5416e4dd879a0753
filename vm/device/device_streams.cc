// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/device/device_streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rewire/executable_format/instruction_text.h"

namespace rewire {

DeviceStreams::~DeviceStreams() {
  for (Stream& stream : streams_) {
    if (stream.api == nullptr) continue;
    const DeviceApi& api = *stream.api;
    if (stream.event != nullptr) api.destroy_event(api.context, stream.device, stream.event);
    if (stream.stream != nullptr && stream.own) api.destroy_stream(api.context, stream.device, stream.stream);
  }
}

DeviceStreams::Stream* DeviceStreams::Get(std::uint32_t index, Status* failed) {
  if (streams_.empty()) {
    std::uint32_t count = 0;
    for (const LinkedDevice& device : devices_) count = std::max(count, device.stream + 1);
    for (std::uint32_t i = 0; i < count; ++i) streams_.push_back({});
  }
  Stream& stream = streams_[index];
  if (stream.api != nullptr) return &stream;
  if (recording_) {  // its work would be done once, and not in the replays
    *failed = Fail(StatusCode::kUnsupported, "the run cannot be recorded: it uses a further device");
    return nullptr;
  }
  for (const LinkedDevice& device : devices_) {
    if (device.api == nullptr || device.stream != index) continue;
    if (device.api->make_stream != nullptr) {
      const int code = device.api->make_stream(device.api->context, device.device, &stream.stream);
      if (code != REWIRE_DEVICE_OK) {
        *failed = DeviceFailure(*device.api, device.device, code);
        return nullptr;
      }
    }
    stream.api = device.api;
    stream.device = device.device;
    break;
  }
  return &stream;
}

const LinkedDevice* DeviceStreams::Entry(DLDevice device) const {
  for (const LinkedDevice& entry : devices_) {
    if (IsSameDevice(entry.device, device)) return &entry;
  }
  return nullptr;
}

DeviceStreams::Stream* DeviceStreams::Find(DLDevice device, Status* failed) {
  const LinkedDevice* entry = Entry(device);
  if (entry != nullptr && entry->api != nullptr) return Get(entry->stream, failed);
  const std::string name = DeviceText({DeviceTypeOf(device), device.device_id, {}});
  *failed = entry != nullptr
                ? Fail(StatusCode::kInvalidArgument, "device {} has no streams", name)
                : Fail(StatusCode::kInvalidArgument, "the executable does not name device {}", name);
  return nullptr;
}

// A driver may fail to wait before it has waited. Memory that the work uses is free only when it is done, so
// the VM waits once more.
Status DeviceStreams::Synchronize(const Stream& stream) {
  const DeviceApi& api = *stream.api;
  const int code = api.synchronize(api.context, stream.device, stream.stream);
  if (code == REWIRE_DEVICE_OK) return {};
  Status failure = DeviceFailure(api, stream.device, code);
  if (code != REWIRE_DEVICE_LOST) (void)api.synchronize(api.context, stream.device, stream.stream);
  return failure;
}

void DeviceStreams::NoteFailure(Stream* stream, const Status& status) {
  if (!stream->failure.status) return;
  stream->failure = {status, stream->busy, stream->first, stream->last};
}

DeviceStreams::Failure DeviceStreams::TakeFailure() {
  Failure taken;
  for (Stream& stream : streams_) {
    if (stream.failure.status) continue;
    const Failure kept = std::exchange(stream.failure, Failure());
    if (taken.status) taken = kept;
  }
  return taken;
}

Status DeviceStreams::MarkEvent(Stream* stream) {
  const DeviceApi& api = *stream->api;
  int code = REWIRE_DEVICE_OK;
  if (stream->event == nullptr) code = api.make_event(api.context, stream->device, &stream->event);
  if (code == REWIRE_DEVICE_OK) {
    code = api.record_event(api.context, stream->device, stream->event, stream->stream);
  }
  return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, stream->device, code);
}

Status DeviceStreams::Use(Stream* stream, void* callers) {
  const DeviceApi& api = *stream->api;
  if (api.make_stream == nullptr) {
    return Fail(StatusCode::kUnsupported, "device {}:{} has no streams but the default one", api.name,
                stream->device.device_id);
  }
  if (stream->own && stream->stream != nullptr) {
    const int code = api.destroy_stream(api.context, stream->device, stream->stream);
    if (code != REWIRE_DEVICE_OK) return DeviceFailure(api, stream->device, code);
  }
  stream->stream = callers;
  stream->own = false;
  return {};
}

Status DeviceStreams::Order(Stream* done, Stream* waiting) {
  const DeviceApi& api = *done->api;
  if (api.make_event == nullptr) return Synchronize(*done);
  if (Status marked = MarkEvent(done); !marked) return marked;
  const int code = api.wait_event(api.context, waiting->device, waiting->stream, done->event);
  return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, waiting->device, code);
}

}  // namespace rewire
