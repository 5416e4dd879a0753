// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/device/device_streams.h"

#include <algorithm>

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

DeviceStreams::Stream* DeviceStreams::Find(DLDevice device, Status* failed) {
  for (const LinkedDevice& entry : devices_) {
    if (entry.api != nullptr && IsSameDevice(entry.device, device)) return Get(entry.stream, failed);
  }
  return nullptr;
}

void* DeviceStreams::HandleOf(const DeviceApi* api, DLDevice device) const {
  for (const Stream& stream : streams_) {
    if (stream.api == api && IsSameDevice(stream.device, device)) return stream.stream;
  }
  return nullptr;
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
  if (api.make_event == nullptr) {
    const int code = api.synchronize(api.context, done->device, done->stream);
    return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, done->device, code);
  }
  if (Status marked = MarkEvent(done); !marked) return marked;
  const int code = api.wait_event(api.context, waiting->device, waiting->stream, done->event);
  return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, waiting->device, code);
}

}  // namespace rewire
