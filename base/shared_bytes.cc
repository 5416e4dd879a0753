// SPDX-License-Identifier: Apache-2.0
#include "base/shared_bytes.h"

#include <cstring>
#include <new>
#include <string>

namespace rewire {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

Result<SharedBytes> AlignedCopy(Span<const std::byte> bytes) {
  // Exactly as many, so that a memory checker sees a read past the end.
  auto* memory = static_cast<std::byte*>(::operator new(bytes.size(), kAlignment, std::nothrow));
  if (memory == nullptr)
    return Fail(StatusCode::kOutOfMemory, {"no memory for a copy of ", bytes.size(), " bytes"});
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  std::shared_ptr<const void> owner(memory, [](void* start) { ::operator delete(start, kAlignment); });
  return SharedBytes{{memory, bytes.size()}, std::move(owner)};
}

}  // namespace rewire
