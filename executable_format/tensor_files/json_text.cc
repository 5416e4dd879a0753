// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/json_text.h"

#include <charconv>

namespace rewire::json {
namespace {

constexpr std::size_t kBad = std::string_view::npos;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::size_t SkipBlanks(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) {
    ++at;
  }
  return at;
}

char At(std::string_view text, std::size_t at) { return at < text.size() ? text[at] : '\0'; }

// Each of these takes the position where something begins and gives the one behind it, or kBad.

std::size_t StringEnd(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') return at + 1;
    if (static_cast<unsigned char>(c) < 0x20) return kBad;
    if (c != '\\') continue;
    const char escape = At(text, ++at);
    if (escape == 'u') {
      for (int i = 0; i < 4; ++i) {
        const char digit = At(text, ++at);
        if (!IsDigit(digit) && std::string_view("abcdefABCDEF").find(digit) == kBad) return kBad;
      }
    } else if (std::string_view("\"\\/bfnrt").find(escape) == kBad) {
      return kBad;
    }
  }
  return kBad;
}

std::size_t DigitsEnd(std::string_view text, std::size_t at) {
  if (!IsDigit(At(text, at))) return kBad;
  while (IsDigit(At(text, at))) ++at;
  return at;
}

std::size_t NumberEnd(std::string_view text, std::size_t at) {
  if (text[at] == '-') ++at;
  at = At(text, at) == '0' ? at + 1 : DigitsEnd(text, at);
  if (at != kBad && At(text, at) == '.') at = DigitsEnd(text, at + 1);
  if (at != kBad && (At(text, at) == 'e' || At(text, at) == 'E')) {
    ++at;
    if (At(text, at) == '+' || At(text, at) == '-') ++at;
    at = DigitsEnd(text, at);
  }
  return at;
}

std::size_t ScalarEnd(std::string_view text, std::size_t at) {
  const char first = At(text, at);
  if (first == '"') return StringEnd(text, at);
  if (first == '-' || IsDigit(first)) return NumberEnd(text, at);
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text.substr(at, word.size()) == word) return at + word.size();
  }
  return kBad;
}

// Behind a member's name and colon, where its value begins.
std::size_t NameEnd(std::string_view text, std::size_t at) {
  if (At(text, at) != '"') return kBad;
  at = StringEnd(text, at);
  if (at == kBad) return kBad;
  at = SkipBlanks(text, at);
  return At(text, at) == ':' ? SkipBlanks(text, at + 1) : kBad;
}

std::size_t ValueEnd(std::string_view text, std::size_t at) {
  std::string open;  // the brackets that close what is open, innermost last
  for (;;) {
    // A value begins here.
    const char first = At(text, at);
    if (first == '{' || first == '[') {
      const char close = first == '{' ? '}' : ']';
      at = SkipBlanks(text, at + 1);
      if (At(text, at) != close) {
        open.push_back(close);
        if (close == '}') at = NameEnd(text, at);
        if (at == kBad) return kBad;
        continue;
      }
      ++at;
    } else {
      at = ScalarEnd(text, at);
      if (at == kBad) return kBad;
    }
    // And has ended: what it stands in goes on, or ends, too.
    for (;;) {
      if (open.empty()) return at;
      at = SkipBlanks(text, at);
      const char next = At(text, at++);
      if (next == ',') {
        at = SkipBlanks(text, at);
        if (open.back() == '}') at = NameEnd(text, at);
        if (at == kBad) return kBad;
        break;
      }
      if (next != open.back()) return kBad;
      open.pop_back();
    }
  }
}

void AppendUtf8(std::string* text, std::uint32_t point) {
  if (point < 0x80) {
    *text += static_cast<char>(point);
    return;
  }
  const int tail = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  *text += static_cast<char>((0xFF00 >> (tail + 1)) | (point >> (6 * tail)));
  for (int i = tail; i-- > 0;) *text += static_cast<char>(0x80 | ((point >> (6 * i)) & 0x3F));
}

std::uint32_t HexAt(std::string_view text, std::size_t at) {
  std::uint32_t unit = 0;
  std::from_chars(text.data() + at, text.data() + at + 4, unit, 16);
  return unit;
}

}  // namespace

std::string_view Value(std::string_view text) {
  const std::size_t begin = SkipBlanks(text, 0);
  const std::size_t end = ValueEnd(text, begin);
  if (end == kBad || SkipBlanks(text, end) != text.size()) return {};
  return text.substr(begin, end - begin);
}

std::optional<std::string> String(std::string_view value) {
  if (At(value, 0) != '"') return std::nullopt;
  std::string text;
  for (std::size_t at = 1; at + 1 < value.size(); ++at) {
    if (value[at] != '\\') {
      text += value[at];
      continue;
    }
    const char escape = value[++at];
    constexpr std::string_view kEscapes = "bfnrt";
    if (escape != 'u') {
      const std::size_t known = kEscapes.find(escape);
      text += known == kBad ? escape : "\b\f\n\r\t"[known];
      continue;
    }
    std::uint32_t point = HexAt(value, at + 1);
    at += 4;
    const bool pair = point >= 0xD800 && point < 0xDC00 && value.substr(at + 1, 2) == "\\u";
    const std::uint32_t low = pair ? HexAt(value, at + 3) : 0;
    if (low >= 0xDC00 && low < 0xE000) {
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      at += 6;
    } else if (point >= 0xD800 && point < 0xE000) {
      return std::nullopt;  // half a pair
    }
    AppendUtf8(&text, point);
  }
  return text;
}

std::optional<std::vector<std::string_view>> Elements(std::string_view value) {
  if (At(value, 0) != '[') return std::nullopt;
  std::vector<std::string_view> elements;
  std::size_t at = SkipBlanks(value, 1);
  while (value[at] != ']') {
    const std::size_t end = ValueEnd(value, at);
    elements.push_back(value.substr(at, end - at));
    at = SkipBlanks(value, end);
    if (value[at] == ',') at = SkipBlanks(value, at + 1);
  }
  return elements;
}

std::optional<std::vector<Member>> Members(std::string_view value) {
  if (At(value, 0) != '{') return std::nullopt;
  std::vector<Member> members;
  std::size_t at = SkipBlanks(value, 1);
  while (value[at] != '}') {
    std::optional<std::string> name = String(value.substr(at, StringEnd(value, at) - at));
    if (!name) return std::nullopt;
    const std::size_t begin = NameEnd(value, at);
    const std::size_t end = ValueEnd(value, begin);
    members.emplace_back(*std::move(name), value.substr(begin, end - begin));
    at = SkipBlanks(value, end);
    if (value[at] == ',') at = SkipBlanks(value, at + 1);
  }
  return members;
}

std::optional<std::uint64_t> Unsigned(std::string_view value) {
  std::uint64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::string Quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += "\\u00";
      quoted += kHex[c >> 4];
      quoted += kHex[c & 15];
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace rewire::json
