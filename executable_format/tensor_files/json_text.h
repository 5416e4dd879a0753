// SPDX-License-Identifier: Apache-2.0
//
// The part of JSON (RFC 8259) that the headers of tensor files need, over text that is not copied. librewire
// reads such headers, and a complete JSON library would be a quarter of its size. Nothing recurses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rewire::json {

// Returns the text of a value without surrounding blanks, if `text` is exactly one valid value. Otherwise
// empty.
std::string_view Value(std::string_view text);

// `value` must come from Value(). nullopt if it has another type. Escapes in a string are resolved.
std::optional<std::string> String(std::string_view value);
std::optional<std::vector<std::string_view>> Elements(std::string_view value);
// In the order of the text. A name may occur twice.
using Member = std::pair<std::string, std::string_view>;
std::optional<std::vector<Member>> Members(std::string_view value);
// An integer from 0 to 2^64 - 1, written without fraction or exponent.
std::optional<std::uint64_t> Unsigned(std::string_view value);

// Returns the text as a JSON string with quotes. The text must be UTF-8.
std::string Quoted(std::string_view text);

}  // namespace rewire::json
