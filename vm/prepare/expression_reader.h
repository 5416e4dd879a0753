// SPDX-License-Identifier: Apache-2.0
//
// Reads an expression of integers, names, + - * / and parentheses, and computes it in numbers of any kind.
//
// The rules say what the numbers and names are:
//   using Number = ...;                       with + - *, made of an integer
//   static constexpr const char* kSubject;    what an expression is called in messages: "dimension"
//   static constexpr const char* kNoMeaning;  "is no dimension": how a message about a name goes on
//   std::optional<Number> Find(name, index)   the meaning of `N`, or of `pads[0]`; nullopt: it has none
//   Result<Number> Quotient(reader, a)        a number before `/`, which is the next character
//   Result<Number> Call(reader, name, begin)  a name before `(`, which has been taken
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/message.h"
#include "rewire/base/status.h"

namespace rewire {

template <typename Rules>
class ExpressionReader {
 public:
  using Number = typename Rules::Number;

  // Both outlive the reader.
  ExpressionReader(std::string_view text, const Rules& rules) : text_(text), rules_(rules) {}

  // Errors: kInvalidArgument with the place.
  Result<Number> Whole() {
    Result<Number> sum = Sum();
    if (sum && Peek() != '\0') return Wrong("an operator");
    return sum;
  }

  // The rest is for rules.

  // The next character that is no space; 0 at the end.
  char Peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  Status Expect(char c) {
    if (Take(c)) return {};
    const char expected[] = {'\'', c, '\'', '\0'};
    return Wrong(expected);
  }
  // An error about what comes next, or comes at `at`.
  Status Wrong(std::string_view expected) {
    const std::string given = Peek() == '\0' ? "its end" : "'" + std::string(text_.substr(at_)) + "'";
    return Fail(StatusCode::kInvalidArgument, "{} '{}': expected {}, given {}", Rules::kSubject, text_,
                expected, given);
  }
  Status WrongAt(std::size_t at, std::string_view expected) {
    at_ = at;
    return Wrong(expected);
  }
  std::string_view text() const { return text_; }

  Result<Number> Sum() {
    if (++depth_ > kMostDepth) return Wrong(Format("at most {} levels of parentheses", kMostDepth));
    const bool negative = Take('-');
    Result<Number> sum = Product();
    if (sum && negative) sum = Number(0) - *sum;
    while (sum && (Peek() == '+' || Peek() == '-')) {
      const bool minus = Take('-');
      if (!minus) Take('+');
      const Result<Number> term = Product();
      if (!term) return term;
      sum = minus ? *sum - *term : *sum + *term;
    }
    --depth_;
    return sum;
  }

  // `is_dividend`: the caller takes the quotient that may follow.
  Result<Number> Product(bool is_dividend = false) {
    Result<Number> product = Factor();
    while (product && (Peek() == '*' || (Peek() == '/' && !is_dividend))) {
      if (!Take('*')) {
        product = rules_.Quotient(*this, *product);
        continue;
      }
      const Result<Number> factor = Factor();
      if (!factor) return factor;
      product = *product * *factor;
    }
    return product;
  }

  Result<Number> Factor() {
    if (Take('(')) {
      Result<Number> sum = Sum();
      if (!sum) return sum;
      if (Status closed = Expect(')'); !closed) return Forward(closed);
      return sum;
    }
    const char first = Peek();
    if (IsDigit(first) || first == '-') {
      const Result<std::int64_t> number = Integer();
      if (!number) return Forward(number);
      return Number(*number);
    }
    if (!IsNameStart(first)) return Wrong("a number or a name");
    const std::size_t begin = at_;
    while (at_ < text_.size() && (IsNameStart(text_[at_]) || IsDigit(text_[at_]) || text_[at_] == '.')) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (Take('(')) return rules_.Call(*this, name, begin);
    std::optional<std::int64_t> index;
    if (Take('[')) {
      const Result<std::int64_t> number = Integer();
      if (!number) return Forward(number);
      if (Status closed = Expect(']'); !closed) return Forward(closed);
      index = *number;
    }
    std::optional<Number> found = rules_.Find(name, index);
    if (found) return *std::move(found);
    return Fail(StatusCode::kInvalidArgument, "{} '{}': '{}' {}", Rules::kSubject, text_,
                text_.substr(begin, at_ - begin), Rules::kNoMeaning);
  }

 private:
  static constexpr int kMostDepth = 32;  // also keeps the recursion short

  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  Result<std::int64_t> Integer() {
    Peek();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return Wrong("an integer of 64 bits");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  const Rules& rules_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace rewire
