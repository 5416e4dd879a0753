// SPDX-License-Identifier: Apache-2.0
//
// ObjectHeap: makes, counts and recycles the objects of one VM. objects.h explains the three modes of
// counting.
//
// The names say what happens to an object:
//   Retain, Release            count the references of registers; the last Release frees the object
//   Pin, Unpin                 count references outside registers, to constants too
//   Share                      before it leaves the VM: its references become strong, and its blocks are
//                              detached from the pool
//   HandOver                   the VM's last reference goes, and somebody outside holds the object
//   TakeBack                   undoes Share: the last reference to a shared object is the VM's
//   Free                       gives the object's blocks to the pool; ReuseTensor makes a freed tensor new
//   Trim, FreeSpare, FreeAll   give free blocks back to the allocator; they touch no object
//
// One thread at a time. A function that returns null was refused by the byte limit or the allocator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/assert.h"
#include "rewire/base/likely.h"
#include "rewire/base/span.h"
#include "rewire/vm/device/device_streams.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/memory/memory_account.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value/objects.h"

namespace rewire {

// The byte that StorageFill::kPoison writes.
inline constexpr int kPoisonByte = 0xCB;

// Tensors of lower rank get room for this many dimensions, so that their headers can be recycled.
inline constexpr std::uint32_t kPooledRank = 6;

class ObjectHeap {
 public:
  // `least_alignment`: the smallest alignment of all storage, as the Program's kernels require. A file may
  // ask for less; without this, calls of such kernels would fail or not by chance.
  ObjectHeap(MemoryAccount* account, StorageFill fill, std::uint32_t least_alignment)
      : account_(account), pool_(account), fill_(fill), least_alignment_(least_alignment) {}
  ~ObjectHeap() { Trim(); }

  // Functions that make objects. A new object has one local reference, which the caller owns. The caller sets
  // the tensor's flags, storage and dims.
  REWIRE_INLINE TensorObject* NewTensor(std::uint32_t rank) {
    const std::uint32_t capacity = rank <= kPooledRank ? kPooledRank : rank;
    auto* tensor = static_cast<TensorObject*>(rank <= kPooledRank ? pool_.TakeSmall(kTensorBlock)
                                                                  : pool_.Take(TensorObject::Bytes(rank)));
    if (REWIRE_UNLIKELY(tensor == nullptr)) return nullptr;
    InitLocal(tensor, kTensorKind);
    tensor->fields = TensorObject::FieldsOf(capacity);  // no flags, no bytes
    tensor->account = account_;
    return tensor;
  }
  // The memory of a tensor of at most kPooledRank. It is the caller's to make it one: by InitTensor, or by
  // ReuseTensor if the tensor that was there before has the right shape.
  REWIRE_INLINE TensorObject* TakeTensorBlock() {
    return static_cast<TensorObject*>(pool_.TakeSmall(kTensorBlock));
  }
  // Before anything is written to it: the tensor that was there before is whole, but for its first two words.
  static bool IsDeadTensor(const TensorObject* tensor) { return BlockPool::MarkOf(tensor) == kDeadTensor; }
  // Sets what all tensors of such memory have in common. The caller sets also the tensor's data, device,
  // type, rank and dimensions, and the fields.
  REWIRE_INLINE void InitTensor(TensorObject* tensor) {
    InitLocal(tensor, kTensorKind);
    tensor->account = account_;
    tensor->tensor.shape = tensor->dims();
    tensor->tensor.strides = tensor->dims() + kPooledRank;
    tensor->tensor.byte_offset = 0;
  }
  // Makes a dead tensor a new one of the same type and shape. The caller sets also its data, device, storage
  // and fields.
  REWIRE_INLINE static void ReuseTensor(TensorObject* tensor) {
    tensor->combined_ref_count = kNewObjectCount;
    tensor->type_index = kTensorKind;
    tensor->local.Init(1);
    tensor->tensor.byte_offset = 0;
  }
  void GiveTensorBlock(TensorObject* tensor) { pool_.GiveSmall(tensor, kTensorBlock); }
  // True if a host storage has its memory in the same block, behind the object.
  static constexpr bool HasOwnMemory(std::uint64_t size, std::uint64_t alignment, StorageFill fill) {
    return size - 1 < kMaxOwnMemory - OwnMemoryPadding(alignment) && alignment <= kMaxOwnAlignment &&
           fill == StorageFill::kUndefined;
  }
  // A storage on the host asks the pool for its object and for its memory, or for both in one block. Whoever
  // foresees blocks (plan/loop_blocks.cc, prepare/bound_analysis.cc, the
  // compiler's arena) asks here.
  struct Requests {
    std::uint64_t object;
    std::uint64_t memory;  // 0 if it is in the block of the object
    bool one_block;
  };
  static constexpr Requests RequestsOf(std::uint64_t size, std::uint64_t alignment, StorageFill fill) {
    if (HasOwnMemory(size, alignment, fill)) return {OwnMemoryBytes(size, alignment), 0, true};
    return {sizeof(StorageObject), MemoryBytes(size, alignment), false};
  }
  // Makes a storage without memory. TakeMemory allocates it later. A small storage has its memory at once.
  // `made_as`: StorageObject::made_as, if the storage may serve again (IsAsNew).
  StorageObject* NewStorage(std::uint64_t size, std::uint64_t asked_alignment, const LinkedDevice& device,
                            std::uint64_t made_as = 0) {
    const std::uint64_t alignment = std::max<std::uint64_t>(asked_alignment, least_alignment_);
    const bool own_memory = device.api == nullptr && HasOwnMemory(size, alignment, fill_);
    const std::uint64_t bytes = own_memory ? OwnMemoryBytes(size, alignment) : sizeof(StorageObject);
    auto* storage = static_cast<StorageObject*>(pool_.TakeSmall(bytes));
    if (REWIRE_UNLIKELY(storage == nullptr)) return nullptr;
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
    storage->made_as = own_memory ? made_as : 0;
    return storage;
  }
  // Size of the block that a storage takes of a device, or of the memory of the host that a device pins.
  // Pinned memory has the alignment of other blocks; more is bought with room.
  static std::uint64_t DeviceBlockBytes(std::uint64_t size, std::uint64_t alignment, bool pinned) {
    return BlockPool::BlockBytes(size + (pinned && alignment > kBlockAlignment ? alignment : 0));
  }
  // True if NewStorage would make the same as this storage of the VM's, which nothing but one register refers
  // to: then it serves again.
  static bool IsAsNew(const StorageObject& storage, std::uint64_t size, std::uint64_t made_as) {
    return storage.made_as == made_as && storage.size == size && storage.local == 1 && storage.alone() &&
           storage.release == nullptr;
  }
  // Returns true if the storage has memory afterwards.
  bool TakeMemory(StorageObject* storage) { return storage->data != nullptr || TakeNewMemory(storage); }
  // The caller must set all fields before it uses the heap again.
  TupleObject* NewTuple(std::int32_t kind, std::uint32_t tag, std::uint32_t count);

  static void Retain(const RewireFFIAny& value) {
    if (IsObjectKind(value.type_index)) Retain(ObjectOf(value));
  }
  static void Retain(Object* object) {
    REWIRE_ASSERT(object->local != 0, "a dead object of kind {} is used", object->type_index);
    const std::uint32_t local = object->local;  // read once: the compiler may not merge atomic reads
    if (REWIRE_LIKELY(local < kSharing)) {
      object->local = local + 1;
    } else if (local != kUncounted) {
      object->AddStrong();
    }
  }
  void Release(const RewireFFIAny& value) {
    if (IsObjectKind(value.type_index)) Release(ObjectOf(value));
  }
  void Release(Object* object) {
    REWIRE_ASSERT(object->local != 0, "a dead object of kind {} is released", object->type_index);
    const std::uint32_t local = object->local;
    if (REWIRE_LIKELY(local < kSharing)) {
      object->local = local - 1;
      if (local == 1) ReleaseLast(object);
    } else if (local != kUncounted) {
      ReleaseShared(object);
    }
  }
  // The fast path of Release: frees a tensor whose last reference this is, if nobody outside holds it and its
  // storage has other references. Otherwise returns false and does nothing.
  REWIRE_INLINE bool ReleaseFastPath(TensorObject* tensor) {
    return REWIRE_LIKELY(tensor->local == 1 && tensor->alone()) && FreeFastPath(tensor);
  }

  // True if this VM may count references to a Rewire object that a kernel passes to it. It may if the object
  // is its own or may be held by every VM. Another VM may be counting its local objects at this moment.
  bool MayHold(const Object* object) const {
    return AccountOf(object) == account_ || object->local.Seen() >= kShared;
  }

  static bool IsUncounted(const RewireFFIAny& value) {
    return IsObjectKind(value.type_index) && ObjectOf(value)->local == kUncounted;
  }
  // Counts references outside registers, such as set inputs and results. They may outlive the Program that a
  // constant belongs to. So they count references to constants, too.
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

  // Makes a value, and everything it refers to, shared, before it leaves the VM. Local references in
  // registers become strong ones. From then on, references to constants are counted (Unpin).
  void Share(const RewireFFIAny& value);

  void EndOfCall() { pool_.EndOfCall(); }
  void Trim();
  // Trims, and also frees the pool's table if no block needs it. May be called while the heap allocates
  // memory.
  void FreeSpare();
  // Trims, and also frees the pool's table if no object is left.
  void FreeAll() {
    Trim();
    pool_.Release();
  }

  // The streams in whose order memory of devices is taken and freed. Without them it is the default stream's.
  void set_streams(DeviceStreams* streams) { streams_ = streams; }
  // Calls to the VM's devices about its objects, on the VM's thread only.
  struct DeviceHooks {
    // StorageObject::release, if the VM itself has set it: waits for what devices do with the VM's memory.
    void (*release)(void* context) = nullptr;
    // Called in its place when the storage leaves the VM, so that any thread may end it.
    void (*share)(void* context, StorageObject* storage) = nullptr;
    // Takes the VM's reference to an object that others hold, too, and drops it when devices have done what
    // they were given.
    void (*drop)(void* context, Object* object) = nullptr;
    void* context = nullptr;
  };
  void set_device_hooks(const DeviceHooks& hooks) { hooks_ = hooks; }
  // Why the last request for memory of a device failed; success if none has, or since this was last asked.
  Status TakeDeviceFailure() { return std::exchange(device_failure_, Status()); }

  BlockPool& pool() { return pool_; }
  MemoryAccount* account() const { return account_; }

 private:
  static constexpr std::uint64_t kTensorBlock = TensorObject::Bytes(kPooledRank);
  static constexpr std::uint64_t kMaxOwnMemory = BlockPool::kMaxSmall - StorageObject::kOwnMemory;
  static_assert(kTensorBlock <= BlockPool::kMaxSmall && sizeof(StorageObject) <= BlockPool::kMaxSmall);
  static constexpr std::uint64_t kBlockAlignment = 64;    // of every block
  static constexpr std::uint64_t kMaxOwnAlignment = 128;  // what TVM up to 0.9 requires
  static constexpr std::uint64_t OwnMemoryPadding(std::uint64_t alignment) {
    return alignment > kBlockAlignment ? alignment - kBlockAlignment : 0;
  }

  // The block of a storage that has own memory. It includes room for alignment, because the address is not
  // yet known.
  static constexpr std::uint64_t OwnMemoryBytes(std::uint64_t size, std::uint64_t alignment) {
    return StorageObject::kOwnMemory + size + OwnMemoryPadding(alignment);
  }
  // A pool's own alignment serves nearly everyone; more is bought with room.
  static constexpr std::uint64_t MemoryBytes(std::uint64_t size, std::uint64_t alignment) {
    return alignment <= BlockPool::BlockAlignment(size) ? size : size + alignment;
  }

  // The mark of a block that was a tensor of this VM's: its second word, for which it has no references.
  static constexpr std::uint64_t kDeadTensor = static_cast<std::uint64_t>(kTensorKind);

  static void InitLocal(Object* object, std::int32_t kind) { InitObject(object, kind, 1); }
  // The second half of ReleaseFastPath.
  REWIRE_INLINE bool FreeFastPath(TensorObject* tensor) {
    StorageObject* const storage = tensor->storage;
    if (REWIRE_UNLIKELY(tensor->capacity != kPooledRank || storage == nullptr)) return false;
    const std::uint32_t others = storage->local - 1;
    if (REWIRE_UNLIKELY(others - 1 >= kSharing - 2)) return false;  // none, or they are counted atomically
    storage->local = others;
    pool_.GiveSmall(tensor, kTensorBlock, kDeadTensor);
    return true;
  }
  bool TakeNewMemory(StorageObject* storage);
  void GiveMemory(StorageObject* storage);
  bool TakeDeviceMemory(StorageObject* storage);
  bool AllocateOnDevice(StorageObject* storage, std::uint64_t bytes);
  void Fill(StorageObject* storage);
  void ReleaseLast(Object* object);
  void ReleaseSlowPath(Object* object);
  void GiveTensor(TensorObject* tensor);
  void ReleaseShared(Object* object);
  void Drain();
  void ReleaseField(Object* object);
  void Free(TensorObject* tensor);
  void Free(StorageObject* storage);
  void HandOver(Object* object);
  void DropShared(Object* object);
  void DetachBlocks(Object* object);
  void AttachBlocks(Object* object);
  bool CanTakeBack(const Object* object) const;
  void TakeBack(Object* object);

  struct DeviceBlock {
    const DeviceApi* api;
    DLDevice device;
    std::uint64_t bytes;
    std::uint64_t alignment;
    const char* scope;
    void* block;
  };

  MemoryAccount* account_;
  BlockPool pool_;
  StorageFill fill_;
  std::uint32_t least_alignment_;
  TupleObject* pending_ = nullptr;  // tuples with count zero whose fields must still be released
  Array<DeviceBlock> device_blocks_;
  DeviceStreams* streams_ = nullptr;
  DeviceHooks hooks_;
  Status device_failure_;
};

// Makes a contiguous tensor on a device with its own storage and memory. Its contents are undefined, it is
// not read-only, and it has one local reference. Returns null if memory runs out or the size of the shape
// does not fit.
TensorObject* NewHeapTensor(ObjectHeap& heap, const LinkedDevice& device, DLDataType dtype,
                            Span<const std::int64_t> shape, std::uint64_t alignment = 64);

}  // namespace rewire
