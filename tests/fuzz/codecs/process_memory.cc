// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/codecs/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

// Set by the only thread.
bool counting = false;
std::int64_t allocated = 0, most = 0;

[[maybe_unused]] void* Took(void* memory) {
  if (counting && memory != nullptr) {
    allocated += static_cast<std::int64_t>(malloc_usable_size(memory));
    most = std::max(most, allocated);
  }
  return memory;
}
[[maybe_unused]] void Gives(void* memory) {
  if (counting && memory != nullptr) allocated -= static_cast<std::int64_t>(malloc_usable_size(memory));
}

}  // namespace

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define REWIRE_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REWIRE_TEST_SANITIZED 1
#endif

#if !defined(REWIRE_TEST_SANITIZED)
// NOLINTBEGIN(readability-identifier-naming): the C library's names
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);
extern "C" void __libc_free(void* memory);
// NOLINTEND(readability-identifier-naming)
extern "C" void* malloc(std::size_t size) { return Took(__libc_malloc(size)); }
extern "C" void* calloc(std::size_t count, std::size_t size) { return Took(__libc_calloc(count, size)); }
extern "C" void* realloc(void* memory, std::size_t size) {
  const std::int64_t before = memory == nullptr ? 0 : static_cast<std::int64_t>(malloc_usable_size(memory));
  void* moved = __libc_realloc(memory, size);
  if (counting && (moved != nullptr || size == 0)) allocated -= before;
  return Took(moved);
}
extern "C" void* memalign(std::size_t alignment, std::size_t size) {
  return Took(__libc_memalign(alignment, size));
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return Took(__libc_memalign(alignment, size));
}
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = Took(__libc_memalign(alignment, size));
  return *memory == nullptr ? 12 : 0;
}
extern "C" void free(void* memory) {
  Gives(memory);
  __libc_free(memory);
}
#endif

namespace rewire::test {
namespace {

std::int64_t FieldOf(const char* path, const char* format) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  char line[256];
  long long found = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr && std::sscanf(line, format, &found) != 1) {
  }
  std::fclose(file);
  return found;
}

}  // namespace

bool AllocationsAreCounted() {
#if defined(REWIRE_TEST_SANITIZED)
  return false;
#else
  return true;
#endif
}

void StartCounting() {
  allocated = most = 0;
  counting = true;
}

Allocations StopCounting() {
  counting = false;
  return {most, allocated};
}

std::int64_t Resident() { return FieldOf("/proc/self/status", "VmRSS: %lld kB") * 1024; }

// The kernel's own figure, which costs one call.
std::int64_t MostResident() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void ResetMostResident() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, "5", 1) != 1) std::perror("codec_drill: /proc/self/clear_refs");
  close(file);
}

}  // namespace rewire::test
