// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/utf8.h"

#include <algorithm>

#include <cstddef>
#include <cstdint>

namespace rewire {

bool IsUtf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<std::uint8_t>(text[i++]);
    if (lead < 0x80) continue;
    int followers;
    std::uint32_t point;
    std::uint32_t smallest;  // that needs this many bytes
    if (lead >= 0xC2 && lead < 0xE0) {
      followers = 1, point = lead & 0x1Fu, smallest = 0x80;
    } else if (lead >= 0xE0 && lead < 0xF0) {
      followers = 2, point = lead & 0x0Fu, smallest = 0x800;
    } else if (lead >= 0xF0 && lead < 0xF5) {
      followers = 3, point = lead & 0x07u, smallest = 0x10000;
    } else {
      return false;
    }
    for (; followers > 0; --followers) {
      if (i == text.size()) return false;
      const auto next = static_cast<std::uint8_t>(text[i++]);
      if ((next & 0xC0) != 0x80) return false;
      point = (point << 6) | (next & 0x3Fu);
    }
    if (point < smallest || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
  }
  return true;
}

namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

bool IsPrintable(std::string_view text) { return std::ranges::none_of(text, IsControl) && IsUtf8(text); }

std::string Printable(std::string_view text, std::size_t most) {
  std::string printable(text.substr(0, most));
  const bool plain = !IsUtf8(printable);
  for (char& c : printable) {
    if (IsControl(c) || (plain && static_cast<unsigned char>(c) >= 0x80)) c = '?';
  }
  return printable;
}

}  // namespace rewire
