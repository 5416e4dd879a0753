// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/allocator.h>.
//
// Allocator: the memory functions that a host may give to its VMs. All memory of a VM comes from them:
// objects, stack, storage and results.
#pragma once

#include <cstddef>

#include "rewire/base/export.h"

namespace rewire {

// Plain C, so that the C API can pass it on unchanged. `context` must outlive every Program, VM and result
// that uses the allocator.
//
// Several threads may call the functions at once, because the last reference to a result may be released on
// any thread. The VM calls them in the middle of its work. So they must not call Rewire and must not throw.
struct Allocator {
  void* context = nullptr;
  // Returns `size` bytes at a multiple of `alignment` (a power of two), or null if there is no memory.
  void* (*allocate)(void* context, std::size_t size, std::size_t alignment) = nullptr;
  // Frees what `allocate` returned. Size and alignment are those of the allocation.
  void (*deallocate)(void* context, void* pointer, std::size_t size, std::size_t alignment) = nullptr;
};

// Uses malloc, aligned_alloc and free.
REWIRE_API Allocator DefaultAllocator();

}  // namespace rewire
