// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rewire/base/export.h"

namespace rewire {

// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
REWIRE_API bool IsUtf8(std::string_view text);

// UTF-8 without control characters.
bool IsPrintable(std::string_view text);
// Returns the first `most` bytes of the text, with '?' in place of every byte that is not printable.
std::string Printable(std::string_view text, std::size_t most);

}  // namespace rewire
