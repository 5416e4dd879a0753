// SPDX-License-Identifier: Apache-2.0
//
// Evacuation: copies a run's result out of an arena that the next run will use.
#pragma once

#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/memory/growing_array.h"

namespace rewire {

// An object and its copy. `local` is the former count of the object.
struct MovedObject {
  Object* from;
  Object* to;
  std::uint32_t local;
};

// Replaces the VM's reference in *value by a shared reference to a copy in `home`. Headers are copied, and
// elements that lie in the heap's own host memory. An object that occurs twice in the result is copied once.
// Memory of the caller, constants, memory of devices, and what kernels allocated elsewhere are not copied.
//
// `table` is scratch memory in `home`. Returns false, with *value unchanged, if there is no memory.
bool Evacuate(ObjectHeap* heap, MemoryAccount* home, GrowingArray<MovedObject>* table, RewireFFIAny* value);

}  // namespace rewire
