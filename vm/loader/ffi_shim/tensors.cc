// SPDX-License-Identifier: Apache-2.0
// Tensor objects from and to DLPack.
#include <vector>

#include "rewire/vm/kernel/dlpack_versioned.h"
#include "rewire/vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {
namespace {

// A tensor over somebody else's memory. Owns its shape, and strides also where DLPack leaves them out: C++
// kernels count on them.
struct TensorObject {
  RewireFFIObject header;
  DLTensor tensor;
  std::vector<std::int64_t> dims;  // shape, then strides
  void (*release)(void* owner);
  void* owner;

  void Drop() {
    if (release != nullptr) release(owner);
    release = nullptr;
  }
};

TensorObject* NewTensor(const DLTensor& from, void* owner, void (*release)(void*)) {
  auto* object = new TensorObject{NewHeader<TensorObject>(kRewireFFITensor), from, {}, release, owner};
  const auto rank = static_cast<std::size_t>(from.ndim);
  object->dims.resize(2 * rank);
  std::int64_t* strides = object->dims.data() + rank;
  std::int64_t contiguous = 1;
  for (std::size_t i = rank; i-- > 0;) {
    object->dims[i] = from.shape[i];
    strides[i] = from.strides != nullptr ? from.strides[i] : contiguous;
    contiguous *= from.shape[i];
  }
  object->tensor.shape = object->dims.data();
  object->tensor.strides = strides;
  return object;
}

bool IsContiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

template <typename Managed>
int FromDLPack(Managed* from, std::int32_t alignment, std::int32_t require_contiguous, void** out) {
  const DLTensor& tensor = from->dl_tensor;
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  if (alignment > 0 && address % static_cast<std::uint64_t>(alignment) != 0) {
    return Raise("RuntimeError",
                 "the DLPack tensor's data is not aligned to " + std::to_string(alignment) + " bytes");
  }
  if (require_contiguous != 0 && !IsContiguous(tensor)) {
    return Raise("RuntimeError", "the DLPack tensor is not contiguous");
  }
  *out = NewTensor(tensor, from, [](void* owner) {
    auto* managed = static_cast<Managed*>(owner);
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
  return 0;
}

// The DLPack form of a tensor object, which it keeps alive.
template <typename Managed>
int ToDLPack(void* from, Managed** out) {
  auto* object = static_cast<RewireFFITensorObject*>(from);
  if (object->header.type_index != kRewireFFITensor) {
    return Raise("TypeError",
                 "expected a tensor object, got type index " + std::to_string(object->header.type_index));
  }
  auto* managed = new Managed{};
  RetainObject(&object->header);
  managed->dl_tensor = object->tensor;
  managed->manager_ctx = object;
  managed->deleter = [](Managed* self) {
    ReleaseObject(static_cast<RewireFFIObject*>(self->manager_ctx));
    delete self;
  };
  *out = managed;
  return 0;
}

}  // namespace

REWIRE_FFI_API int TVMFFITensorFromDLPack(DLManagedTensor* from, std::int32_t alignment,
                                          std::int32_t require_contiguous, void** out) {
  return FromDLPack(from, alignment, require_contiguous, out);
}

REWIRE_FFI_API int TVMFFITensorFromDLPackVersioned(DLManagedTensorVersioned* from, std::int32_t alignment,
                                                   std::int32_t require_contiguous, void** out) {
  // Another major version may have all but the version in other places.
  if (from->version.major != kDLPackMajor) {
    return Raise("RuntimeError", "DLPack version " + std::to_string(from->version.major) + "." +
                                     std::to_string(from->version.minor) + " given, " +
                                     std::to_string(kDLPackMajor) + ".x expected");
  }
  return FromDLPack(from, alignment, require_contiguous, out);
}

REWIRE_FFI_API int TVMFFITensorToDLPack(void* from, DLManagedTensor** out) { return ToDLPack(from, out); }

REWIRE_FFI_API int TVMFFITensorToDLPackVersioned(void* from, DLManagedTensorVersioned** out) {
  if (const int status = ToDLPack(from, out); status != 0) return status;
  (*out)->version = {kDLPackMajor, 0};
  return 0;
}

REWIRE_FFI_API int TVMFFITensorCreateUnsafeView(void* source, const DLTensor* prototype, void** out) {
  auto* object = static_cast<RewireFFIObject*>(source);
  RetainObject(object);
  *out =
      NewTensor(*prototype, object, [](void* owner) { ReleaseObject(static_cast<RewireFFIObject*>(owner)); });
  return 0;
}

}  // namespace rewire::ffi_shim
