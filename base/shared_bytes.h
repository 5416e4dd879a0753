// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/export.h"
#include "base/span.h"
#include "base/status.h"

namespace rewire {

// Bytes and whoever keeps them alive.
struct SharedBytes {
  Span<const std::byte> view;
  std::shared_ptr<const void> owner;  // null: the bytes live for ever
  // They are pages of a file: reading them raises SIGBUS when somebody has cut the file off.
  bool mapped = false;
};

// The same bytes in memory of their own, at a multiple of `alignment` (a power of two). kOutOfMemory.
REWIRE_API Result<SharedBytes> AlignedCopy(Span<const std::byte> bytes, std::size_t alignment = 64);

// Whether the bytes begin at a multiple of `alignment`, a power of two.
REWIRE_API bool IsAligned(Span<const std::byte> bytes, std::size_t alignment);

}  // namespace rewire
