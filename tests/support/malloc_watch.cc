// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/support/malloc_watch.h"

#include <link.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {
thread_local bool watched = false;
thread_local std::uint64_t calls = 0;

// The place of oneDNN's code; nowhere if it is not loaded.
struct Code {
  std::uintptr_t begin = 0, end = 0;
};
thread_local Code of_onednn;

Code FindOneDnn() {
  Code code;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* to) {
        if (std::strstr(library->dlpi_name, "/libdnnl.so") == nullptr) return 0;
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = library->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
          *static_cast<Code*>(to) = {begin, begin + segment.p_memsz};
        }
        return 1;
      },
      &code);
  return code;
}

[[maybe_unused]] void NoteCall(const void* caller) {
  if (!watched) return;
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  if (at < of_onednn.begin || at >= of_onednn.end) ++calls;
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
  NoteCall(__builtin_return_address(0));
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  NoteCall(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, std::size_t size) {
  NoteCall(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  NoteCall(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
// The C++ library's own would be malloc's caller in place of theirs.
void* operator new(std::size_t size) {
  NoteCall(__builtin_return_address(0));
  if (void* memory = __libc_malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
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
  of_onednn = FindOneDnn();
  watched = true;
}

std::uint64_t StopMallocWatch() {
  watched = false;
  return calls;
}

}  // namespace rewire::test
