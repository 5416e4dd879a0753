// SPDX-License-Identifier: Apache-2.0
//
// The objects that registers hold, and how their references are counted.
//
// A register is a RewireFFIAny: type_index, zero padding, and an integer or a pointer to an object. Objects
// are tvm-ffi objects, so a tensor register can be passed to a kernel unchanged. Each object is in one of
// three modes. The mode is stored in a word of the header that tvm-ffi leaves as padding (`local` below):
//
//   local n      The object belongs to one VM. That VM's registers and objects refer to it n times. The VM
//                counts these references without locked instructions. For all of them together it holds one
//                strong reference in the header's atomic count. Others, such as a kernel that keeps an
//                argument, hold their own strong references.
//   kShared      Every reference is a strong one: results that have left their VM, and objects that hosts
//                make. Objects that a shared object refers to are shared, too.
//   kUncounted   VMs do not count references: constants and parameters, which the Program keeps alive.
//
// When n reaches zero, the VM recycles the object if nobody else holds a strong or weak reference. Otherwise
// the object becomes shared and the VM drops its reference (Release in object_heap.cc). Nothing here
// recurses: releasing a list of a million cells is a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rewire/base/assert.h"
#include "rewire/base/dtype.h"
#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/base/span.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/memory/memory_account.h"
#include "rewire/vm/value/ffi_object.h"

namespace rewire {

// Kinds of registers that only Rewire uses. The kinds of objects lie outside the range of tvm-ffi's run-time
// type indices.
inline constexpr std::int32_t kInt32Kind = -1;             // v_int64 holds the value; boxes as int32
inline constexpr std::int32_t kInt64Kind = kRewireFFIInt;  // boxes as int64
inline constexpr std::int32_t kTensorKind = kRewireFFITensor;
inline constexpr std::int32_t kAdtKind = 0x52570001;
inline constexpr std::int32_t kClosureKind = 0x52570002;
inline constexpr std::int32_t kStorageKind = 0x52570003;

constexpr bool IsObjectKind(std::int32_t kind) { return kind >= kRewireFFIObject; }
constexpr bool IsTupleKind(std::int32_t kind) { return kind == kAdtKind || kind == kClosureKind; }
constexpr bool IsIntegerKind(std::int32_t kind) { return kind == kInt64Kind || kind == kInt32Kind; }

// Every reference is a strong one already, but no other VM may take the object yet: what it refers to is
// still becoming shared (ObjectHeap::Share).
inline constexpr std::uint32_t kSharing = 0xFFFFFFFDu;
inline constexpr std::uint32_t kShared = 0xFFFFFFFEu;
inline constexpr std::uint32_t kUncounted = 0xFFFFFFFFu;

// The word with an object's mode. Only the VM that owns the object changes it. Another VM may read it at the
// same time, because a kernel can keep an object and pass it to both (ObjectHeap::MayHold). So all accesses
// are atomic ones, but none needs a locked instruction.
class LocalCount {
 public:
  REWIRE_INLINE_TINY operator std::uint32_t() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  REWIRE_INLINE_TINY LocalCount& operator=(std::uint32_t value) {
    __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
    return *this;
  }
  REWIRE_INLINE_TINY LocalCount& operator--() { return *this = *this - 1; }
  // Sets the word of a new object, which no other VM can see yet. So the compiler may join it with others.
  REWIRE_INLINE_TINY void Init(std::uint32_t value) { value_ = value; }
  // Set kShared. Whoever sees that with Seen() also sees everything that was written before.
  REWIRE_INLINE_TINY void Publish() { __atomic_store_n(&value_, kShared, __ATOMIC_RELEASE); }
  REWIRE_INLINE_TINY std::uint32_t Seen() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }

 private:
  std::uint32_t value_;
};

// Every object starts with this header. It is a RewireFFIObject whose fields are named for their use here.
struct Object {
  std::uint64_t combined_ref_count;
  std::int32_t type_index;
  LocalCount local;
  void (*deleter)(void* self, int flags);

  // Whether there is one strong reference and no weak one beside it. Then nobody but its holder can reach the
  // object. A weak reference may become a strong one at any time, on any thread, so it counts as somebody.
  REWIRE_INLINE_TINY bool alone() const {
    return __atomic_load_n(&combined_ref_count, __ATOMIC_ACQUIRE) == kNewObjectCount;
  }
  REWIRE_INLINE_TINY void AddStrong(std::uint32_t count = 1) {
    __atomic_fetch_add(&combined_ref_count, std::uint64_t{count}, __ATOMIC_RELAXED);
  }
};
static_assert(sizeof(Object) == sizeof(RewireFFIObject) &&
              offsetof(Object, local) == offsetof(RewireFFIObject, padding));

// The deleter of all Rewire objects. If foreign code drops the last reference, this is called on its thread.
void DeleteObject(void* self, int flags);

// Fills in the header of a new object, with one strong reference.
inline void InitObject(Object* object, std::int32_t kind, std::uint32_t local) {
  object->combined_ref_count = kNewObjectCount;
  object->type_index = kind;
  object->local.Init(local);
  object->deleter = DeleteObject;
}

struct StorageObject;

// A tensor. It starts with tvm-ffi's layout. Its dimensions follow the object: shape[capacity],
// strides[capacity].
struct TensorObject : Object {
  enum Flags : std::uint32_t {
    // Programs must not write it: constants, parameters, inputs, boxed integers, and views of them. Every
    // shared tensor is read-only, because tensors that left a VM may have other users.
    kReadOnly = 1,
    kEmpty = 2,      // a dimension is zero
    kImmutable = 4,  // hosts may not write it either
    // Why an input is a copy of what the host gave.
    kCopiedOnRequest = 8,
    kCopiedStrided = 16,
    kCopiedMisaligned = 32,
    kCopiedFromDevice = 64,
    // Lies in memory that an output was bound to for one call. Its data pointer is cleared when the call
    // returns.
    kForCall = 128,
    // One test for the interpreter: a tensor that must not be a written argument, or whose kernel call may be
    // skipped.
    kNotPlain = kReadOnly | kEmpty,
  };

  DLTensor tensor;
  // Packed into one word, so that headers of kPooledRank dimensions fill their memory blocks exactly.
  union {
    struct {
      std::uint64_t flags : 8;
      std::uint64_t capacity : 8;  // the largest rank that fits behind the object
      // size of its elements in bytes, from tensor.data on; tensors in registers have no gaps
      std::uint64_t bytes : 48;
    };
    // All three at once. A CPU that reads a word waits if it has just written only parts of it.
    std::uint64_t fields;
  };
  static constexpr std::uint64_t FieldsOf(std::uint32_t capacity) { return std::uint64_t{capacity} << 8; }
  void set_bytes(std::uint64_t size) { fields = (fields & 0xFFFF) | size << 16; }
  StorageObject* storage;  // owner of the memory; null for memory borrowed from the caller
  MemoryAccount* account;  // owns this object's memory

  std::int64_t* dims() { return reinterpret_cast<std::int64_t*>(this + 1); }
  static constexpr std::uint64_t Bytes(std::uint32_t capacity) {
    return sizeof(TensorObject) + std::uint64_t{capacity} * 2 * sizeof(std::int64_t);
  }
};
static_assert(sizeof(Object) == offsetof(RewireFFITensorObject, tensor),
              "tvm-ffi reads the DLTensor after the header");

// A storage: memory on a device, or the reservation of it. AllocStorage only reserves; the first tensor that
// needs the memory takes it. A small storage on the host has its memory behind the object in the same block,
// so that only one block is taken and freed.
struct StorageObject : Object {
  void* data;          // aligned; null until the memory is taken
  std::uint64_t size;  // bytes that the program asked for
  std::uint64_t alignment;
  DLDevice device;
  void* block;  // the block that contains `data`; null if not taken or not owned
  std::uint64_t block_bytes;
  MemoryAccount* account;       // owns this object's memory; the host block too
  const DeviceApi* device_api;  // owner of `block` if it is not on the host; null for the host
  const char* scope;            // LinkedDevice::scope
  // For memory that somebody else owns: called once, on any thread, when the last reference is gone.
  void (*release)(void* context);
  void* release_context;
  std::uint64_t object_bytes;  // size of the object's own block, including memory behind the object
  // Tells AllocStorage's operands, if the storage has its own memory: the alignment, and the number of the
  // device plus one above it. Else 0.
  std::uint64_t made_as;

  static constexpr std::uint64_t kOwnMemory = 128;  // the smallest offset at which that memory begins
  void* own_memory(std::uint64_t alignment) {
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(this) + kOwnMemory;
    return reinterpret_cast<void*>((first + alignment - 1) & ~(std::uintptr_t{alignment} - 1));
  }
  bool has_own_memory() const { return object_bytes > kOwnMemory; }
  // Memory of the host that the device has allocated (kPinned); `device` is the device's.
  bool is_pinned() const { return device_api != nullptr && block != nullptr && scope == nullptr; }
};
static_assert(sizeof(StorageObject) <= StorageObject::kOwnMemory);

// An ADT (tag and fields) or a closure (function in `tag`, and captured values). The fields follow the
// object.
struct TupleObject : Object {
  std::uint32_t tag;
  std::uint32_t count;
  MemoryAccount* account;
  TupleObject* next;      // links objects while they are released or converted
  std::uint64_t program;  // number of the Program of a closure; 0 in an ADT

  RewireFFIAny* fields() { return reinterpret_cast<RewireFFIAny*>(this + 1); }
  const RewireFFIAny* fields() const { return reinterpret_cast<const RewireFFIAny*>(this + 1); }
  static constexpr std::uint64_t Bytes(std::uint32_t count) {
    return sizeof(TupleObject) + std::uint64_t{count} * sizeof(RewireFFIAny);
  }
};

// The object of a register, which must hold one of that kind: the caller has looked, or a verifier's rule
// says so.
inline Object* ObjectOf(const RewireFFIAny& value) {
  REWIRE_ASSERT(IsObjectKind(value.type_index), "a value of kind {} read as an object", value.type_index);
  return reinterpret_cast<Object*>(value.v_obj);
}
inline TensorObject* TensorOf(const RewireFFIAny& value) {
  REWIRE_ASSERT(value.type_index == kTensorKind, "a value of kind {} read as a tensor", value.type_index);
  return reinterpret_cast<TensorObject*>(value.v_obj);
}
inline TupleObject* TupleOf(const RewireFFIAny& value) {
  REWIRE_ASSERT(IsTupleKind(value.type_index), "a value of kind {} read as a tuple", value.type_index);
  return reinterpret_cast<TupleObject*>(value.v_obj);
}
inline StorageObject* StorageOf(const RewireFFIAny& value) {
  REWIRE_ASSERT(value.type_index == kStorageKind, "a value of kind {} read as a storage", value.type_index);
  return reinterpret_cast<StorageObject*>(value.v_obj);
}

inline RewireFFIAny MakeAny(std::int32_t kind, void* object) {
  RewireFFIAny any;
  // The kind and the padding at once: a CPU waits that reads as one word what was written as two.
  const std::uint64_t word = static_cast<std::uint32_t>(kind);
  __builtin_memcpy(&any, &word, sizeof(word));
  any.v_ptr = object;
  return any;
}
inline RewireFFIAny MakeInteger(std::int32_t kind, std::int64_t value) {
  RewireFFIAny any;
  any.type_index = kind;
  any.zero_padding = 0;
  any.v_int64 = value;
  return any;
}

// True if the object has one of Rewire's layouts, whichever VM made it.
inline bool IsRewireObject(const Object* object) { return object->deleter == DeleteObject; }

// The account that an object's memory belongs to; null for foreign objects.
inline MemoryAccount* AccountOf(const Object* object) {
  switch (object->type_index) {
    case kTensorKind:
      return static_cast<const TensorObject*>(object)->account;
    case kStorageKind:
      return static_cast<const StorageObject*>(object)->account;
    case kAdtKind:
    case kClosureKind:
      return static_cast<const TupleObject*>(object)->account;
    default:
      return nullptr;  // a foreign object
  }
}

// Drops a strong reference, on any thread. With the last one, releases the object and everything that only it
// held. Handles both Rewire's objects and foreign tvm-ffi objects.
void DropStrong(Object* object);

// Make shared objects outside any VM, with one strong reference, by default in MemoryAccount::Host(). Return
// null if memory runs out. The caller sets the tensor's data, dtype, device and flags; its dims are zero.
TensorObject* NewSharedTensor(std::uint32_t rank, MemoryAccount* account = MemoryAccount::Host());
StorageObject* NewSharedStorage(MemoryAccount* account = MemoryAccount::Host());
// Makes a contiguous tensor on the host with its own memory and undefined contents. The caller must have
// checked the size of the shape.
TensorObject* NewSharedHostTensor(DLDataType dtype, Span<const std::int64_t> shape, MemoryAccount* account);
TupleObject* NewSharedTuple(std::int32_t kind, std::uint32_t tag, std::uint32_t count,
                            MemoryAccount* account = MemoryAccount::Host());

// Sets dtype, rank, shape, row-major strides and bytes from `shape`, which has dimensions [0] to [rank - 1].
// Sets kEmpty in the flags if the tensor is empty. The caller must have checked the size of the shape, which
// is `bytes`.
template <typename Shape>
REWIRE_INLINE void SetContiguousDims(TensorObject* object, DLDataType dtype, const Shape& shape,
                                     std::uint32_t rank, std::uint64_t bytes) {
  std::int64_t* dims = object->dims();
  std::int64_t* strides = dims + object->capacity;
  std::int64_t stride = 1;
  for (std::uint32_t i = rank; i-- > 0;) {
    const std::int64_t dim = shape[i];
    dims[i] = dim;
    strides[i] = stride;
    stride *= dim;
  }
  object->tensor.dtype = dtype;
  object->set_bytes(bytes);
  object->tensor.ndim = static_cast<std::int32_t>(rank);
  object->tensor.shape = dims;
  object->tensor.strides = strides;
  if (REWIRE_UNLIKELY(bytes == 0)) object->flags |= TensorObject::kEmpty;
}

// The same where the size is not at hand.
template <typename Shape>
void SetContiguousDims(TensorObject* object, DLDataType dtype, const Shape& shape, std::uint32_t rank) {
  std::uint64_t bytes = ElementBytes(dtype);
  for (std::uint32_t i = 0; i < rank; ++i) bytes *= static_cast<std::uint64_t>(shape[i]);
  SetContiguousDims(object, dtype, shape, rank, bytes);
}

// Makes a storage around memory that `owner` keeps alive.
StorageObject* NewOwnerStorage(void* data, std::uint64_t size, DLDevice device,
                               std::shared_ptr<const void> owner);

}  // namespace rewire
