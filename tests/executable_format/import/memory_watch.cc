// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/import/memory_watch.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t held_now = 0;
std::size_t peak_held = 0;
std::size_t held_at_start = 0;

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) return nullptr;
  held_now += malloc_usable_size(memory);
  peak_held = std::max(peak_held, held_now);
  return memory;
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  held_now -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }

namespace rewire::tvm {

MemoryWatch::MemoryWatch() {
  held_at_start = held_now;
  peak_held = held_now;
}

std::size_t MemoryWatch::peak() const { return peak_held - held_at_start; }

std::size_t MemoryWatch::held() const { return held_now > held_at_start ? held_now - held_at_start : 0; }

}  // namespace rewire::tvm
