// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/device_work.h"

#include <cstring>
#include <utility>

namespace rewire {

const char* WaitCauseText(WaitCause cause) {
  switch (cause) {
    case WaitCause::kValue:
      return "an instruction read an integer";
    case WaitCause::kShape:
      return "an instruction read a shape";
    case WaitCause::kHostKernel:
      return "a kernel on the host read a copy";
    case WaitCause::kObserver:
      return "an observer may read a copy";
    case WaitCause::kTransfer:
      return "a copy went through the host";
    case WaitCause::kReuse:
      return "memory of the host was needed that a copy used";
    case WaitCause::kManyCopies:
      return "too many copies were under way";
    case WaitCause::kEnd:
      return "the call returned";
    case WaitCause::kFailure:
      return "the call failed";
  }
  return "unknown";
}

void DeviceWork::Note(Stream* stream, Source source) {
  if (!stream->busy) stream->first = source;
  stream->busy = true;
  stream->last = source;
}

DeviceWork::InFlight* DeviceWork::NewNote() {
  if (copies_.empty() && !copies_.Make(home_, kMostCopies)) return nullptr;
  return count_ == kMostCopies ? nullptr : &copies_[count_++];
}

bool DeviceWork::Keep(Stream* stream, Use use, const MemoryRange& memory, TensorObject* tensor,
                      TensorObject* staging) {
  if (memory.empty()) return true;
  InFlight* const note = NewNote();
  if (note == nullptr) return false;
  InFlight& copy = *note;
  copy = {stream, nullptr, nullptr, staging, memory, use};
  // Memory that the caller lent stays until the call returns, and constants as long as the Program.
  StorageObject* storage = tensor != nullptr && tensor->local != kUncounted ? tensor->storage : nullptr;
  if (storage == nullptr) return true;
  // Each replay of a recorded copy reads the memory again.
  const bool recorded = streams_.recording() && use == Use::kReads;
  const bool own = !recorded && tensor->local < kSharing && storage->local < kSharing &&
                   storage->account == heap_.account();
  if (own && (storage->release == nullptr || storage->release == OnRelease)) {
    copy.watched = storage;
    storage->release = OnRelease;
    storage->release_context = this;
  } else {
    ObjectHeap::Retain(tensor);
    copy.kept = tensor;
  }
  return true;
}

DeviceWork::Stream* DeviceWork::Blocking(Use use, const MemoryRange& memory) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const InFlight& copy = copies_[i];
    if (use == Use::kReads && copy.use == Use::kReads) continue;
    if (copy.memory.Overlaps(memory)) return copy.stream;
  }
  return nullptr;
}

void DeviceWork::Wait(Stream* stream, WaitCause cause) {
  if (!stream->busy) return;
  if (streams_.recording()) {  // the work is not done, and goes on to use its memory in the replays
    DeviceStreams::NoteFailure(stream, RefuseWait(cause));
    return;
  }
  ++waits_.counts[static_cast<std::uint32_t>(cause)];
  const Status waited = DeviceStreams::Synchronize(*stream);
  if (!waited) DeviceStreams::NoteFailure(stream, waited);
  stream->busy = false;
  LetGo(stream, waited.has_value());
}

Status DeviceWork::RefuseWait(WaitCause cause) {
  return Fail(StatusCode::kUnsupported, "the run cannot be recorded: the host waits, because {}",
              WaitCauseText(cause));
}

void DeviceWork::WaitForAll(WaitCause cause) {
  for (std::uint32_t i = 0; i < streams_.size(); ++i) Wait(&streams_[i], cause);
}

// The recorded work has not been done, and what it uses is this VM's or the caller's until it is replayed.
void DeviceWork::ForgetRecorded(Stream* stream) {
  stream->busy = false;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (copies_[i].use == Use::kReads) copies_[i].stream = nullptr;
  }
  LetGo(stream, false);
  recorded_ = std::exchange(count_, 0);
}

void DeviceWork::LetGoRecorded() {
  count_ = std::exchange(recorded_, 0);
  LetGo(nullptr, false);
}

void DeviceWork::OnRelease(void* work) { static_cast<DeviceWork*>(work)->WaitForAll(WaitCause::kReuse); }

void DeviceWork::OnShare(void* work, StorageObject* storage) {
  auto* self = static_cast<DeviceWork*>(work);
  storage->release = nullptr;
  for (std::uint32_t i = 0; i < self->count_; ++i) {
    InFlight& copy = self->copies_[i];
    if (copy.watched != storage) continue;
    copy.watched = nullptr;
    copy.kept = storage;
    ObjectHeap::Retain(storage);
  }
}

void DeviceWork::OnDrop(void* work, Object* object) {
  auto* self = static_cast<DeviceWork*>(work);
  for (std::uint32_t i = 0; i < self->streams_.size(); ++i) {
    Stream& stream = self->streams_[i];
    if (!stream.busy) continue;
    // LetGo drops the reference, and so comes back here for each other stream that is at work then.
    if (InFlight* const note = self->NewNote(); note != nullptr) {
      *note = {&stream, object, nullptr, nullptr, {}, Use::kReads};
      return;
    }
    self->Wait(&stream, WaitCause::kReuse);
  }
  DropStrong(object);
}

void DeviceWork::LetGo(const Stream* stream, bool done) {
  // The others first, because dropping a reference may come back here.
  Object* kept[2 * kMostCopies];
  std::uint32_t kept_count = 0;
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const InFlight copy = copies_[i];
    if (copy.stream != stream) {
      copies_[left++] = copy;
      continue;
    }
    if (copy.watched != nullptr) copy.watched->release = nullptr;
    if (copy.kept != nullptr) kept[kept_count++] = copy.kept;
    if (copy.staging != nullptr) {
      if (done) {
        std::memcpy(reinterpret_cast<void*>(copy.memory.begin), copy.staging->tensor.data,
                    copy.memory.end - copy.memory.begin);
      }
      kept[kept_count++] = copy.staging;
    }
  }
  count_ = left;
  for (std::uint32_t i = 0; i < left; ++i) {
    if (copies_[i].watched != nullptr) copies_[i].watched->release = OnRelease;
  }
  for (std::uint32_t i = 0; i < kept_count; ++i) heap_.Release(kept[i]);
}

}  // namespace rewire
