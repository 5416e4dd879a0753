// SPDX-License-Identifier: Apache-2.0
//
// Base64 (RFC 4648, with padding). Text assembly uses it for bytes that have no better spelling.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"

namespace rewire::text {

std::string EncodeBase64(Span<const std::byte> bytes);
// nullopt if `text` is not what EncodeBase64 would write.
std::optional<std::vector<std::byte>> DecodeBase64(std::string_view text);

}  // namespace rewire::text
