// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value/objects.h"

#include <cstring>
#include <new>

#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

namespace {

void* TakeObjectMemory(MemoryAccount* account, std::uint64_t bytes) {
  const std::uint64_t block = BlockPool::BlockBytes(bytes);
  return account->Allocate(block, BlockPool::BlockAlignment(block));
}

RewireFFIObject* HeaderOf(Object* object) { return reinterpret_cast<RewireFFIObject*>(object); }

std::uint64_t ObjectBytes(Object* object) {
  switch (object->type_index) {
    case kTensorKind:
      return TensorObject::Bytes(static_cast<TensorObject*>(object)->capacity);
    case kStorageKind:
      return static_cast<StorageObject*>(object)->object_bytes;
    default:
      return TupleObject::Bytes(static_cast<TupleObject*>(object)->count);
  }
}

// Each of the next three deallocates memory and returns its bytes, which the account still counts. So a
// tensor and its storage are uncounted at once, with one locked instruction.
std::uint64_t Deallocate(MemoryAccount* account, void* block, std::uint64_t bytes) {
  account->Deallocate(block, bytes, BlockPool::BlockAlignment(bytes));
  return bytes;
}

std::uint64_t DeallocateObject(Object* object) {
  return Deallocate(AccountOf(object), object, BlockPool::BlockBytes(ObjectBytes(object)));
}

std::uint64_t DestroyStorage(StorageObject* storage) {
  std::uint64_t bytes = 0;
  if (storage->block != nullptr && storage->device_api != nullptr) {
    // Nobody waits here who could be told of a failure.
    (void)FreeBlock(*storage->device_api, storage->device, storage->scope, nullptr, storage->block);
    storage->account->Refund(storage->block_bytes);
  } else if (storage->block != nullptr) {
    bytes = Deallocate(storage->account, storage->block, storage->block_bytes);
  }
  if (storage->release != nullptr) storage->release(storage->release_context);
  return bytes;
}

// Releases what a dead tensor refers to. Returns the bytes that the tensor's account still counts of it.
std::uint64_t DestroyTensor(TensorObject* tensor) {
  StorageObject* const storage = tensor->storage;
  if (storage == nullptr || !DropStrongCount(HeaderOf(storage))) return 0;
  const bool ends = storage->deleter == DeleteObject && storage->account == tensor->account &&
                    __atomic_load_n(&storage->combined_ref_count, __ATOMIC_ACQUIRE) == kOneWeak;
  if (ends) {
    const std::uint64_t bytes = DestroyStorage(storage);
    return bytes + Deallocate(tensor->account, storage, BlockPool::BlockBytes(storage->object_bytes));
  }
  FinishObject(HeaderOf(storage));
  return 0;
}

// Releases what a dead tuple refers to. Tuples whose last reference is dropped meanwhile are put on a list,
// so that depth needs no stack.
void DestroyTuple(TupleObject* first) {
  TupleObject* pending = nullptr;
  auto drop = [&pending](Object* object) {
    if (!DropStrongCount(HeaderOf(object))) return;
    if (object->deleter == DeleteObject && IsTupleKind(object->type_index)) {
      auto* tuple = static_cast<TupleObject*>(object);
      tuple->next = pending;
      pending = tuple;
    } else {
      FinishObject(HeaderOf(object));
    }
  };
  auto drop_fields = [&drop](TupleObject* tuple) {
    for (std::uint32_t i = 0; i < tuple->count; ++i) {
      if (IsObjectKind(tuple->fields()[i].type_index)) drop(ObjectOf(tuple->fields()[i]));
    }
  };
  drop_fields(first);
  while (pending != nullptr) {
    TupleObject* tuple = pending;
    pending = tuple->next;
    drop_fields(tuple);
    if (DropWeakCount(HeaderOf(tuple))) tuple->account->Uncount(DeallocateObject(tuple));
  }
}

// The same for any dead object.
std::uint64_t Destroy(Object* object) {
  switch (object->type_index) {
    case kTensorKind:
      return DestroyTensor(static_cast<TensorObject*>(object));
    case kStorageKind:
      return DestroyStorage(static_cast<StorageObject*>(object));
    default:
      DestroyTuple(static_cast<TupleObject*>(object));
      return 0;
  }
}

}  // namespace

void DeleteObject(void* self, int flags) {
  auto* object = static_cast<Object*>(self);
  MemoryAccount* const account = AccountOf(object);
  std::uint64_t bytes = 0;
  if ((flags & kRewireFFIStrongGone) != 0) bytes = Destroy(object);
  if ((flags & kRewireFFIWeakGone) != 0) bytes += DeallocateObject(object);
  if (bytes != 0) account->Uncount(bytes);
}

void DropStrong(Object* object) { ReleaseObject(HeaderOf(object)); }

TensorObject* NewSharedTensor(std::uint32_t rank, MemoryAccount* account) {
  void* memory = TakeObjectMemory(account, TensorObject::Bytes(rank));
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, TensorObject::Bytes(rank));
  auto* tensor = new (memory) TensorObject;
  InitObject(tensor, kTensorKind, kShared);
  tensor->capacity = rank;
  tensor->account = account;
  tensor->flags = TensorObject::kReadOnly;
  tensor->tensor.ndim = static_cast<std::int32_t>(rank);
  tensor->tensor.shape = tensor->dims();
  tensor->tensor.strides = tensor->dims() + rank;
  return tensor;
}

StorageObject* NewSharedStorage(MemoryAccount* account) {
  void* memory = TakeObjectMemory(account, sizeof(StorageObject));
  if (memory == nullptr) return nullptr;
  auto* storage = new (memory) StorageObject{};
  InitObject(storage, kStorageKind, kShared);
  storage->account = account;
  storage->object_bytes = sizeof(StorageObject);
  return storage;
}

[[gnu::cold]] TensorObject* NewSharedHostTensor(DLDataType dtype, Span<const std::int64_t> shape,
                                                MemoryAccount* account) {
  const auto rank = static_cast<std::uint32_t>(shape.size());
  TensorObject* tensor = NewSharedTensor(rank, account);
  StorageObject* storage = tensor == nullptr ? nullptr : NewSharedStorage(account);
  if (storage == nullptr) {
    if (tensor != nullptr) DropStrong(tensor);
    return nullptr;
  }
  tensor->storage = storage;
  storage->size = TensorBytes(dtype, shape).value_or(0);
  storage->device = kHost;
  storage->block_bytes = BlockPool::BlockBytes(storage->size);
  storage->block = account->Allocate(storage->block_bytes, BlockPool::BlockAlignment(storage->block_bytes));
  if (storage->block == nullptr) {
    DropStrong(tensor);
    return nullptr;
  }
  storage->data = storage->block;
  SetContiguousDims(tensor, dtype, shape.data(), rank);
  tensor->tensor.data = storage->data;
  tensor->tensor.device = kHost;
  return tensor;
}

TupleObject* NewSharedTuple(std::int32_t kind, std::uint32_t tag, std::uint32_t count,
                            MemoryAccount* account) {
  void* memory = TakeObjectMemory(account, TupleObject::Bytes(count));
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, TupleObject::Bytes(count));
  auto* tuple = new (memory) TupleObject;
  InitObject(tuple, kind, kShared);
  tuple->tag = tag;
  tuple->count = count;
  tuple->account = account;
  return tuple;
}

StorageObject* NewOwnerStorage(void* data, std::uint64_t size, DLDevice device,
                               std::shared_ptr<const void> owner) {
  StorageObject* storage = NewSharedStorage();
  if (storage == nullptr) return nullptr;
  auto* kept = new (std::nothrow) std::shared_ptr<const void>(std::move(owner));
  if (kept == nullptr) {
    DropStrong(storage);
    return nullptr;
  }
  storage->data = data;
  storage->size = size;
  storage->device = device;
  storage->release = [](void* context) { delete static_cast<std::shared_ptr<const void>*>(context); };
  storage->release_context = kept;
  return storage;
}

}  // namespace rewire
