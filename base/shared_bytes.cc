// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/shared_bytes.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace rewire {

Result<SharedBytes> AlignedCopy(Span<const std::byte> bytes, std::size_t alignment) {
  // Exactly as many, so that a memory checker sees a read past the end.
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes.size()) != 0)
    return Fail(StatusCode::kOutOfMemory, "no memory for a copy of {} bytes", bytes.size());
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  std::shared_ptr<const void> owner(memory, &std::free);
  return SharedBytes{{static_cast<const std::byte*>(memory), bytes.size()}, std::move(owner)};
}

bool IsAligned(Span<const std::byte> bytes, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
}

}  // namespace rewire
