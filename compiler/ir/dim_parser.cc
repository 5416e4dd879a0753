// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/dim_parser.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <utility>

namespace rewire::compiler {
namespace {

constexpr int kMostDepth = 32;  // of parentheses; also keeps the recursion short

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsNamePart(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || IsNameStart(c) || c == '.';
}

class Reader {
 public:
  Reader(std::string_view text, const DimOfName& of_name) : text_(text), of_name_(of_name) {}

  Result<DimExpr> Whole() {
    Result<DimExpr> sum = Sum();
    if (sum && Peek() != '\0') return Wrong("an operator");
    return sum;
  }

 private:
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
    return Wrong(std::string("'") + c + "'");
  }
  Status Wrong(const std::string& expected) {
    const std::string given = Peek() == '\0' ? "its end" : "'" + std::string(text_.substr(at_)) + "'";
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("dimension '{}': expected {}, given {}", text_, expected, given));
  }

  Result<DimExpr> Sum() {
    if (++depth_ > kMostDepth) return Wrong(fmt::format("at most {} levels of parentheses", kMostDepth));
    const bool negative = Take('-');
    Result<DimExpr> sum = Product();
    if (sum && negative) sum = DimExpr(0) - *sum;
    while (sum && (Peek() == '+' || Peek() == '-')) {
      const bool minus = Take('-');
      if (!minus) Take('+');
      const Result<DimExpr> term = Product();
      if (!term) return term;
      sum = minus ? *sum - *term : *sum + *term;
    }
    --depth_;
    return sum;
  }

  // `is_dividend`: a quotient may follow it.
  Result<DimExpr> Product(bool is_dividend = false) {
    Result<DimExpr> product = Factor();
    while (product && Take('*')) {
      const Result<DimExpr> factor = Factor();
      if (!factor) return factor;
      product = *product * *factor;
    }
    if (product && !is_dividend && Peek() == '/')
      return Wrong("floor(a / b) or ceil(a / b) around a quotient");
    return product;
  }

  Result<DimExpr> Factor() {
    if (Take('(')) {
      Result<DimExpr> sum = Sum();
      if (!sum) return sum;
      if (Status closed = Expect(')'); !closed) return Forward(closed);
      return sum;
    }
    const char first = Peek();
    if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '-') {
      const Result<std::int64_t> number = Integer();
      if (!number) return Forward(number);
      return DimExpr(*number);
    }
    if (!IsNameStart(first)) return Wrong("a number or a name");
    const std::size_t begin = at_;
    while (at_ < text_.size() && IsNamePart(text_[at_])) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (Take('(')) return Function(name, begin);
    std::optional<std::int64_t> index;
    if (Take('[')) {
      const Result<std::int64_t> number = Integer();
      if (!number) return Forward(number);
      if (Status closed = Expect(']'); !closed) return Forward(closed);
      index = *number;
    }
    const std::optional<DimExpr> dim = of_name_(name, index);
    if (dim) return *dim;
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("dimension '{}': '{}' is no dimension of an input and no integer attribute",
                            text_, text_.substr(begin, at_ - begin)));
  }

  Result<std::int64_t> Integer() {
    Peek();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return Wrong("an integer of 64 bits");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  Result<DimExpr> Function(const std::string& name, std::size_t begin) {
    if (name == "floor" || name == "ceil") return Quotient(name == "ceil");
    using Binary = DimExpr (*)(const DimExpr&, const DimExpr&);
    const Binary function = name == "max"         ? &DimExpr::Max
                            : name == "min"       ? &DimExpr::Min
                            : name == "broadcast" ? &DimExpr::Broadcast
                                                  : nullptr;
    if (function == nullptr) {
      at_ = begin;
      return Wrong("floor, ceil, max, min or broadcast");
    }
    Result<DimExpr> result = Sum();
    while (result && Take(',')) {
      const Result<DimExpr> operand = Sum();
      if (!operand) return operand;
      result = function(*result, *operand);
    }
    if (!result) return result;
    if (Status closed = Expect(')'); !closed) return Forward(closed);
    return result;
  }

  // a / b, or a * b / c, behind its parenthesis.
  Result<DimExpr> Quotient(bool up) {
    Result<DimExpr> dividend = Product(true);
    if (!dividend) return dividend;
    if (Status divides = Expect('/'); !divides) return Forward(divides);
    const Result<DimExpr> divisor = Factor();
    if (!divisor) return divisor;
    if (Status closed = Expect(')'); !closed) return Forward(closed);
    if (divisor->Is(0))
      return Fail(StatusCode::kInvalidArgument, fmt::format("dimension '{}' divides by 0", text_));
    return up ? DimExpr::CeilDiv(*dividend, *divisor) : DimExpr::FloorDiv(*dividend, *divisor);
  }

  std::string_view text_;
  const DimOfName& of_name_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<DimExpr> ParseDimExpr(std::string_view text, const DimOfName& of_name) {
  return Reader(text, of_name).Whole();
}

}  // namespace rewire::compiler
