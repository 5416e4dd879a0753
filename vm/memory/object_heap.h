// SPDX-License-Identifier: Apache-2.0
// ObjectHeap: makes, counts and reuses the objects of one VM. See objects.h for the three modes of counting.
//
// One thread at a time. Functions that return null did so because of the byte limit or the allocator.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/array.h"
#include "base/span.h"
#include "vm/device/device_api.h"
#include "vm/linked_device.h"
#include "vm/memory/block_pool.h"
#include "vm/memory/memory_account.h"
#include "vm/objects.h"
#include "vm/program.h"

namespace rewire {

// What StorageFill::kPoison writes.
inline constexpr int kPoisonByte = 0xCB;

// Tensors of fewer dimensions have room for as many, so that their objects can be used again.
inline constexpr std::uint32_t kUsualRank = 6;

class ObjectHeap {
 public:
  ObjectHeap(MemoryAccount* account, StorageFill fill) : account_(account), pool_(account), fill_(fill) {}
  ~ObjectHeap() { Trim(); }

  // New objects have one local reference, the caller's. The tensor's flags, storage and dims are the caller's
  // to set.
  TensorObject* NewTensor(std::uint32_t rank) {
    const std::uint32_t capacity = rank <= kUsualRank ? kUsualRank : rank;
    auto* tensor = static_cast<TensorObject*>(rank <= kUsualRank ? pool_.TakeSmall(kUsualTensor)
                                                                 : pool_.Take(TensorObject::Bytes(rank)));
    if (__builtin_expect(tensor == nullptr, 0)) return nullptr;
    InitLocal(tensor, kTensorKind);
    tensor->capacity = capacity;
    tensor->account = account_;
    return tensor;
  }
  // Whether a storage on the host has its memory behind it.
  static constexpr bool HasOwnMemory(std::uint64_t size, std::uint64_t alignment, StorageFill fill) {
    return size - 1 < kMaxOwnMemory - OwnMemoryPadding(alignment) && alignment <= kMaxOwnAlignment &&
           fill == StorageFill::kUndefined;
  }
  // The block of such a storage. Where memory begins that needs more alignment than blocks have is not known
  // before there is one.
  static constexpr std::uint64_t OwnMemoryBytes(std::uint64_t size, std::uint64_t alignment) {
    return StorageObject::kOwnMemory + size + OwnMemoryPadding(alignment);
  }
  // Reserves; TakeMemory gives it memory, unless it is small and has its own.
  StorageObject* NewStorage(std::uint64_t size, std::uint64_t alignment, const LinkedDevice& device) {
    const bool own_memory = device.api == nullptr && HasOwnMemory(size, alignment, fill_);
    const std::uint64_t bytes = own_memory ? OwnMemoryBytes(size, alignment) : sizeof(StorageObject);
    auto* storage = static_cast<StorageObject*>(pool_.TakeSmall(bytes));
    if (__builtin_expect(storage == nullptr, 0)) return nullptr;
    InitLocal(storage, kStorageKind);
    storage->data = own_memory ? storage->own_memory(alignment) : nullptr;
    storage->size = size;
    storage->alignment = alignment;
    storage->device = device.device;
    storage->block = nullptr;
    storage->account = account_;
    storage->device_api = device.api;
    storage->scope = device.scope;
    storage->release = nullptr;
    storage->object_bytes = bytes;
    return storage;
  }
  // True when the storage has memory afterwards.
  bool TakeMemory(StorageObject* storage) { return storage->data != nullptr || TakeNewMemory(storage); }
  // Fields are the caller's to set (all of them, before anything else happens to the heap).
  TupleObject* NewTuple(std::int32_t kind, std::uint32_t tag, std::uint32_t count);

  static void Retain(const RewireFFIAny& value) {
    if (IsObjectKind(value.type_index)) Retain(ObjectOf(value));
  }
  static void Retain(Object* object) {
    if (__builtin_expect(object->local < kShared, 1)) {
      ++object->local;
    } else if (object->local == kShared) {
      object->AddStrong();
    }
  }
  void Release(const RewireFFIAny& value) {
    if (IsObjectKind(value.type_index)) Release(ObjectOf(value));
  }
  void Release(Object* object) {
    if (__builtin_expect(object->local < kShared, 1)) {
      if (--object->local == 0) ReleaseLast(object);
    } else if (object->local == kShared) {
      ReleaseShared(object);
    }
  }

  // For references that are no registers': set inputs and results. They may outlive the Program that a
  // constant belongs to, so they count constants, too.
  static void Pin(const RewireFFIAny& value) {
    Retain(value);
    if (IsUncounted(value)) ObjectOf(value)->AddStrong();
  }
  void Unpin(const RewireFFIAny& value) {
    if (IsUncounted(value)) {
      DropStrong(ObjectOf(value));
    } else {
      Release(value);
    }
  }

  // Makes a value and everything it refers to shared, before it leaves the VM. Local references that
  // registers hold become strong ones, and constants are counted from then on (Unpin).
  void Share(const RewireFFIAny& value);

  void EndOfCall() { pool_.EndOfCall(); }
  void Trim();
  // Trims and gives back the pool's table, too, when no object is left.
  void Release() {
    Trim();
    pool_.Release();
  }

  BlockPool& pool() { return pool_; }
  MemoryAccount* account() const { return account_; }

 private:
  static constexpr std::uint64_t kUsualTensor = TensorObject::Bytes(kUsualRank);
  static constexpr std::uint64_t kMaxOwnMemory = BlockPool::kMaxSmall - StorageObject::kOwnMemory;
  static_assert(kUsualTensor <= BlockPool::kMaxSmall && sizeof(StorageObject) <= BlockPool::kMaxSmall);
  static constexpr std::uint64_t kBlockAlignment = 64;    // of every block
  static constexpr std::uint64_t kMaxOwnAlignment = 128;  // what TVM up to 0.9 asks for
  static constexpr std::uint64_t OwnMemoryPadding(std::uint64_t alignment) {
    return alignment > kBlockAlignment ? alignment - kBlockAlignment : 0;
  }

  static void InitLocal(Object* object, std::int32_t kind) { InitObject(object, kind, 1); }
  static bool IsUncounted(const RewireFFIAny& value) {
    return IsObjectKind(value.type_index) && ObjectOf(value)->local == kUncounted;
  }
  bool TakeNewMemory(StorageObject* storage);
  void GiveMemory(StorageObject* storage);
  bool TakeDeviceMemory(StorageObject* storage);
  void Fill(StorageObject* storage);
  void ReleaseLast(Object* object);
  void ReleaseUnusual(Object* object);
  void GiveTensor(TensorObject* tensor);
  void ReleaseShared(Object* object);
  void Drain();
  void ReleaseField(Object* object);
  void Recycle(TensorObject* tensor);
  void Recycle(StorageObject* storage);
  void LetGo(Object* object);
  void ForgetBlocks(Object* object);
  void RememberBlocks(Object* object);
  bool CanReclaim(const Object* object) const;
  void Reclaim(Object* object);

  struct DeviceBlock {
    const DeviceApi* api;
    DLDevice device;
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::string_view scope;  // the executable's string
    void* block;
  };

  MemoryAccount* account_;
  BlockPool pool_;
  StorageFill fill_;
  TupleObject* pending_ = nullptr;  // tuples at zero whose fields are still to be released
  Array<DeviceBlock> device_blocks_;
};

// A contiguous tensor on a device with storage and memory of its own, contents undefined, not read-only; one
// local reference. Null when memory runs out or the shape's bytes do not fit.
TensorObject* NewHeapTensor(ObjectHeap& heap, const LinkedDevice& device, DLDataType dtype,
                            Span<const std::int64_t> shape, std::uint64_t alignment = 64);

}  // namespace rewire
