// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/cursor.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "rewire/executable_format/instruction_text.h"

namespace rewire::text {

Token Cursor::Take() {
  const Token& token = Peek();
  if (token.kind != TokenKind::kEnd) ++index_;
  return token;
}

void Cursor::SkipStatement() {
  while (!Peek().EndsStatement()) ++index_;
  if (Peek().kind == TokenKind::kNewline) ++index_;
}

bool Cursor::Accept(std::string_view punctuation) {
  if (!Peek().Is(punctuation)) return false;
  ++index_;
  return true;
}

bool Cursor::AcceptName(std::string_view name) {
  if (!Peek().IsName(name)) return false;
  ++index_;
  return true;
}

bool Cursor::Expect(std::string_view punctuation) {
  return Accept(punctuation) || FailExpected(fmt::format("'{}'", punctuation));
}

bool Cursor::ExpectEndOfStatement() {
  if (!Peek().EndsStatement()) return FailExpected("the end of the line");
  Take();
  return true;
}

std::optional<std::string> Cursor::TakeName(std::string_view what) {
  const Token& token = Peek();
  if (token.kind == TokenKind::kName) return std::string(Take().text);
  if (token.kind == TokenKind::kString) return UnquoteText(Take().text);
  FailExpected(what);
  return std::nullopt;
}

std::optional<std::string> Cursor::TakeString(std::string_view what) {
  if (Peek().kind == TokenKind::kString) return UnquoteText(Take().text);
  FailExpected(what);
  return std::nullopt;
}

std::optional<std::int64_t> Cursor::TakeInt64(std::string_view what) {
  if (Peek().kind == TokenKind::kNumber) {
    if (const std::optional<std::int64_t> value = ParseInt64(Peek().text)) {
      Take();
      return value;
    }
  }
  FailExpected(what);
  return std::nullopt;
}

std::optional<std::uint64_t> Cursor::TakeUInt64(std::string_view what) {
  if (Peek().kind == TokenKind::kNumber) {
    if (const std::optional<std::uint64_t> value = ParseUInt64(Peek().text)) {
      Take();
      return value;
    }
  }
  FailExpected(what);
  return std::nullopt;
}

std::optional<std::uint32_t> Cursor::TakeUInt32(std::string_view what) {
  if (Peek().kind == TokenKind::kNumber) {
    const std::optional<std::uint64_t> value = ParseUInt64(Peek().text);
    if (value && *value <= std::numeric_limits<std::uint32_t>::max()) {
      Take();
      return static_cast<std::uint32_t>(*value);
    }
  }
  FailExpected(what);
  return std::nullopt;
}

std::optional<std::uint32_t> Cursor::TakeIndex() {
  if (!Expect("#")) return std::nullopt;
  return TakeUInt32("an index after '#'");
}

bool Cursor::FailExpected(std::string_view what) {
  return Fail(Peek().position, fmt::format("expected {}, got {}", what, TokenText(Peek())));
}

bool Cursor::Fail(Position position, const std::string& message) {
  diagnostics_.Report(position, message);
  return false;
}

std::string TokenText(const Token& token) {
  constexpr std::size_t kLongest = 40;
  const std::string_view shown = token.text.substr(0, kLongest);
  const std::string_view dots = shown.size() < token.text.size() ? "..." : "";
  switch (token.kind) {
    case TokenKind::kName:
    case TokenKind::kDirective:
    case TokenKind::kNumber:
    case TokenKind::kPunctuation:
      return fmt::format("'{}{}'", shown, dots);
    case TokenKind::kRegister:
      return fmt::format("'%{}{}'", shown, dots);
    case TokenKind::kFile:
      return fmt::format("'@{}{}'", shown, dots);
    case TokenKind::kString:
      return fmt::format("\"{}{}\"", shown, dots);
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kEnd:
      return "the end of the file";
  }
  return {};
}

namespace {

template <typename Int>
std::optional<Int> ParseInteger(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (negative || text.front() == '+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<Int>::max());
  if (!negative) return magnitude <= kMax ? std::optional<Int>(static_cast<Int>(magnitude)) : std::nullopt;
  if (magnitude == 0) return Int{0};
  if (!std::numeric_limits<Int>::is_signed || magnitude > kMax + 1) return std::nullopt;
  return static_cast<Int>(~magnitude + 1);
}

}  // namespace

std::optional<std::int64_t> ParseInt64(std::string_view text) { return ParseInteger<std::int64_t>(text); }
std::optional<std::uint64_t> ParseUInt64(std::string_view text) { return ParseInteger<std::uint64_t>(text); }

}  // namespace rewire::text
