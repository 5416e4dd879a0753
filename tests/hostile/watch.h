// SPDX-License-Identifier: Apache-2.0
// Watches heap memory (where the address sanitizer is on, which counts it) and time of the CPU, which other
// processes do not lengthen. And an allocator for programs that knows what it
// has given out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/vm/allocator.h"

namespace rewire::hostile {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Heap bytes that are in use in this process; 0 where nobody counts them.
std::int64_t HeapBytes();
// From here on the most of them is kept anew.
void RestartHeapPeak();
std::int64_t HeapPeak();

// Milliseconds that this thread has run.
double CpuMilliseconds();

// Counts what a program takes, and fails on demand.
class CountingAllocator {
 public:
  Allocator Get();
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t calls() const { return calls_; }
  // False when something came back with another size or alignment than it was taken with.
  bool balanced() const { return balanced_; }
  // The allocation after so many more fails, and all that follow. Negative: none.
  void FailAfter(std::int64_t more) { fail_after_ = more; }

 private:
  static void* Allocate(void* context, std::size_t size, std::size_t alignment);
  static void Deallocate(void* context, void* pointer, std::size_t size, std::size_t alignment);

  std::uint64_t bytes_ = 0;
  std::uint64_t calls_ = 0;
  std::int64_t fail_after_ = -1;
  bool balanced_ = true;
};

}  // namespace rewire::hostile
