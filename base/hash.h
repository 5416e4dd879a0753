// SPDX-License-Identifier: Apache-2.0
//
// The hash function for checksums in files and for content keys: XXH3-64 with seed 0. It does not protect
// against an adversary. compiler/cache/content_hash.h has one with a key, which does.
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
