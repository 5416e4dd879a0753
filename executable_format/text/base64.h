// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648, with padding): how text assembly spells bytes that have no better spelling.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"

namespace rewire::text {

std::string EncodeBase64(Span<const std::byte> bytes);
// Nothing when `text` is not what EncodeBase64 writes.
std::optional<std::vector<std::byte>> DecodeBase64(std::string_view text);

}  // namespace rewire::text
