// SPDX-License-Identifier: Apache-2.0
// Binding to the VM, reference counts, strings, handles made once.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "rewire/vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {
namespace {

std::atomic<const RewireFfiShimHost*> g_host{nullptr};

// A string or bytes object with its characters behind it.
struct TextObject {
  RewireFFIObject header;
  RewireFFIByteArray cell;
};

// An object around a foreign handle.
struct OpaqueObject {
  RewireFFIObject header;
  void* handle;
  void (*deleter)(void* handle);

  void Drop() const {
    if (deleter != nullptr) deleter(handle);
  }
};

// Initializers may initialize other handles.
std::recursive_mutex& OnceMutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

}  // namespace

const RewireFfiShimHost* Host() { return g_host.load(std::memory_order_acquire); }

RewireFFIAny NewText(std::string_view text, std::int32_t small_index, std::int32_t object_index) {
  RewireFFIAny any{};
  if (text.size() < sizeof(any.v_bytes)) {
    any.type_index = small_index;
    any.small_str_len = static_cast<std::uint32_t>(text.size());
    if (!text.empty()) std::memcpy(any.v_bytes, text.data(), text.size());
    return any;
  }
  auto* memory = static_cast<char*>(std::malloc(sizeof(TextObject) + text.size() + 1));
  if (memory == nullptr) throw std::bad_alloc();
  char* characters = memory + sizeof(TextObject);
  std::memcpy(characters, text.data(), text.size());
  characters[text.size()] = '\0';
  auto* object =
      new (memory) TextObject{{kNewObjectCount, object_index, 0, nullptr}, {characters, text.size()}};
  object->header.deleter = [](void* self, int flags) {
    if ((flags & kRewireFFIWeakGone) != 0) std::free(self);
  };
  any.type_index = object_index;
  any.v_obj = &object->header;
  return any;
}

RewireFFIAny ToOwned(const RewireFFIAny& view) {
  if (view.type_index == kRewireFFIRawStr) return NewString(view.v_c_str);
  if (view.type_index == kRewireFFIByteArrayPtr) {
    return NewText(View(*static_cast<const RewireFFIByteArray*>(view.v_ptr)), kRewireFFISmallBytes,
                   kRewireFFIBytes);
  }
  if (view.type_index == kRewireFFIRValueRef) {
    // The caller gives its reference away.
    auto** source = static_cast<RewireFFIObject**>(view.v_ptr);
    RewireFFIAny any{};
    if (*source != nullptr) {
      any.type_index = (*source)->type_index;
      any.v_obj = *source;
      *source = nullptr;
    }
    return any;
  }
  if (view.type_index >= kRewireFFIObject) RetainObject(view.v_obj);
  return view;
}

REWIRE_FFI_API void rewire_ffi_shim_bind(const RewireFfiShimHost* host) {
  g_host.store(host, std::memory_order_release);
}

// The C API that this library follows.
REWIRE_FFI_API void TVMFFIGetVersion(std::uint32_t* major_minor_patch) {
  major_minor_patch[0] = 0;
  major_minor_patch[1] = 1;
  major_minor_patch[2] = 14;
}

REWIRE_FFI_API int TVMFFIObjectIncRef(void* object) {
  RetainObject(static_cast<RewireFFIObject*>(object));
  return 0;
}

REWIRE_FFI_API int TVMFFIObjectDecRef(void* object) {
  ReleaseObject(static_cast<RewireFFIObject*>(object));
  return 0;
}

REWIRE_FFI_API int TVMFFIObjectCreateOpaque(void* handle, std::int32_t type_index, void (*deleter)(void*),
                                            void** out) {
  *out = new OpaqueObject{NewHeader<OpaqueObject>(type_index), handle, deleter};
  return 0;
}

REWIRE_FFI_API int TVMFFIAnyViewToOwnedAny(const RewireFFIAny* view, RewireFFIAny* out) {
  *out = ToOwned(*view);
  return 0;
}

REWIRE_FFI_API int TVMFFIStringFromByteArray(const RewireFFIByteArray* input, RewireFFIAny* out) {
  *out = NewString(View(*input));
  return 0;
}

REWIRE_FFI_API int TVMFFIBytesFromByteArray(const RewireFFIByteArray* input, RewireFFIAny* out) {
  *out = NewText(View(*input), kRewireFFISmallBytes, kRewireFFIBytes);
  return 0;
}

REWIRE_FFI_API int TVMFFIHandleInitOnce(void** slot, int (*init)(void** result)) {
  auto* shared = reinterpret_cast<std::atomic<void*>*>(slot);
  if (shared->load(std::memory_order_acquire) != nullptr) return 0;
  const std::lock_guard<std::recursive_mutex> lock(OnceMutex());
  if (shared->load(std::memory_order_relaxed) != nullptr) return 0;
  void* made = nullptr;
  const int status = init(&made);
  if (status == 0) shared->store(made, std::memory_order_release);
  return status;
}

REWIRE_FFI_API int TVMFFIHandleDeinitOnce(void** slot, int (*deinit)(void* handle)) {
  const std::lock_guard<std::recursive_mutex> lock(OnceMutex());
  void* handle = reinterpret_cast<std::atomic<void*>*>(slot)->exchange(nullptr);
  return handle == nullptr ? 0 : deinit(handle);
}

}  // namespace rewire::ffi_shim
