// SPDX-License-Identifier: Apache-2.0
//
// Goes through the tokens of a text and takes the small parts that all of the language is made of. If a part
// is missing, it reports what was expected and what was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/executable_format/text/diagnostics.h"
#include "rewire/executable_format/text/lexer.h"

namespace rewire::text {

class Cursor {
 public:
  // `tokens` ends with kEnd and outlives the cursor.
  Cursor(const Array<Token>& tokens, Diagnostics& diagnostics, std::size_t start = 0)
      : tokens_(tokens), diagnostics_(diagnostics), index_(start) {}

  const Token& Peek(std::size_t ahead = 0) const {
    return tokens_[std::min(index_ + ahead, tokens_.size() - 1)];
  }
  Token Take();
  std::size_t index() const { return index_; }
  void MoveTo(std::size_t index) { index_ = index; }
  // Moves to the first token of the next statement.
  void SkipStatement();

  bool Accept(std::string_view punctuation);
  bool AcceptName(std::string_view name);
  bool Expect(std::string_view punctuation);
  bool ExpectEndOfStatement();

  // A name or a quoted string; `what` says in an error what it would name ("a function's name").
  std::optional<std::string> TakeName(std::string_view what);
  std::optional<std::string> TakeString(std::string_view what);
  // An integer of the type's range: decimal or 0x hexadecimal, with a sign where the type has one.
  std::optional<std::int64_t> TakeInt64(std::string_view what);
  std::optional<std::uint64_t> TakeUInt64(std::string_view what);
  std::optional<std::uint32_t> TakeUInt32(std::string_view what);
  // After "#": the index of a table's entry.
  std::optional<std::uint32_t> TakeIndex();

  // Reports "expected <what>, got '<token>'" at the next token. Always returns false.
  bool FailExpected(std::string_view what);
  bool Fail(Position position, const std::string& message);
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  const Array<Token>& tokens_;
  Diagnostics& diagnostics_;
  std::size_t index_;
};

// How an error quotes a token: "'add'", "the end of the line", "the end of the file".
std::string TokenText(const Token& token);

// Parses all of `text` as an integer. nullopt if it is none or does not fit.
std::optional<std::int64_t> ParseInt64(std::string_view text);
std::optional<std::uint64_t> ParseUInt64(std::string_view text);

}  // namespace rewire::text
