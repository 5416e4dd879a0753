// SPDX-License-Identifier: Apache-2.0
//
// The files of Rewire's tvm-ffi runtime share this. The exported functions are those of tvm-ffi's C API,
// which its c_api.h and extra/c_env_api.h describe. Comments here only describe what this runtime may choose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/loader/ffi_shim/host.h"
#include "rewire/vm/value/ffi_object.h"

#define REWIRE_FFI_API extern "C" __attribute__((visibility("default")))

namespace rewire::ffi_shim {

// The functions that the VM provides. Null until the loader has bound this library.
const RewireFfiShimHost* Host();

// Sets the calling thread's error. Returns -1, as a failing function does.
int Raise(const char* kind, std::string_view message);
// Copies the VM's error of this thread to the thread's error here. Returns -1.
int RaiseHostError();

// An owned string or bytes value: inline up to seven bytes.
RewireFFIAny NewText(std::string_view text, std::int32_t small_index, std::int32_t object_index);
inline RewireFFIAny NewString(std::string_view text) {
  return NewText(text, kRewireFFISmallStr, kRewireFFIStr);
}

// Turns a borrowed value into an owned one.
RewireFFIAny ToOwned(const RewireFFIAny& view);

inline std::string_view View(const RewireFFIByteArray& bytes) { return {bytes.data, bytes.size}; }

// The header of a new object T, which has `void Drop()` for what goes with the last strong reference.
template <typename T>
RewireFFIObject NewHeader(std::int32_t type_index) {
  return {kNewObjectCount, type_index, 0, [](void* self, int flags) {
            auto* object = static_cast<T*>(self);
            if ((flags & kRewireFFIStrongGone) != 0) object->Drop();
            if ((flags & kRewireFFIWeakGone) != 0) delete object;
          }};
}

}  // namespace rewire::ffi_shim
