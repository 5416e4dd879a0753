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

  // Work that went wrong, and who gave it to its device.
  struct Failure {
    Status status;  // a success: there is no failure
    bool placed = false;
    Source first;  // if `placed`
    Source last;
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
    Failure failure;  // the first one since TakeFailure
  };

  // The stream of a device of the table, made now if it is new. `index` is LinkedDevice::stream. Null after a
  // failure, with `*failed` set.
  Stream* Get(std::uint32_t index, Status* failed);
  // The same for a device. Null after a failure, with `*failed` set. A device without a stream, which is the
  // host or none of the table's, is such a failure (kInvalidArgument). So null never stands for the host.
  Stream* Find(DLDevice device, Status* failed);
  // The stream of a device if it has been made, else null.
  Stream* FindMade(DLDevice device) {
    for (Stream& stream : streams_) {
      if (stream.api != nullptr && IsSameDevice(stream.device, device)) return &stream;
    }
    return nullptr;
  }
  // The entry of a device in the table; null if there is none.
  const LinkedDevice* Entry(DLDevice device) const;

  // Waits for what the stream has been given. All waits of the VM for a stream are made here.
  static Status Synchronize(const Stream& stream);
  // Notes a failure of what the stream has been given. The stream keeps the first one.
  static void NoteFailure(Stream* stream, const Status& status);
  // Gives away the first failure that a stream keeps. All streams then keep none. Every end of a run takes
  // it, so that no failure is lost.
  Failure TakeFailure();

  // Lets later work of `waiting` start when what `done` has so far is done.
  static Status Order(Stream* done, Stream* waiting);
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
