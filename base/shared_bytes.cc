// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/shared_bytes.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <string>

namespace rewire {

Result<SharedBytes> AlignedCopy(Span<const std::byte> bytes, std::size_t alignment) {
  const std::align_val_t aligned{alignment};
  // Exactly as many, so that a memory checker sees a read past the end.
  auto* memory = static_cast<std::byte*>(::operator new(bytes.size(), aligned, std::nothrow));
  if (memory == nullptr)
    return Fail(StatusCode::kOutOfMemory, "no memory for a copy of {} bytes", bytes.size());
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  std::shared_ptr<const void> owner(memory, [aligned](void* start) { ::operator delete(start, aligned); });
  return SharedBytes{{memory, bytes.size()}, std::move(owner)};
}

bool IsAligned(Span<const std::byte> bytes, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
}

}  // namespace rewire
