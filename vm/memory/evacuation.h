// SPDX-License-Identifier: Apache-2.0
// Evacuation: a run's result is copied out of an arena that the next run will use.
#pragma once

#include "vm/growing_array.h"
#include "vm/memory/object_heap.h"

namespace rewire {

// An object and its copy; `local` is what the object's count was.
struct MovedObject {
  Object* from;
  Object* to;
  std::uint32_t local;
};

// Replaces the VM's reference in *value by a shared one to a copy in `home`: headers, and elements that lie
// in the heap's own host memory. What stands twice in the result is copied once. Memory of the caller's,
// constants, what kernels made elsewhere and memory of devices stay where they are. `table` is scratch in
// `home`. False, with *value unchanged, when there is no memory.
bool Evacuate(ObjectHeap* heap, MemoryAccount* home, GrowingArray<MovedObject>* table, RewireFFIAny* value);

}  // namespace rewire
