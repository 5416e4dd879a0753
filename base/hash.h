// SPDX-License-Identifier: Apache-2.0
//
// The only hash function of the tree: XXH3-64 with seed 0. It is used for checksums in files and for content
// keys. It does not protect against an adversary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rewire/base/export.h"
#include "rewire/base/span.h"

namespace rewire {

REWIRE_API std::uint64_t Hash64(Span<const std::byte> bytes);

// Returns the hash as sixteen hexadecimal digits.
std::string HashText(std::uint64_t hash);

}  // namespace rewire
