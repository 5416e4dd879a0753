// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/hash.h"

#include <xxhash.h>

namespace rewire {

std::uint64_t Hash64(Span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string HashText(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 0xF];
  return text;
}

}  // namespace rewire
