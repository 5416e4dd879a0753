// SPDX-License-Identifier: Apache-2.0
// Splits text assembly into tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/executable_format/text/diagnostics.h"

namespace rewire::text {

enum class TokenKind : std::uint8_t {
  kName,         // IsIdentifier (instruction_text.h)
  kRegister,     // %name or %3; text is what follows the %
  kDirective,    // .name; text includes the dot
  kNumber,       // begins with a digit, or a sign, or a dot and a digit: 12, -0x1f, 1.5e-3, -inf
  kString,       // "..."; text is what stands between the quotes, escapes undone by UnquoteText
  kFile,         // @path; text is the path
  kPunctuation,  // one of  ( ) [ ] { } , : = # ? * @ _  and  -> ==
  kNewline,      // ends a statement; not given inside brackets
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Position position;
  std::string_view text;

  bool Is(std::string_view punctuation) const {
    return kind == TokenKind::kPunctuation && text == punctuation;
  }
  bool IsName(std::string_view name) const { return kind == TokenKind::kName && text == name; }
  bool EndsStatement() const { return kind == TokenKind::kNewline || kind == TokenKind::kEnd; }
};

// The tokens of `text`, which they borrow; the last is kEnd. Characters that begin no token are reported and
// left out.
Array<Token> Tokenize(std::string_view text, Diagnostics& diagnostics);

// A string token's text with its escapes undone. The lexer has checked them.
std::string UnquoteText(std::string_view text);

}  // namespace rewire::text
