// SPDX-License-Identifier: Apache-2.0
// The objects that registers hold, and how they are counted.
//
// A register is a RewireFFIAny: type_index, zero padding, and an integer or a pointer to an object. Objects
// are tvm-ffi objects, so a tensor register is a kernel argument as it stands. Each object is in one of three
// modes, told by the word that tvm-ffi leaves as padding in the header (`local` below):
//
//   local n      The object belongs to one VM, whose registers and objects refer to it n times; that VM
//   counts with plain
//                arithmetic and holds one strong reference in the header's atomic count for all of them.
//                Others (a kernel that keeps an argument) hold strong references of their own.
//   kShared      Every reference is a strong one. Results that have left their VM, and what hosts make. What
//   a shared
//                object refers to is shared, too.
//   kUncounted   Not counted by VMs at all: constants and parameters, which the Program keeps alive.
//
// At local zero the VM reuses the object when its strong reference is the last; otherwise it lets go: the
// object becomes shared and the VM drops its reference (Release in object_heap.cc). Nothing here recurses:
// releasing a list of a million cells is a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/inline.h"
#include "base/span.h"
#include "vm/device/device_api.h"
#include "vm/ffi_object.h"
#include "vm/kernel/ffi_abi.h"
#include "vm/memory/memory_account.h"

namespace rewire {

// Register kinds of Rewire's own. The object kinds lie where tvm-ffi's run-time type indices do not reach.
inline constexpr std::int32_t kInt32Kind = -1;             // v_int64 holds the value; boxes as int32
inline constexpr std::int32_t kInt64Kind = kRewireFFIInt;  // boxes as int64
inline constexpr std::int32_t kTensorKind = kRewireFFITensor;
inline constexpr std::int32_t kAdtKind = 0x52570001;
inline constexpr std::int32_t kClosureKind = 0x52570002;
inline constexpr std::int32_t kStorageKind = 0x52570003;

constexpr bool IsObjectKind(std::int32_t kind) { return kind >= kRewireFFIObject; }
constexpr bool IsTupleKind(std::int32_t kind) { return kind == kAdtKind || kind == kClosureKind; }
constexpr bool IsIntegerKind(std::int32_t kind) { return kind == kInt64Kind || kind == kInt32Kind; }

inline constexpr std::uint32_t kShared = 0xFFFFFFFEu;
inline constexpr std::uint32_t kUncounted = 0xFFFFFFFFu;

// Every object starts with this: RewireFFIObject with its fields named for their use here.
struct Object {
  std::uint64_t combined_ref_count;
  std::int32_t type_index;
  std::uint32_t local;
  void (*deleter)(void* self, int flags);

  std::uint32_t strong() const {
    return static_cast<std::uint32_t>(__atomic_load_n(&combined_ref_count, __ATOMIC_ACQUIRE));
  }
  void AddStrong(std::uint32_t count = 1) {
    __atomic_fetch_add(&combined_ref_count, std::uint64_t{count}, __ATOMIC_RELAXED);
  }
};
static_assert(sizeof(Object) == sizeof(RewireFFIObject) &&
              offsetof(Object, local) == offsetof(RewireFFIObject, padding));

// The deleter of every object of Rewire's. Foreign code that drops the last reference comes in here, on any
// thread.
void DeleteObject(void* self, int flags);

// Fills in the header of a new object: one strong reference.
inline void InitObject(Object* object, std::int32_t kind, std::uint32_t local) {
  object->combined_ref_count = kNewObjectCount;
  object->type_index = kind;
  object->local = local;
  object->deleter = DeleteObject;
}

struct StorageObject;

// A tensor: tvm-ffi's layout first. Its dimensions stand behind it: shape[capacity], strides[capacity].
struct TensorObject : Object {
  enum Flags : std::uint32_t {
    // Programs may not write it: constants, parameters, inputs, boxed integers, and views of them. Every
    // shared
    // tensor is: what has left a VM is nobody's scratch.
    kReadOnly = 1,
    kEmpty = 2,      // a dimension is zero
    kImmutable = 4,  // hosts may not write it either
    // Why an input is a copy of what the host gave.
    kCopiedOnRequest = 8,
    kCopiedStrided = 16,
    kCopiedMisaligned = 32,
    kCopiedFromDevice = 64,
    // What a kernel must not be handed as a written argument, or whose call may be skipped: the interpreter's
    // one test.
    kNotPlain = kReadOnly | kEmpty,
  };

  DLTensor tensor;
  std::uint32_t flags;
  std::uint32_t capacity;  // rank that fits behind the object
  StorageObject* storage;  // what holds the memory; null for memory borrowed from the caller
  MemoryAccount* account;  // owns this object's memory

  std::int64_t* dims() { return reinterpret_cast<std::int64_t*>(this + 1); }
  static constexpr std::uint64_t Bytes(std::uint32_t capacity) {
    return sizeof(TensorObject) + std::uint64_t{capacity} * 2 * sizeof(std::int64_t);
  }
};
static_assert(sizeof(Object) == offsetof(RewireFFITensorObject, tensor),
              "tvm-ffi reads the DLTensor after the header");

// Memory on a device, or the promise of it: AllocStorage reserves, and the first tensor that needs it takes
// it. A small storage of the host has its memory in its own block, behind the object: one block to take and
// give back.
struct StorageObject : Object {
  void* data;          // aligned; null until taken
  std::uint64_t size;  // bytes asked for
  std::uint64_t alignment;
  DLDevice device;
  void* block;  // what `data` lies in; null when not taken or not ours
  std::uint64_t block_bytes;
  MemoryAccount* account;       // owns this object's memory; the host block too
  const DeviceApi* device_api;  // owns `block` when it is not the host's; null for the host
  const char* scope;            // memory scope on the device; the executable\'s
  // Memory that somebody else owns: called once, when the last reference goes, on any thread.
  void (*release)(void* context);
  void* release_context;
  std::uint64_t object_bytes;  // of the object's own block: more than the object's for memory behind it

  static constexpr std::uint64_t kOwnMemory = 128;  // where that begins at the earliest
  void* own_memory(std::uint64_t alignment) {
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(this) + kOwnMemory;
    return reinterpret_cast<void*>((first + alignment - 1) & ~(std::uintptr_t{alignment} - 1));
  }
  bool has_own_memory() const { return object_bytes > kOwnMemory; }
};
static_assert(sizeof(StorageObject) <= StorageObject::kOwnMemory);

// An ADT (tag, fields) or a closure (function in `tag`, captured values). The fields stand behind it.
struct TupleObject : Object {
  std::uint32_t tag;
  std::uint32_t count;
  MemoryAccount* account;
  TupleObject* next;      // links objects that are being released or converted
  std::uint64_t program;  // a closure\'s Program, by its number; 0 in an ADT

  RewireFFIAny* fields() { return reinterpret_cast<RewireFFIAny*>(this + 1); }
  const RewireFFIAny* fields() const { return reinterpret_cast<const RewireFFIAny*>(this + 1); }
  static constexpr std::uint64_t Bytes(std::uint32_t count) {
    return sizeof(TupleObject) + std::uint64_t{count} * sizeof(RewireFFIAny);
  }
};

inline Object* ObjectOf(const RewireFFIAny& value) { return reinterpret_cast<Object*>(value.v_obj); }
inline TensorObject* TensorOf(const RewireFFIAny& value) {
  return reinterpret_cast<TensorObject*>(value.v_obj);
}
inline TupleObject* TupleOf(const RewireFFIAny& value) { return reinterpret_cast<TupleObject*>(value.v_obj); }
inline StorageObject* StorageOf(const RewireFFIAny& value) {
  return reinterpret_cast<StorageObject*>(value.v_obj);
}

inline RewireFFIAny MakeAny(std::int32_t kind, void* object) {
  RewireFFIAny any;
  any.type_index = kind;
  any.zero_padding = 0;
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

// True for objects of Rewire's own layout, whatever VM made them.
bool IsRewireObject(const Object* object);

// Drops a strong reference from any thread; at the last, releases the object and all that only it held.
// Understands Rewire's objects and foreign tvm-ffi ones.
void DropStrong(Object* object);

// Shared objects outside any VM, in MemoryAccount::Host() unless said otherwise, with one strong reference.
// Null when memory runs out. The tensor's data, dtype, device and flags are the caller's to set; its dims are
// zero.
TensorObject* NewSharedTensor(std::uint32_t rank, MemoryAccount* account = MemoryAccount::Host());
StorageObject* NewSharedStorage(MemoryAccount* account = MemoryAccount::Host());
// Contiguous on the host, with elements of its own, contents undefined. The shape's bytes must have been
// checked.
TensorObject* NewSharedHostTensor(DLDataType dtype, Span<const std::int64_t> shape, MemoryAccount* account);
TupleObject* NewSharedTuple(std::int32_t kind, std::uint32_t tag, std::uint32_t count,
                            MemoryAccount* account = MemoryAccount::Host());

// Sets rank, shape and row-major strides from `shape`, anything with dimensions [0] to [rank - 1], and adds
// kEmpty to the flags of an empty one; returns the element count. The shape's product must have been checked.
template <typename Shape>
REWIRE_INLINE std::int64_t SetContiguousDims(TensorObject* object, const Shape& shape, std::uint32_t rank) {
  std::int64_t* dims = object->dims();
  std::int64_t* strides = dims + object->capacity;
  std::int64_t stride = 1;
  for (std::uint32_t i = rank; i-- > 0;) {
    const std::int64_t dim = shape[i];
    dims[i] = dim;
    strides[i] = stride;
    stride *= dim;
  }
  object->tensor.ndim = static_cast<std::int32_t>(rank);
  object->tensor.shape = dims;
  object->tensor.strides = strides;
  if (__builtin_expect(stride == 0, 0)) object->flags |= TensorObject::kEmpty;
  return stride;
}

// Storage around memory that `owner` keeps alive.
StorageObject* NewOwnerStorage(void* data, std::uint64_t size, DLDevice device,
                               std::shared_ptr<const void> owner);

}  // namespace rewire
