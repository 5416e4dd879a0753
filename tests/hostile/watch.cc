// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/watch.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#define REWIRE_HOSTILE_HOOKS 1
#endif
#endif

namespace rewire::hostile {
namespace {

std::int64_t heap_bytes = 0;
std::int64_t heap_peak = 0;

#ifdef REWIRE_HOSTILE_HOOKS
void OnMalloc(const volatile void* /*pointer*/, std::size_t size) {
  heap_bytes += static_cast<std::int64_t>(size);
  heap_peak = std::max(heap_peak, heap_bytes);
}
void OnFree(const volatile void* pointer) {
  if (pointer == nullptr) return;
  heap_bytes -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(pointer));
}
const int kInstalled = __sanitizer_install_malloc_and_free_hooks(&OnMalloc, &OnFree);
#endif

}  // namespace

std::int64_t HeapBytes() { return heap_bytes; }
void RestartHeapPeak() { heap_peak = heap_bytes; }
std::int64_t HeapPeak() { return heap_peak; }

double CpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Allocator CountingAllocator::Get() { return {this, &Allocate, &Deallocate}; }

// The size and alignment that a block was taken with stand in front of it.
struct Front {
  std::size_t size, alignment;
};

void* CountingAllocator::Allocate(void* context, std::size_t size, std::size_t alignment) {
  auto* self = static_cast<CountingAllocator*>(context);
  ++self->calls_;
  if (self->fail_after_ == 0) return nullptr;
  if (self->fail_after_ > 0) --self->fail_after_;
  const std::size_t front = std::max(alignment, sizeof(Front));
  void* block = nullptr;
  if (size > PTRDIFF_MAX - front || posix_memalign(&block, front, front + size) != 0) return nullptr;
  char* given = static_cast<char*>(block) + front;
  *(reinterpret_cast<Front*>(given) - 1) = {size, alignment};
  self->bytes_ += size;
  return given;
}

void CountingAllocator::Deallocate(void* context, void* pointer, std::size_t size, std::size_t alignment) {
  if (pointer == nullptr) return;
  auto* self = static_cast<CountingAllocator*>(context);
  const Front& front = *(static_cast<Front*>(pointer) - 1);
  if (front.size != size || front.alignment != alignment) self->balanced_ = false;
  self->bytes_ -= front.size;
  std::free(static_cast<char*>(pointer) - std::max(front.alignment, sizeof(Front)));
}

}  // namespace rewire::hostile
