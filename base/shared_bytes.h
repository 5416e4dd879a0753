// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/shared_bytes.h>.
#pragma once

#include <cstddef>
#include <memory>

#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

// A view of bytes, and the owner that keeps them alive.
struct SharedBytes {
  Span<const std::byte> view;
  std::shared_ptr<const void> owner;  // null: the bytes live as long as the process
  // The bytes are pages of a mapped file. Reading them raises SIGBUS if somebody has truncated the file.
  bool mapped = false;
};

// Copies the bytes to new memory at a multiple of `alignment` (a power of two). Errors: kOutOfMemory.
REWIRE_API Result<SharedBytes> AlignedCopy(Span<const std::byte> bytes, std::size_t alignment = 64);

// True if the bytes begin at a multiple of `alignment` (a power of two).
REWIRE_API bool IsAligned(Span<const std::byte> bytes, std::size_t alignment);

}  // namespace rewire
