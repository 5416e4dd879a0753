// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/percent_code.h"

#include <algorithm>
#include <charconv>

namespace rewire::serve {

std::optional<std::string> PercentDecoded(std::string_view text) {
  const std::size_t first = std::min(text.find('%'), text.size());
  std::string decoded(text.substr(0, first));
  for (std::size_t i = first; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '%') {
      unsigned value = 0;
      if (i + 2 >= text.size()) return std::nullopt;
      const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
      byte = static_cast<char>(value);
      i += 2;
    }
    decoded.push_back(byte);
  }
  return decoded;
}

std::string PercentEncoded(std::string_view text, bool (*is_plain)(char byte)) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_plain(c)) {
      encoded.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

bool IsPlainInPath(char byte) {
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  return letter || (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

}  // namespace rewire::serve
