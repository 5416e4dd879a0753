// SPDX-License-Identifier: Apache-2.0
//
// DeviceWork: what one VM has given to its devices and not yet waited for.
//
// A copy is not done when the instruction returns that asked for it. Until then, memory of the host that it
// reads or writes is in flight. The host must not write such memory, nor read what is being written there. So
// it waits before a kernel on the host uses the memory, and before the VM's heap takes it back.
//
// One thread at a time.
#pragma once

#include <cstdint>

#include "rewire/vm/device/device_streams.h"
#include "rewire/vm/device_waits.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/value/memory_range.h"

namespace rewire {

class DeviceWork {
 public:
  using Stream = DeviceStreams::Stream;
  using Source = DeviceStreams::Source;

  // A copy either reads or writes memory of the host.
  enum class Use : std::uint8_t { kReads, kWrites };

  DeviceWork(DeviceStreams* streams, ObjectHeap* heap, MemoryAccount* home)
      : streams_(*streams), heap_(*heap), home_(home) {
    heap->set_device_hooks({OnRelease, OnShare, OnDrop, this});
  }

  // Notes that the stream has got work, and who gave it.
  static void Note(Stream* stream, Source source);
  // Notes that a copy on `stream` uses memory of the host. `tensor` is the tensor over it; null for memory
  // that stays anyway until the call returns. False if there is no room for the note; the caller then waits.
  // `staging`, if there is one, is a tensor whose bytes the copy writes in place of the memory. Once the copy
  // is done, they are moved to the memory. The caller's reference to it passes to this, if true is returned.
  bool Keep(Stream* stream, Use use, const MemoryRange& memory, TensorObject* tensor,
            TensorObject* staging = nullptr);

  // Whether the end of a run has something to do: a stream may have work, or keeps a failure.
  bool open() const {
    for (std::uint32_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].busy || !streams_[i].failure.status) return true;
    }
    return false;
  }
  bool in_flight() const { return count_ != 0; }
  // The stream with a copy that keeps the host from this use of the memory; null if there is none.
  Stream* Blocking(Use use, const MemoryRange& memory);

  // Waits for one stream, or for all, and lets go what was kept for it. The stream keeps a failure until
  // DeviceStreams::TakeFailure.
  void Wait(Stream* stream, WaitCause cause);
  void WaitForAll(WaitCause cause);
  // A wait becomes this error while a run is recorded.
  [[gnu::cold]] static Status RefuseWait(WaitCause cause);

  // The end of a recording. What recorded copies read is held until LetGoRecorded, which must be called
  // before the next run that is no replay.
  void ForgetRecorded(Stream* stream);
  void LetGoRecorded();

  const WaitCounts& waits() const { return waits_; }

  // Bytes of the array that a program with copies needs.
  static constexpr std::uint64_t ArrayBytes() { return AccountArray<InFlight>::Bytes(kMostCopies); }

 private:
  static constexpr std::uint32_t kMostCopies = 64;

  struct InFlight {
    Stream* stream = nullptr;          // null: a recording has the copy
    Object* kept = nullptr;            // a reference that is dropped when the copy is done
    StorageObject* watched = nullptr;  // storage of this VM that calls OnRelease
    TensorObject* staging = nullptr;   // a reference to it
    MemoryRange memory;
    Use use = Use::kReads;
  };
  // The storage of memory in flight is about to be taken back.
  static void OnRelease(void* work);
  // It becomes part of a result. A reference holds it until the copy is done.
  static void OnShare(void* work, StorageObject* storage);
  // The VM's reference to an object that others hold, too, is to be dropped when no stream is at work.
  static void OnDrop(void* work, Object* object);
  // Room for one more note; null if there is none.
  InFlight* NewNote();
  // `done`: the copies have been done, not dropped.
  void LetGo(const Stream* stream, bool done);

  DeviceStreams& streams_;
  ObjectHeap& heap_;
  MemoryAccount* home_;
  AccountArray<InFlight> copies_;  // made for the first copy
  std::uint32_t count_ = 0;
  std::uint32_t recorded_ = 0;  // the first copies, while count_ is 0: those of a recording
  WaitCounts waits_;
};

}  // namespace rewire
