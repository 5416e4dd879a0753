// SPDX-License-Identifier: Apache-2.0
//
// Reference counting for tvm-ffi objects, whoever made them.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/ffi_abi.h"

namespace rewire {

inline constexpr std::uint64_t kOneStrong = 1;
inline constexpr std::uint64_t kOneWeak = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kNewObjectCount = kOneStrong | kOneWeak;

inline void RetainObject(RewireFFIObject* object) {
  __atomic_fetch_add(&object->combined_ref_count, kOneStrong, __ATOMIC_RELAXED);
}

// Drops a strong reference. Returns true if it was the last one; the caller must then call FinishObject. The
// only reference of any kind needs no locked instruction: nobody else can reach the object.
inline bool DropStrongCount(RewireFFIObject* object) {
  if (__atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE) == kNewObjectCount) {
    __atomic_store_n(&object->combined_ref_count, kOneWeak, __ATOMIC_RELAXED);
    return true;
  }
  const std::uint64_t before = __atomic_fetch_sub(&object->combined_ref_count, kOneStrong, __ATOMIC_ACQ_REL);
  return static_cast<std::uint32_t>(before) == 1;
}

// Drops a weak reference. All strong references together hold one, and foreign code may hold more. Returns
// true if it was the last one.
inline bool DropWeakCount(RewireFFIObject* object) {
  return __atomic_fetch_sub(&object->combined_ref_count, kOneWeak, __ATOMIC_ACQ_REL) == kOneWeak;
}

// Runs the deleter on this thread, after the last strong reference is gone. The memory stays for weak
// references that others hold.
inline void FinishObject(RewireFFIObject* object) {
  if (object->deleter == nullptr) return;
  if (__atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE) == kOneWeak) {
    object->deleter(object, kRewireFFIBothGone);
    return;
  }
  object->deleter(object, kRewireFFIStrongGone);
  if (DropWeakCount(object)) object->deleter(object, kRewireFFIWeakGone);
}

// Drops one strong reference. The last one runs the object's deleter.
inline void ReleaseObject(RewireFFIObject* object) {
  if (DropStrongCount(object)) FinishObject(object);
}

// Releases the object of an owned value, if it holds one, and sets the value to None.
inline void ReleaseAny(RewireFFIAny* any) {
  if (any->type_index >= kRewireFFIObject && any->v_obj != nullptr) ReleaseObject(any->v_obj);
  *any = RewireFFIAny{};
}

}  // namespace rewire
