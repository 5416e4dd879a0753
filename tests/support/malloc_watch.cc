// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/support/malloc_watch.h"

#include <cstddef>

namespace {
thread_local bool watched = false;
thread_local std::uint64_t calls = 0;

[[maybe_unused]] void NoteCall() {
  if (watched) ++calls;
}
}  // namespace

// All of the process's memory but what the C library takes for itself.
// NOLINTBEGIN(readability-identifier-naming): the C library's names
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);
// NOLINTEND(readability-identifier-naming)
// A sanitizer has an allocator of its own. (clang says so by a feature, g++ by a macro.)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REWIRE_TEST_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REWIRE_TEST_SANITIZED 1
#endif
#if !defined(REWIRE_TEST_SANITIZED)
extern "C" void* malloc(std::size_t size) {
  NoteCall();
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  NoteCall();
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, std::size_t size) {
  NoteCall();
  return __libc_realloc(memory, size);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  NoteCall();
  return __libc_memalign(alignment, size);
}
#endif

namespace rewire::test {

bool MallocIsWatched() {
#if defined(REWIRE_TEST_SANITIZED)
  return false;
#else
  return true;
#endif
}

void StartMallocWatch() {
  calls = 0;
  watched = true;
}

std::uint64_t StopMallocWatch() {
  watched = false;
  return calls;
}

}  // namespace rewire::test
