// SPDX-License-Identifier: Apache-2.0
// Counting references to tvm-ffi objects, whoever made them.
#pragma once

#include <cstdint>

#include "vm/kernel/ffi_abi.h"

namespace rewire {

inline constexpr std::uint64_t kOneStrong = 1;
inline constexpr std::uint64_t kOneWeak = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kNewObjectCount = kOneStrong | kOneWeak;

inline void RetainObject(RewireFFIObject* object) {
  __atomic_fetch_add(&object->combined_ref_count, kOneStrong, __ATOMIC_RELAXED);
}

// Gives one strong reference back; the last one runs the object's deleter on this thread.
inline void ReleaseObject(RewireFFIObject* object) {
  const std::uint64_t before = __atomic_fetch_sub(&object->combined_ref_count, kOneStrong, __ATOMIC_RELEASE);
  if (static_cast<std::uint32_t>(before) != 1) return;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (object->deleter == nullptr) return;
  if (before == kNewObjectCount) {
    object->deleter(object, kRewireFFIBothGone);
    return;
  }
  // Weak references remain: the memory goes with the last of them, perhaps the one that the strong ones held.
  object->deleter(object, kRewireFFIStrongGone);
  if (__atomic_fetch_sub(&object->combined_ref_count, kOneWeak, __ATOMIC_ACQ_REL) == kOneWeak) {
    object->deleter(object, kRewireFFIWeakGone);
  }
}

// Gives back what an owned value holds, if it is an object, and makes it None.
inline void ReleaseAny(RewireFFIAny* any) {
  if (any->type_index >= kRewireFFIObject && any->v_obj != nullptr) ReleaseObject(any->v_obj);
  *any = RewireFFIAny{};
}

}  // namespace rewire
