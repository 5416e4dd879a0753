// SPDX-License-Identifier: Apache-2.0
// As much of JSON (RFC 8259) as the header of a tensor file needs, over text that stays where it is:
// librewire reads such headers, and a whole JSON library would be a quarter of its size. Nothing recurses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rewire::json {

// The text of a value, without the blanks around it, when `text` is one valid value and nothing else;
// otherwise empty.
std::string_view Value(std::string_view text);

// Of a value that Value() gave. Nothing when it is of another kind; a string's escapes are resolved.
std::optional<std::string> String(std::string_view value);
std::optional<std::vector<std::string_view>> Elements(std::string_view value);
// In the order of the text; a name may stand there twice.
using Member = std::pair<std::string, std::string_view>;
std::optional<std::vector<Member>> Members(std::string_view value);
// An integer from 0 to 2^64 - 1, written without fraction or exponent.
std::optional<std::uint64_t> Unsigned(std::string_view value);

// The text as a JSON string, quotes included; it must be UTF-8.
std::string Quoted(std::string_view text);

}  // namespace rewire::json
