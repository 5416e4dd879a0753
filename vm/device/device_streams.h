// SPDX-License-Identifier: Apache-2.0
//
// DeviceStreams: the streams of one VM, one for each device that its executable names.
//
// All work of the VM on a device goes through that stream. So a block of device memory that the VM has let go
// can be used again at once: the later work runs after the earlier.
//
// One thread at a time.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/device/linked_device.h"

namespace rewire {

class DeviceStreams {
 public:
  // `devices` is a Program's table and must outlive this.
  explicit DeviceStreams(Span<const LinkedDevice> devices) : devices_(devices) {}
  ~DeviceStreams();
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  // Part of the code that gave work to a stream since the host last waited for it: words in the code of one
  // function, or of several.
  struct Source {
    std::uint32_t function = 0;
    std::uint32_t pc = 0;
  };

  struct Stream {
    const DeviceApi* api = nullptr;  // null until the stream is made
    DLDevice device = kHost;
    void* stream = nullptr;
    void* event = nullptr;  // of the stream's own, for other streams to wait for; made when needed
    bool own = true;        // false: the caller's stream, which outlives its use here
    bool busy = false;      // it may have work that the host has not waited for
    Source first;           // of that work
    Source last;
  };

  // The stream of a device of the table, made now if it is new. `index` is LinkedDevice::stream. Null after a
  // failure, with `*failed` set.
  Stream* Get(std::uint32_t index, Status* failed);
  // The same for a device. Null without a failure if the table has no such device, or if it is the host.
  Stream* Find(DLDevice device, Status* failed);
  // The stream of a device if it has been made, else null.
  Stream* FindMade(DLDevice device) {
    for (Stream& stream : streams_) {
      if (stream.api != nullptr && IsSameDevice(stream.device, device)) return &stream;
    }
    return nullptr;
  }
  // The handle of the stream that memory of this kind is taken and freed in. NULL if there is none yet.
  void* HandleOf(const DeviceApi* api, DLDevice device) const;

  // Lets later work of `waiting` start when what `done` has so far is done.
  Status Order(Stream* done, Stream* waiting);
  // Sets the stream's event to what the stream has so far. Not for devices without events.
  static Status MarkEvent(Stream* stream);
  // Gives later work to the caller's stream. The earlier stream has no work.
  static Status Use(Stream* stream, void* callers);

  // While a run is recorded, the host neither waits for devices nor takes memory of them.
  bool recording() const { return recording_; }
  void set_recording(bool recording) { recording_ = recording; }

  std::uint32_t size() const { return streams_.size(); }
  Stream& operator[](std::uint32_t i) { return streams_[i]; }

 private:
  Span<const LinkedDevice> devices_;
  Array<Stream> streams_;  // by LinkedDevice::stream; empty until a device is used
  bool recording_ = false;
};

}  // namespace rewire
