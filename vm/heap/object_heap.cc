// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/heap/object_heap.h"

#include <cstring>

#include "rewire/base/likely.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

std::uint64_t PooledBytes(const Object* object) {
  switch (object->type_index) {
    case kTensorKind:
      return TensorObject::Bytes(static_cast<const TensorObject*>(object)->capacity);
    case kStorageKind:
      return static_cast<const StorageObject*>(object)->object_bytes;
    default:
      return TupleObject::Bytes(static_cast<const TupleObject*>(object)->count);
  }
}

}  // namespace

TupleObject* ObjectHeap::NewTuple(std::int32_t kind, std::uint32_t tag, std::uint32_t count) {
  auto* tuple = static_cast<TupleObject*>(pool_.Take(TupleObject::Bytes(count)));
  if (tuple == nullptr) return nullptr;
  InitLocal(tuple, kind);
  tuple->tag = tag;
  tuple->count = count;
  tuple->account = account_;
  tuple->next = nullptr;
  tuple->program = 0;
  return tuple;
}

// A free block serves only a storage of its own alignment. Were it given out for less, it would come back as
// a block for less, and the next run would lack it.
[[gnu::cold]] bool ObjectHeap::TakeDeviceMemory(StorageObject* storage) {
  const bool pinned = storage->scope == kPinned;
  const std::uint64_t bytes = DeviceBlockBytes(storage->size, storage->alignment, pinned);
  bool again = false;
  storage->block_bytes = bytes;
  for (std::size_t i = 0; i < device_blocks_.size(); ++i) {
    const DeviceBlock& free = device_blocks_[i];
    if (free.api != storage->device_api || free.bytes != bytes ||
        free.device.device_id != storage->device.device_id || free.alignment != storage->alignment ||
        (free.scope == kPinned) != pinned || (!pinned && std::strcmp(free.scope, storage->scope) != 0)) {
      continue;
    }
    storage->block = free.block;
    again = true;
    device_blocks_[i] = device_blocks_.back();
    device_blocks_.pop_back();
    break;
  }
  if (storage->block == nullptr) {
    if (!account_->Charge(bytes)) return false;
    if (!AllocateOnDevice(storage, bytes)) {
      account_->Refund(bytes);
      return false;
    }
  }
  storage->data = storage->block;
  if (pinned) {
    const std::uintptr_t mask = storage->alignment - 1;
    storage->data =
        reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(storage->block) + mask) & ~mask);
  }
  if (!pinned && !IsHostAddressable(*storage->device_api)) return true;
  // The device may still work on a block that is used again. The host's fill comes in no stream's order.
  if (again && fill_ != StorageFill::kUndefined && hooks_.release != nullptr) hooks_.release(hooks_.context);
  Fill(storage);
  return true;
}

[[gnu::cold]] bool ObjectHeap::AllocateOnDevice(StorageObject* storage, std::uint64_t bytes) {
  // A caller that asks again has not told the failure yet, which a success would hide.
  if (!device_failure_) return false;
  const DeviceApi& api = *storage->device_api;
  void* stream = nullptr;
  if (streams_ != nullptr) {
    const DeviceStreams::Stream* own = streams_->Find(storage->device, &device_failure_);
    if (own == nullptr) return false;
    stream = own->stream;
    if (streams_->recording()) {
      device_failure_ = Fail(StatusCode::kUnsupported, "it takes new memory of the device");
      return false;
    }
  }
  const auto allocate = [&] {
    return AllocateBlock(api, storage->device, bytes, storage->alignment, storage->scope, stream,
                         &storage->block);
  };
  int code = allocate();
  if (code == REWIRE_DEVICE_NO_MEMORY) {
    Trim();  // free blocks of other sizes may be using the device's memory
    code = allocate();
  }
  if (code == REWIRE_DEVICE_OK) return true;
  device_failure_ = DeviceFailure(api, storage->device, code);
  storage->block = nullptr;
  return false;
}

bool ObjectHeap::TakeNewMemory(StorageObject* storage) {
  if (REWIRE_UNLIKELY(storage->device_api != nullptr)) return TakeDeviceMemory(storage);
  const std::uint64_t bytes = MemoryBytes(storage->size, storage->alignment);
  void* block = pool_.Take(bytes);
  if (block == nullptr) return false;
  storage->block = block;
  storage->block_bytes = BlockPool::BlockBytes(bytes);
  const std::uint64_t mask = bytes != storage->size ? storage->alignment - 1 : 0;
  storage->data = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(block) + mask) & ~mask);
  if (REWIRE_UNLIKELY(fill_ != StorageFill::kUndefined)) Fill(storage);
  return true;
}

[[gnu::cold]] void ObjectHeap::Fill(StorageObject* storage) {
  switch (fill_) {
    case StorageFill::kUndefined:
      return;
    case StorageFill::kZero:
      std::memset(storage->data, 0, storage->size);
      return;
    case StorageFill::kPoison:
      std::memset(storage->data, kPoisonByte, storage->size);
      return;
  }
}

inline void ObjectHeap::GiveTensor(TensorObject* tensor) {
  if (REWIRE_LIKELY(tensor->capacity == kPooledRank)) return pool_.GiveSmall(tensor, kTensorBlock);
  pool_.Give(tensor, TensorObject::Bytes(tensor->capacity));
}

void ObjectHeap::GiveMemory(StorageObject* storage) {
  // Before the memory is used again: what has been done with it may have to end first.
  if (storage->release != nullptr) storage->release(storage->release_context);
  if (storage->block != nullptr && storage->device_api != nullptr) {
    device_blocks_.push_back({storage->device_api, storage->device, storage->block_bytes, storage->alignment,
                              storage->scope, storage->block});
  } else if (storage->block != nullptr) {
    pool_.Give(storage->block, storage->block_bytes);
  }
}

void ObjectHeap::Free(StorageObject* storage) {
  GiveMemory(storage);
  pool_.GiveSmall(storage, storage->object_bytes);
}

void ObjectHeap::Free(TensorObject* tensor) {
  StorageObject* storage = tensor->storage;
  GiveTensor(tensor);
  if (storage != nullptr) ReleaseField(storage);
}

// The blocks of an object that leaves the VM no longer count as the pool's live ones, and the other way
// round.
// It is not inlined: Share would have three copies of it, and only results that leave the VM come here.
[[gnu::noinline]] void ObjectHeap::DetachBlocks(Object* object) {
  pool_.Detach(PooledBytes(object));
  if (object->type_index != kStorageKind) return;
  auto* storage = static_cast<StorageObject*>(object);
  if (storage->block != nullptr && storage->device_api == nullptr) pool_.Detach(storage->block_bytes);
  // From now on any thread may end the storage.
  if (hooks_.release != nullptr && storage->release == hooks_.release)
    hooks_.share(storage->release_context, storage);
}

void ObjectHeap::AttachBlocks(Object* object) {
  pool_.Attach(PooledBytes(object));
  if (object->type_index != kStorageKind) return;
  auto* storage = static_cast<StorageObject*>(object);
  if (storage->block != nullptr && storage->device_api == nullptr) pool_.Attach(storage->block_bytes);
}

bool ObjectHeap::CanTakeBack(const Object* object) const {
  if (!pool_.CanAttach(PooledBytes(object))) return false;
  if (object->type_index != kStorageKind) return true;
  const auto* storage = static_cast<const StorageObject*>(object);
  return storage->block == nullptr || storage->device_api != nullptr || pool_.CanAttach(storage->block_bytes);
}

// The last reference of a shared object is the VM's: it is a local one again, and the constants in a tuple
// are not counted any more.
void ObjectHeap::TakeBack(Object* object) {
  AttachBlocks(object);
  if (!IsTupleKind(object->type_index)) return;
  auto* tuple = static_cast<TupleObject*>(object);
  for (std::uint32_t i = 0; i < tuple->count; ++i) {
    RewireFFIAny& field = tuple->fields()[i];
    if (!IsUncounted(field)) continue;
    DropStrong(ObjectOf(field));
    field = {};
  }
}

// The VM's last reference is gone, but somebody outside holds or names the object. From now on all references
// are strong.
void ObjectHeap::HandOver(Object* object) {
  object->local = 1;  // stands for the VM's strong reference, which is about to be dropped
  Share(MakeAny(object->type_index, object));
  DropShared(object);
}

// The object ends with its last reference, which may be dropped on any thread and in no stream's order. So
// the VM's own reference stays until devices have done what they were given.
void ObjectHeap::DropShared(Object* object) {
  if (REWIRE_UNLIKELY(hooks_.drop != nullptr && streams_ != nullptr && streams_->size() != 0)) {
    hooks_.drop(hooks_.context, object);
  } else {
    DropStrong(object);
  }
}

void ObjectHeap::ReleaseField(Object* object) {
  if (object->local < kSharing) {
    if (--object->local != 0) return;
  } else if (object->local == kUncounted) {
    return;
  } else if (AccountOf(object) == account_ && object->alone() && CanTakeBack(object)) {
    TakeBack(object);
  } else {
    DropShared(object);
    return;
  }
  if (!object->alone()) {
    HandOver(object);
    return;
  }
  switch (object->type_index) {
    case kTensorKind:
      Free(static_cast<TensorObject*>(object));
      return;
    case kStorageKind:
      Free(static_cast<StorageObject*>(object));
      return;
    default: {
      auto* tuple = static_cast<TupleObject*>(object);
      tuple->next = pending_;
      pending_ = tuple;
    }
  }
}

void ObjectHeap::Drain() {
  while (pending_ != nullptr) {
    TupleObject* tuple = pending_;
    pending_ = tuple->next;
    for (std::uint32_t i = 0; i < tuple->count; ++i) {
      const RewireFFIAny& field = tuple->fields()[i];
      if (IsObjectKind(field.type_index)) ReleaseField(ObjectOf(field));
    }
    pool_.Give(tuple, TupleObject::Bytes(tuple->count));
  }
}

void ObjectHeap::ReleaseLast(Object* object) {
  // The fast path has no loop: a storage, or a tensor on a storage that others use, without references
  // from outside.
  if (REWIRE_LIKELY(object->alone())) {
    if (object->type_index == kTensorKind) {
      auto* tensor = static_cast<TensorObject*>(object);
      if (FreeFastPath(tensor)) return;
      if (tensor->storage == nullptr) return GiveTensor(tensor);
    } else if (object->type_index == kStorageKind) {
      auto* storage = static_cast<StorageObject*>(object);
      if (storage->block == nullptr && storage->release == nullptr)
        return pool_.GiveSmall(storage, storage->object_bytes);
    }
  }
  ReleaseSlowPath(object);
}

// Out of line, so that the fast path needs no room on the stack.
__attribute__((noinline)) void ObjectHeap::ReleaseSlowPath(Object* object) {
  object->local = 1;  // ReleaseField takes the last one away
  ReleaseField(object);
  Drain();
}

void ObjectHeap::ReleaseShared(Object* object) {
  ReleaseField(object);
  Drain();
}

void ObjectHeap::Share(const RewireFFIAny& value) {
  if (!IsObjectKind(value.type_index)) return;
  if (IsUncounted(value)) {
    ObjectOf(value)->AddStrong();
    return;
  }
  TupleObject* open = nullptr;    // tuples whose fields are still to be shared
  TupleObject* shared = nullptr;  // tuples whose fields are being shared or are shared
  // Turns local references into strong ones.
  auto convert = [this](Object* object) {
    DetachBlocks(object);
    if (object->local > 1) object->AddStrong(object->local - 1);
    object->local = kSharing;
  };
  auto share = [&open, &convert](Object* object) {
    if (object->local >= kSharing) return;
    convert(object);
    if (IsTupleKind(object->type_index)) {
      auto* tuple = static_cast<TupleObject*>(object);
      tuple->next = open;
      open = tuple;
      return;
    }
    if (object->type_index == kTensorKind) {
      static_cast<TensorObject*>(object)->flags |= TensorObject::kReadOnly;
      StorageObject* storage = static_cast<TensorObject*>(object)->storage;
      if (storage != nullptr && storage->local < kSharing) {
        convert(storage);
        storage->local.Publish();
      }
    }
    object->local.Publish();
  };
  share(ObjectOf(value));
  while (open != nullptr) {
    TupleObject* tuple = open;
    open = tuple->next;
    tuple->next = shared;
    shared = tuple;
    for (std::uint32_t i = 0; i < tuple->count; ++i) {
      const RewireFFIAny& field = tuple->fields()[i];
      if (!IsObjectKind(field.type_index)) continue;
      if (IsUncounted(field)) {
        ObjectOf(field)->AddStrong();
      } else {
        share(ObjectOf(field));
      }
    }
  }
  // Only now may another VM take these tuples: it can reach everything in them.
  while (shared != nullptr) {
    TupleObject* tuple = shared;
    shared = tuple->next;
    tuple->local.Publish();
  }
}

TensorObject* NewHeapTensor(ObjectHeap& heap, const LinkedDevice& device, DLDataType dtype,
                            Span<const std::int64_t> shape, std::uint64_t alignment) {
  std::uint64_t bytes = 0;
  if (REWIRE_UNLIKELY(!QuickBytes(dtype, shape, &bytes))) {
    const std::optional<std::uint64_t> counted = TensorBytes(dtype, shape);
    if (!counted) return nullptr;
    bytes = *counted;
  }
  if (bytes > BlockPool::kMaxBlock) return nullptr;
  StorageObject* storage = heap.NewStorage(bytes, alignment, device);
  if (storage == nullptr) return nullptr;
  TensorObject* tensor =
      heap.TakeMemory(storage) ? heap.NewTensor(static_cast<std::uint32_t>(shape.size())) : nullptr;
  if (tensor == nullptr) {
    heap.Release(storage);
    return nullptr;
  }
  SetContiguousDims(tensor, dtype, shape.data(), static_cast<std::uint32_t>(shape.size()));
  tensor->tensor.data = storage->data;
  tensor->tensor.device = device.tensor_device();
  tensor->tensor.byte_offset = 0;
  tensor->storage = storage;  // the storage's one reference passes to the tensor
  return tensor;
}

void ObjectHeap::FreeSpare() {
  Trim();
  pool_.DropEmptyTable();
}

[[gnu::cold]] void ObjectHeap::Trim() {
  pool_.Trim();
  for (const DeviceBlock& free : device_blocks_) {
    DeviceStreams::Stream* stream = streams_ != nullptr ? streams_->FindMade(free.device) : nullptr;
    const int code = FreeBlock(*free.api, free.device, free.scope,
                               stream != nullptr ? stream->stream : nullptr, free.block);
    // Work that failed may be told here and nowhere else.
    if (code != REWIRE_DEVICE_OK && stream != nullptr) {
      const Status failure = DeviceFailure(*free.api, free.device, code);
      DeviceStreams::NoteFailure(stream, Forward(failure, "freeing memory"));
    }
    account_->Refund(free.bytes);
  }
  device_blocks_.clear();
}

}  // namespace rewire
