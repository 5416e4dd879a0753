// SPDX-License-Identifier: Apache-2.0
// The allocator that a host may put under a VM. All memory of a VM goes through it: objects, stack, storage,
// results.
#pragma once

#include <cstddef>

#include "base/export.h"

namespace rewire {

// Plain C so that it crosses the C API unchanged. The functions may be called from any thread at once (a
// result's last reference may go on any thread). `context` must outlive every Program, VM and result that
// uses the allocator.
struct Allocator {
  void* context = nullptr;
  // `size` bytes at a multiple of `alignment` (a power of two); null when there are none.
  void* (*allocate)(void* context, std::size_t size, std::size_t alignment) = nullptr;
  // Takes back what allocate gave, with the same size and alignment.
  void (*deallocate)(void* context, void* pointer, std::size_t size, std::size_t alignment) = nullptr;
};

// aligned_alloc and free.
REWIRE_API Allocator DefaultAllocator();

}  // namespace rewire
