// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/device/fake_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace rewire::test {
namespace {

using Stream = FakeDevice::Stream;
using Event = FakeDevice::Event;

FakeDevice* Self(void* context) { return static_cast<FakeDevice*>(context); }

Stream* StreamOf(FakeDevice* self, void* stream) {
  return stream == nullptr ? &self->default_stream : static_cast<Stream*>(stream);
}

int Allocate(void* context, DLDevice, std::uint64_t bytes, std::uint64_t alignment, const char* scope, void*,
             void** block) {
  FakeDevice* self = Self(context);
  if (self->lost) return self->Fail("the cable is cut", REWIRE_DEVICE_LOST);
  if (self->full) return self->Fail("no memory is left", REWIRE_DEVICE_NO_MEMORY);
  if (self->Fails(FakeDevice::kAllocations)) return self->Fail("the driver refuses to allocate");
  const std::uint64_t room = (bytes + alignment) / alignment * alignment;
  auto* data = static_cast<unsigned char*>(std::aligned_alloc(alignment, room));
  std::memset(data, 0xCD, bytes);
  auto address = reinterpret_cast<std::uintptr_t>(data);
  if ((self->api.flags & REWIRE_DEVICE_HOST_ADDRESSABLE) == 0) {
    self->next = (self->next + alignment - 1) / alignment * alignment;
    address = self->next;
    self->next += bytes + 64;
  }
  self->blocks[address] = {data, bytes, scope, {data, std::free}};
  *block = reinterpret_cast<void*>(address);
  return REWIRE_DEVICE_OK;
}

int Deallocate(void* context, DLDevice, void* block, void* stream) {
  FakeDevice* self = Self(context);
  const auto free = [self, block] {
    self->blocks.erase(reinterpret_cast<std::uintptr_t>(block));
    return true;
  };
  // Without work of its own, the default stream frees at once, whatever other streams do with the memory.
  if (stream == nullptr && self->default_stream.work.empty()) {
    free();
  } else {
    self->Give(stream, free, FakeDevice::kFrees);
  }
  return self->Fails(FakeDevice::kFrees) ? self->Fail("the driver refuses to free") : REWIRE_DEVICE_OK;
}

int Copy(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
         std::uint64_t bytes, void* stream) {
  FakeDevice* self = Self(context);
  if (self->lost) return self->Fail("the cable is cut", REWIRE_DEVICE_LOST);
  if (self->broken || self->Fails(FakeDevice::kCopies)) return self->Fail("the bus is down");
  ++self->copies;
  const auto copy = [=] {
    if (self->breaks_late) return false;
    void* target = to_device.device_type == kDLCPU ? to : self->Memory(to, bytes);
    const void* source = from_device.device_type == kDLCPU ? from : self->Memory(from, bytes);
    if (target != nullptr && source != nullptr) std::memmove(target, source, bytes);
    return true;
  };
  return self->Give(stream, copy, FakeDevice::kCopies);
}

int Synchronize(void* context, DLDevice, void* stream) {
  FakeDevice* self = Self(context);
  ++self->waits;
  Stream* own = StreamOf(self, stream);
  if (own->recording && self->misuse.empty()) self->misuse = "a wait while work is recorded";
  if (self->Fails(FakeDevice::kWaits)) return self->Fail("the driver refuses to wait");
  if (self->at_wait) self->at_wait();
  const bool ok = self->RunTo(own, own->given);
  if (self->lost) return self->Fail("the cable is cut", REWIRE_DEVICE_LOST);
  if (ok && !std::exchange(own->failed, false)) return REWIRE_DEVICE_OK;
  own->failed = false;
  return self->Fail("the work went wrong");
}

int MakeStream(void* context, DLDevice, void** stream) {
  auto made = std::make_unique<Stream>();
  *stream = made.get();
  Self(context)->streams[made.get()] = std::move(made);
  return REWIRE_DEVICE_OK;
}

int DestroyStream(void* context, DLDevice, void* stream) {
  FakeDevice* self = Self(context);
  auto* own = static_cast<Stream*>(stream);
  self->RunTo(own, own->given);
  self->streams.erase(own);
  return REWIRE_DEVICE_OK;
}

int MakeEvent(void* context, DLDevice, void** event) {
  auto made = std::make_unique<Event>();
  *event = made.get();
  Self(context)->events[made.get()] = std::move(made);
  return REWIRE_DEVICE_OK;
}

int DestroyEvent(void* context, DLDevice, void* event) {
  Self(context)->events.erase(static_cast<Event*>(event));
  return REWIRE_DEVICE_OK;
}

int RecordEvent(void* context, DLDevice, void* event, void* stream) {
  if (Self(context)->Fails(FakeDevice::kEvents)) return Self(context)->Fail("the driver refuses an event");
  Stream* own = StreamOf(Self(context), stream);
  *static_cast<Event*>(event) = {own, own->given};
  return REWIRE_DEVICE_OK;
}

int WaitEvent(void* context, DLDevice, void* stream, void* event) {
  FakeDevice* self = Self(context);
  const Event at = *static_cast<Event*>(event);
  const auto wait = [self, at] { return at.stream == nullptr || self->RunTo(at.stream, at.position); };
  return self->Give(stream, wait, FakeDevice::kEvents);
}

int QueryEvent(void*, DLDevice, void* event, std::int32_t* done) {
  const Event at = *static_cast<Event*>(event);
  *done = at.stream == nullptr || at.stream->done >= at.position ? 1 : 0;
  return REWIRE_DEVICE_OK;
}

int SynchronizeEvent(void* context, DLDevice, void* event) {
  FakeDevice* self = Self(context);
  const Event at = *static_cast<Event*>(event);
  ++self->waits;
  const bool ok = at.stream == nullptr || self->RunTo(at.stream, at.position);
  return ok ? REWIRE_DEVICE_OK : self->Fail("the work went wrong");
}

int BeginRecording(void* context, DLDevice, void* stream) {
  ++Self(context)->records;
  if (Self(context)->Fails(FakeDevice::kRecords)) return Self(context)->Fail("the driver refuses to record");
  Stream* own = StreamOf(Self(context), stream);
  own->recording = true;
  own->recorded.clear();
  return REWIRE_DEVICE_OK;
}

int EndRecording(void* context, DLDevice, void* stream, void** recording) {
  Stream* own = StreamOf(Self(context), stream);
  own->recording = false;
  if (Self(context)->Fails(FakeDevice::kRecords)) {
    own->recorded.clear();
    return Self(context)->Fail("the driver cannot make this graph");
  }
  auto made = std::make_unique<FakeDevice::Recording>(std::move(own->recorded));
  *recording = made.get();
  Self(context)->recordings[made.get()] = std::move(made);
  return REWIRE_DEVICE_OK;
}

int Replay(void* context, DLDevice, void* recording, void* stream) {
  FakeDevice* self = Self(context);
  if (self->lost) return self->Fail("the cable is cut", REWIRE_DEVICE_LOST);
  if (self->Fails(FakeDevice::kReplays)) return self->Fail("the driver refuses to replay");
  ++self->replays;
  for (const FakeDevice::Work& work : *static_cast<FakeDevice::Recording*>(recording))
    self->Enqueue(StreamOf(self, stream), work);
  return REWIRE_DEVICE_OK;
}

int DestroyRecording(void* context, DLDevice, void* recording) {
  Self(context)->recordings.erase(static_cast<FakeDevice::Recording*>(recording));
  return REWIRE_DEVICE_OK;
}

}  // namespace

FakeDevice::FakeDevice(DLDeviceType type, const char* name) {
  api.struct_size = sizeof(api);
  api.device_type = type;
  api.name = name;
  api.context = this;
  api.error = [](void* context) { return Self(context)->words.c_str(); };
  api.allocate = Allocate;
  api.deallocate = Deallocate;
  api.copy = Copy;
  api.synchronize = Synchronize;
  api.make_stream = MakeStream;
  api.destroy_stream = DestroyStream;
  api.make_event = MakeEvent;
  api.destroy_event = DestroyEvent;
  api.record_event = RecordEvent;
  api.wait_event = WaitEvent;
  api.query_event = QueryEvent;
  api.synchronize_event = SynchronizeEvent;
  api.begin_recording = BeginRecording;
  api.end_recording = EndRecording;
  api.replay = Replay;
  api.destroy_recording = DestroyRecording;
}

FakeDevice::~FakeDevice() = default;

void FakeDevice::ShareMemory() { api.flags |= REWIRE_DEVICE_HOST_ADDRESSABLE; }

void FakeDevice::FailNothing() {
  call_fails_.fill(0);
  work_fails_.fill(0);
}

std::size_t FakeDevice::Pending() const {
  std::size_t pending = default_stream.work.size();
  for (const auto& [address, stream] : streams) pending += stream->work.size();
  return pending;
}

bool FakeDevice::Works() const {
  const auto works = [](const Stream& stream) {
    return std::any_of(stream.work.begin(), stream.work.end(),
                       [](const Work& work) { return work.kind == kCopies || work.kind == kKernels; });
  };
  return works(default_stream) ||
         std::any_of(streams.begin(), streams.end(), [&](const auto& each) { return works(*each.first); });
}

void FakeDevice::Finish() {
  RunTo(&default_stream, default_stream.given);
  for (const auto& [address, stream] : streams) RunTo(address, stream->given);
}

void FakeDevice::PinHostMemory() {
  api.allocate_host = [](void* context, DLDevice, std::uint64_t bytes, void** block) {
    FakeDevice* self = Self(context);
    if (self->full) return self->Fail("no memory can be pinned", REWIRE_DEVICE_NO_MEMORY);
    auto* made = static_cast<unsigned char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    std::memset(made, 0xCD, bytes);
    self->host_blocks[made] = {std::unique_ptr<unsigned char, void (*)(void*)>(made, std::free), bytes};
    *block = made;
    return REWIRE_DEVICE_OK;
  };
  api.deallocate_host = [](void* context, DLDevice, void* block) {
    FakeDevice* self = Self(context);
    if (self->host_blocks.erase(block) == 1) return REWIRE_DEVICE_OK;
    return self->Fail("this is no pinned block");
  };
  api.is_pinned = [](void* context, DLDevice, const void* memory, std::uint64_t bytes, std::int32_t* pinned) {
    const auto& blocks = Self(context)->host_blocks;
    auto block = blocks.upper_bound(memory);
    *pinned = 0;
    if (block == blocks.begin()) return REWIRE_DEVICE_OK;
    --block;
    const auto offset = static_cast<std::uint64_t>(static_cast<const unsigned char*>(memory) -
                                                   static_cast<const unsigned char*>(block->first));
    *pinned = offset + bytes <= block->second.bytes ? 1 : 0;
    return REWIRE_DEVICE_OK;
  };
}

unsigned char* FakeDevice::Memory(const void* address, std::uint64_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto block = blocks.upper_bound(at);
  if (block != blocks.begin()) {
    --block;
    const std::uint64_t offset = at - block->first;
    if (offset + bytes <= block->second.bytes) return block->second.data + offset;
  }
  if (misuse.empty()) misuse = "no block has " + std::to_string(bytes) + " bytes at " + std::to_string(at);
  return nullptr;
}

int FakeDevice::Give(void* stream, std::function<bool()> work, Kind kind) {
  if (kind == kKernels && Fails(kKernels)) return Fail("the driver refuses to launch");
  Enqueue(StreamOf(this, stream), {kind, std::move(work)});
  return REWIRE_DEVICE_OK;
}

void FakeDevice::Enqueue(Stream* stream, Work work) {
  if (stream->recording) {
    stream->recorded.push_back(std::move(work));
    return;
  }
  stream->work.push_back(std::move(work));
  ++stream->given;
  if (!put_off) RunTo(stream, stream->given);
}

bool FakeDevice::RunTo(Stream* stream, std::uint64_t position) {
  bool ok = true;
  while (stream->done < position && !stream->work.empty()) {
    const Work work = std::move(stream->work.front());
    stream->work.pop_front();
    ++stream->done;
    const bool fails = Hits(&work_fails_[work.kind]);
    if ((fails && work.kind != kFrees) || !work.run() || fails) {
      ok = false;
      stream->failed = true;
    }
  }
  return ok;
}

int FakeDevice::Fail(const std::string& text, int code) {
  words = text;
  return code;
}

}  // namespace rewire::test
