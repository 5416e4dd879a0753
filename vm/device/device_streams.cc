// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/device/device_streams.h"

#include <algorithm>

namespace rewire {

DeviceStreams::~DeviceStreams() {
  for (Stream& stream : streams_) {
    if (stream.api == nullptr) continue;
    const DeviceApi& api = *stream.api;
    if (stream.event != nullptr) api.destroy_event(api.context, stream.device, stream.event);
    if (stream.stream != nullptr) api.destroy_stream(api.context, stream.device, stream.stream);
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

Status DeviceStreams::Order(Stream* done, Stream* waiting) {
  const DeviceApi& api = *done->api;
  if (api.make_event == nullptr) {
    const int code = api.synchronize(api.context, done->device, done->stream);
    return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, done->device, code);
  }
  int code = REWIRE_DEVICE_OK;
  if (done->event == nullptr) code = api.make_event(api.context, done->device, &done->event);
  if (code == REWIRE_DEVICE_OK) {
    code = api.record_event(api.context, done->device, done->event, done->stream);
  }
  if (code != REWIRE_DEVICE_OK) return DeviceFailure(api, done->device, code);
  code = api.wait_event(api.context, waiting->device, waiting->stream, done->event);
  return code == REWIRE_DEVICE_OK ? Status() : DeviceFailure(api, waiting->device, code);
}

}  // namespace rewire
