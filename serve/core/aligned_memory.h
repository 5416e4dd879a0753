// SPDX-License-Identifier: Apache-2.0
//
// Memory for tensors, at addresses that kernels take as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace rewire::serve {

// Kernels ask for at most this alignment.
inline constexpr std::size_t kTensorAlignment = 64;

struct FreeAligned {
  // The byte before the memory says how far it lies behind what malloc gave.
  void operator()(std::byte* memory) const { std::free(memory - static_cast<std::size_t>(memory[-1])); }
};
using AlignedMemory = std::unique_ptr<std::byte, FreeAligned>;

// Uninitialized memory; null if there is none. It is aligned by hand, because malloc has lists of
// small blocks for each thread, and the aligned functions of glibc 2.36 have none: they take ten times as
// long.
inline AlignedMemory AllocateAligned(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(-1) / 2) return nullptr;
  auto* const memory = static_cast<std::byte*>(std::malloc(bytes + kTensorAlignment));
  if (memory == nullptr) return nullptr;
  const std::size_t behind = kTensorAlignment - reinterpret_cast<std::uintptr_t>(memory) % kTensorAlignment;
  memory[behind - 1] = static_cast<std::byte>(behind);
  return AlignedMemory(memory + behind);
}

}  // namespace rewire::serve
