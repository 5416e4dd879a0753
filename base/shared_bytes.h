// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/span.h"

namespace rewire {

// Bytes and whoever keeps them alive.
struct SharedBytes {
  Span<const std::byte> view;
  std::shared_ptr<const void> owner;  // null: the bytes live for ever
};

}  // namespace rewire
