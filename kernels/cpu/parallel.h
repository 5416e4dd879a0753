// SPDX-License-Identifier: Apache-2.0
// Work for the program's threads, and memory for the length of a call, from the VM.
#pragma once

#include <cstdint>

#include "vm/kernel/kernel.h"
#include "vm/kernel/status.h"

namespace rewire::kernel::cpu {

// Elements of simple work below which a second thread costs more than it saves.
inline constexpr std::int64_t kGrain = 16384;

// body(begin, end) over [0, count), in ranges of at least `grain`, perhaps on several threads.
template <typename Body>
void ParallelFor(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain) {
    body(std::int64_t{0}, count);
    return;
  }
  __rewire_kernel_api->parallel_for(
      0, count, grain,
      [](void* data, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(data))(begin, end); },
      const_cast<Body*>(&body));
}

// Uninitialised scratch of `count` elements, 64-byte aligned, until the kernel returns.
template <typename T>
Status Workspace(std::int64_t count, T** memory) {
  *memory = static_cast<T*>(__rewire_kernel_api->workspace(static_cast<std::uint64_t>(count) * sizeof(T)));
  return *memory != nullptr ? Status() : Status::AlreadySet();
}

}  // namespace rewire::kernel::cpu
