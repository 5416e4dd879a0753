// SPDX-License-Identifier: Apache-2.0
// The one hash of the tree: XXH3-64 with seed 0. Checksums in files and content keys; not against an
// adversary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/span.h"

namespace rewire {

std::uint64_t Hash64(Span<const std::byte> bytes);

// Its sixteen hexadecimal digits.
std::string HashText(std::uint64_t hash);

}  // namespace rewire
