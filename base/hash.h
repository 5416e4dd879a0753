// SPDX-License-Identifier: Apache-2.0
// The one hash of the tree: XXH3-64 with seed 0. Checksums in files and content keys; not against an
// adversary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/export.h"
#include "base/span.h"

namespace rewire {

REWIRE_API std::uint64_t Hash64(Span<const std::byte> bytes);

}  // namespace rewire
