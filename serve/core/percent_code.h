// SPDX-License-Identifier: Apache-2.0
//
// The %XX of URLs (RFC 3986) and of grpc-message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rewire::serve {

// Each %XX becomes the byte that it stands for. Nothing if one is damaged.
std::optional<std::string> PercentDecoded(std::string_view text);
// Bytes that are not plain become %XX. A percent sign must not be plain.
std::string PercentEncoded(std::string_view text, bool (*is_plain)(char byte));
// Whether a byte stands for itself in one segment of a path.
bool IsPlainInPath(char byte);

}  // namespace rewire::serve
