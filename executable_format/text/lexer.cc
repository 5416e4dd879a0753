// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/lexer.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

#include "rewire/base/array.h"

namespace rewire::text {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool StartsName(char c) { return IsLetter(c) || c == '_' || c == '$' || c == '/'; }
bool ContinuesName(char c) { return StartsName(c) || IsDigit(c) || c == '.'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  Lexer(std::string_view text, Diagnostics& diagnostics) : text_(text), diagnostics_(diagnostics) {}

  Array<Token> Run() {
    while (position_ < text_.size() && !diagnostics_.full()) Next();
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) Add(TokenKind::kNewline, 0);
    Add(TokenKind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  char At(std::size_t offset) const {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  }
  Position Here() const { return {line_, static_cast<std::uint32_t>(position_ - line_start_ + 1)}; }

  // A token of the next `size` characters, without the first `skip` of them.
  void Add(TokenKind kind, std::size_t size, std::size_t skip = 0) {
    tokens_.push_back({kind, Here(), text_.substr(position_ + skip, size - skip)});
    position_ += size;
  }

  template <typename Predicate>
  std::size_t Span(std::size_t from, Predicate belongs) const {
    std::size_t size = from;
    while (position_ + size < text_.size() && belongs(text_[position_ + size])) ++size;
    return size;
  }

  void Newline() {
    // A missing closing bracket must not affect the rest of the file, so a directive starts afresh.
    std::size_t next = 1;
    while (At(next) == ' ' || At(next) == '\t' || At(next) == '\r') ++next;
    if (At(next) == '.' && IsLetter(At(next + 1))) depth_ = 0;
    const bool ends_statement = depth_ == 0 && !tokens_.empty() && tokens_.back().kind != TokenKind::kNewline;
    if (ends_statement) tokens_.push_back({TokenKind::kNewline, Here(), {}});
    ++position_;
    ++line_;
    line_start_ = position_;
  }

  void Next() {
    const char c = At(0);
    if (c == '\n') return Newline();
    if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == ';') {
      position_ += Span(1, [](char k) { return k != '\n'; });
    } else if (c == '_' && !ContinuesName(At(1))) {
      Add(TokenKind::kPunctuation, 1);
    } else if (StartsName(c)) {
      Add(TokenKind::kName, Span(1, ContinuesName));
    } else if (c == '%') {
      Add(TokenKind::kRegister, Span(1, ContinuesName), 1);
    } else if (c == '.' && IsLetter(At(1))) {
      Add(TokenKind::kDirective, Span(1, ContinuesName));
    } else if (IsDigit(c) || (c == '.' && IsDigit(At(1))) || StartsSignedNumber()) {
      Number();
    } else if (c == '"') {
      String();
    } else if (c == '@' && At(1) != '"' && !IsBlank(At(1))) {
      Add(TokenKind::kFile, Span(1, [](char k) { return !IsBlank(k) && k != ',' && k != ';'; }), 1);
    } else {
      Punctuation();
    }
  }

  static bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; }

  bool StartsSignedNumber() const {
    return (At(0) == '-' || At(0) == '+') && (IsDigit(At(1)) || IsLetter(At(1)) || At(1) == '.');
  }

  void Number() {
    std::size_t size = 1;
    const bool hex = At(0) == '0' ? (At(1) | 0x20) == 'x' : At(1) == '0' && (At(2) | 0x20) == 'x';
    while (true) {
      const char c = At(size);
      const bool exponent_sign = !hex && (c == '-' || c == '+') && (At(size - 1) | 0x20) == 'e';
      if (!IsDigit(c) && !IsLetter(c) && c != '.' && c != '_' && !exponent_sign) break;
      ++size;
    }
    Add(TokenKind::kNumber, size);
  }

  void String() {
    std::size_t size = 1;
    while (At(size) != '"') {
      if (position_ + size >= text_.size() || At(size) == '\n') {
        diagnostics_.Report(Here(), "this string has no closing '\"' on its line");
        position_ += size;
        return;
      }
      if (At(size) == '\\') {
        const char escape = At(size + 1);
        const bool known = escape == 'n' || escape == 't' || escape == 'r' || escape == '"' ||
                           escape == '\\' ||
                           (escape == 'x' && HexValue(At(size + 2)) >= 0 && HexValue(At(size + 3)) >= 0);
        if (!known) {
          diagnostics_.Report({line_, Here().column + static_cast<std::uint32_t>(size)},
                              R"(unknown escape; a string knows \" \\ \n \t \r and \xHH)");
        }
        ++size;
        // A line's end, or the text's, escapes nothing.
        if (At(size) == '\n' || position_ + size >= text_.size()) continue;
      }
      ++size;
    }
    tokens_.push_back({TokenKind::kString, Here(), text_.substr(position_ + 1, size - 1)});
    position_ += size + 1;
  }

  void Punctuation() {
    const char c = At(0);
    if ((c == '-' && At(1) == '>') || (c == '=' && At(1) == '=')) return Add(TokenKind::kPunctuation, 2);
    constexpr std::string_view kSingle = "()[]{},:=#?*@";
    if (kSingle.find(c) != std::string_view::npos) {
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
      return Add(TokenKind::kPunctuation, 1);
    }
    const auto byte = static_cast<unsigned char>(c);
    diagnostics_.Report(Here(), byte > 0x20 && byte < 0x7F
                                    ? fmt::format("unexpected character '{}'", c)
                                    : fmt::format("unexpected byte 0x{:02x} outside a string", byte));
    // The rest of a multi-byte character is one mistake with its first byte.
    position_ += Span(1, [](char k) { return (static_cast<unsigned char>(k) & 0xC0) == 0x80; });
  }

  std::string_view text_;
  Diagnostics& diagnostics_;
  Array<Token> tokens_;
  std::size_t position_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t depth_ = 0;  // open brackets
};

}  // namespace

Array<Token> Tokenize(std::string_view text, Diagnostics& diagnostics) {
  return Lexer(text, diagnostics).Run();
}

std::string UnquoteText(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'n':
        plain += '\n';
        break;
      case 't':
        plain += '\t';
        break;
      case 'r':
        plain += '\r';
        break;
      case 'x':
        if (i + 2 < text.size())
          plain += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
        i += 2;
        break;
      default:
        plain += text[i];
        break;
    }
  }
  return plain;
}

}  // namespace rewire::text
