// SPDX-License-Identifier: Apache-2.0
// Kernels of strings. What ONNX Runtime 1.31 gives is what numbers become and what texts are read as.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

// A tensor of strings: each element has a string of its own.
struct TextTensors {
  explicit TextTensors(const std::vector<std::string>& texts) : TextTensors({std::ssize(texts)}, texts) {}
  TextTensors(const Shape& shape, const std::vector<std::string>& texts) {
    std::vector<std::int64_t> numbers, ends = {0};
    std::vector<std::uint8_t> content;
    for (const std::string& text : texts) {
      numbers.push_back(std::ssize(numbers));
      content.insert(content.end(), text.begin(), text.end());
      ends.push_back(std::ssize(content));
    }
    x = HostTensor::Of<std::int64_t>(shape, numbers);
    offsets = HostTensor::Of<std::int64_t>({std::ssize(ends)}, ends);
    bytes = HostTensor::Of<std::uint8_t>({std::ssize(content)}, content);
  }

  HostTensor x = HostTensor::Empty<std::int64_t>({0}), offsets = x,
             bytes = HostTensor::Empty<std::uint8_t>({0});
};

// The list that a kernel and its kernel of offsets make.
std::vector<std::string> Made(const std::string& kernel, std::vector<HostTensor*> arguments,
                              std::int64_t count, const AttributeList& attributes = {},
                              HostTensor* width = nullptr) {
  HostTensor offsets = HostTensor::Empty<std::int64_t>({count + 1});
  std::vector<HostTensor*> first = arguments;
  if (width != nullptr) first.push_back(width);
  first.push_back(&offsets);
  if (const std::string error = Run(kernel + "_offsets", first, attributes); !error.empty()) return {error};
  const std::vector<std::int64_t> ends = offsets.values<std::int64_t>();
  HostTensor bytes = HostTensor::Empty<std::uint8_t>({ends.back()});
  arguments.push_back(&bytes);
  if (const std::string error = Run(kernel, arguments, attributes); !error.empty()) return {error};
  const std::vector<std::uint8_t> content = bytes.values<std::uint8_t>();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i)
    texts.emplace_back(content.begin() + ends[i], content.begin() + ends[i + 1]);
  return texts;
}

template <typename T>
std::vector<std::string> Printed(const std::vector<T>& numbers) {
  HostTensor x = HostTensor::Of<T>({std::ssize(numbers)}, numbers);
  return Made("rewire.text.from_number", {&x}, std::ssize(numbers));
}

using Texts = std::vector<std::string>;

TEST_CASE("numbers as text") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(Printed<float>({1, 0.1f, 1e10f, 1e-7f, 123456789.0f, NAN, kInfinity, -kInfinity, -0.0f, 1e7f}) ==
        Texts{"1", "0.1", "1e+10", "1e-07", "1.2345679e+08", "NaN", "INF", "-INF", "-0", "10000000"});
  CHECK(Printed<double>({0.1, 1e17, 1e-300, 1.0 / 3}) ==
        Texts{"0.10000000000000001", "1e+17", "1e-300", "0.33333333333333331"});
  CHECK(Printed<std::int8_t>({-128, 65}) == Texts{"-128", "65"});
  CHECK(Printed<std::uint64_t>({std::numeric_limits<std::uint64_t>::max()}) == Texts{"18446744073709551615"});
  CHECK(Printed<bool>({true, false}) == Texts{"1", "0"});
}

template <typename T>
std::string ReadAs(const std::string& text, T expected) {
  TextTensors texts({text});
  HostTensor out = HostTensor::Empty<T>({1});
  std::string error = Run("rewire.text.to_number", {&texts.x, &texts.offsets, &texts.bytes, &out});
  if (error.empty() && out.values<T>()[0] != expected) error = "differs";
  return error;
}

TEST_CASE("text as numbers") {
  for (const char* text : {"2.5", " 2.5", "2.5 ", "+2.5", "2.5x", "25e-1", "\t\n2.5", "2.50"})
    CHECK(ReadAs<float>(text, 2.5f).empty());
  CHECK(ReadAs<float>("1e50", std::numeric_limits<float>::infinity()).empty());
  CHECK(ReadAs<double>("-inf", -std::numeric_limits<double>::infinity()).empty());
  CHECK(ReadAs<float>("0x10", 16).empty());
  CHECK(ReadAs<float>("0x", 0).empty());
  CHECK(ReadAs<float>(".5", 0.5f).empty());
  CHECK(ReadAs<std::int64_t>("5.7", 5).empty());
  CHECK(ReadAs<std::int64_t>("-9223372036854775808", std::numeric_limits<std::int64_t>::min()).empty());
  CHECK(ReadAs<std::int32_t>("4294967297", 1).empty());
  CHECK(ReadAs<std::uint8_t>("-1", 255).empty());
  CHECK(ReadAs<std::uint64_t>("18446744073709551615", std::numeric_limits<std::uint64_t>::max()).empty());
  const std::string error = "ValueError: rewire.text.to_number: string 0 is no number that ";
  for (const char* text : {"", "abc", "--1", "+-1", "1e400", " "})
    CHECK(ReadAs<double>(text, 0) == error + "f64 can hold");
  CHECK(ReadAs<std::int64_t>("9223372036854775808", 0) == error + "i64 can hold");
  CHECK(ReadAs<std::int64_t>("-9223372036854775809", 0) == error + "i64 can hold");
  CHECK(ReadAs<std::uint64_t>("18446744073709551616", 0) == error + "u64 can hold");
}

Texts CaseOf(const Texts& texts, const char* action) {
  TextTensors x(texts);
  return Made("rewire.text.change_case", {&x.x, &x.offsets, &x.bytes}, std::ssize(texts),
              {{"action", action}});
}

TEST_CASE("upper and lower case") {
  CHECK(CaseOf({"aB1", "Stra\u00dfe", "", "\u00e9\u65e5", "\u01c6"}, "UPPER") ==
        Texts{"AB1", "STRA\u00dfE", "", "\u00c9\u65e5", "\u01c4"});
  CHECK(CaseOf({"aB1", "\u00c9", "\u0391"}, "LOWER") == Texts{"ab1", "\u00e9", "\u03b1"});
  // A letter may take more bytes, or fewer, than before.
  CHECK(CaseOf({"\u023a\u2c65"}, "LOWER") == Texts{"\u2c65\u2c65"});
  CHECK(CaseOf({"a", "\xc3"}, "LOWER") ==
        Texts{"ValueError: rewire.text.change_case_offsets: string 1 is not UTF-8"});
}

// The pieces of each string, with a bar behind each one.
Texts Pieces(const Texts& texts, const AttributeList& attributes) {
  TextTensors x(texts);
  HostTensor counts = HostTensor::Empty<std::int64_t>({std::ssize(texts)});
  REQUIRE(Run("rewire.text.split_counts", {&x.x, &x.offsets, &x.bytes, &counts}, attributes).empty());
  std::int64_t most = 0;
  for (const std::int64_t count : counts.values<std::int64_t>()) most = std::max(most, count);
  HostTensor width = HostTensor::Of<std::int64_t>({1}, {most});
  const Texts made =
      Made("rewire.text.split", {&x.x, &x.offsets, &x.bytes}, std::ssize(texts) * most, attributes, &width);
  Texts joined;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string& text = joined.emplace_back();
    const auto row = i * static_cast<std::size_t>(most);
    for (std::size_t k = 0; k < static_cast<std::size_t>(counts.values<std::int64_t>()[i]); ++k)
      text += made[row + k] + "|";
  }
  return joined;
}

// As str.split of Python cuts.
TEST_CASE("strings cut into pieces") {
  CHECK(Pieces({" a  b c ", "", "x\ty\n", "   "}, {}) == Texts{"a|b|c|", "", "x|y|", ""});
  CHECK(Pieces({" a  b c ", "a", "a "}, {{"maxsplit", 1}}) == Texts{"a|b c |", "a|", "a|"});
  CHECK(Pieces({" a b "}, {{"maxsplit", 0}}) == Texts{"a b |"});
  CHECK(Pieces({"a-b--c-", "", "-"}, {{"delimiter", "-"}}) == Texts{"a|b||c||", "|", "||"});
  CHECK(Pieces({"a---b"}, {{"delimiter", "--"}}) == Texts{"a|-b|"});
  CHECK(Pieces({"a-b-c"}, {{"delimiter", "-"}, {"maxsplit", 1}}) == Texts{"a|b-c|"});
  CHECK(Pieces({}, {}).empty());
  // The delimiter lies across the parts that are searched one after the other.
  for (const std::size_t before : {131070U, 131071U, 131072U, 131073U}) {
    const std::string begin(before, 'x');
    CHECK(Pieces({begin + "<>y"}, {{"delimiter", "<>"}}) == Texts{begin + "|y|"});
  }
}

TEST_CASE("widths that do not fit the pieces") {
  TextTensors x({"a b"});
  HostTensor offsets = HostTensor::Empty<std::int64_t>({2});
  const auto split = [&](std::int64_t pieces) {
    HostTensor width = HostTensor::Of<std::int64_t>({1}, {pieces});
    return Run("rewire.text.split_offsets", {&x.x, &x.offsets, &x.bytes, &width, &offsets});
  };
  CHECK(split(1) == "ValueError: rewire.text.split_offsets: a string has more than 1 pieces");
  CHECK(split(-1) == "ValueError: rewire.text.split_offsets: width is -1, expected at least 0");
  CHECK(split(2) == "ValueError: rewire.text.split_offsets: out has shape [2], expected [3]");
  HostTensor none = HostTensor::Empty<std::int64_t>({0});
  CHECK(Run("rewire.text.split_offsets", {&x.x, &x.offsets, &x.bytes, &none, &offsets}) ==
        "ValueError: rewire.text.split_offsets: width has shape [0], expected one element");
}

TEST_CASE("strings one behind the other, and compared") {
  TextTensors x({2, 2}, {"a", "", "b", "\u00e9"}), y({2, 2}, {"1", "2", "", "\u00e9"});
  const std::vector<HostTensor*> both = {&x.x, &x.offsets, &x.bytes, &y.x, &y.offsets, &y.bytes};
  CHECK(Made("rewire.text.concat", both, 4) == Texts{"a1", "2", "b", "\u00e9\u00e9"});
  HostTensor equal = HostTensor::Empty<bool>({2, 2});
  std::vector<HostTensor*> compared = both;
  compared.push_back(&equal);
  REQUIRE(Run("rewire.text.equal", compared).empty());
  CHECK(equal.values<std::uint8_t>() == std::vector<std::uint8_t>{0, 0, 0, 1});
  HostTensor bytes = HostTensor::Empty<std::uint8_t>({6});
  std::vector<HostTensor*> short_of = both;
  short_of.push_back(&bytes);
  CHECK(Run("rewire.text.concat", short_of) ==
        "ValueError: rewire.text.concat: out has shape [6], expected [8]");
}

TEST_CASE("strings are found among keys") {
  TextTensors x({"b", "", "zz", "a", "ba"});
  const auto found = [&](const Texts& keys, int sorted) {
    TextTensors list(keys);
    HostTensor out = HostTensor::Empty<std::int64_t>({5});
    const std::string error =
        Run("rewire.text.find", {&x.x, &x.offsets, &x.bytes, &list.offsets, &list.bytes, &out},
            {{"sorted", sorted}});
    REQUIRE(error.empty());
    return out.values<std::int64_t>();
  };
  CHECK(found({"", "a", "b", "c"}, 1) == std::vector<std::int64_t>{2, 0, -1, 1, -1});
  CHECK(found({"b"}, 1) == std::vector<std::int64_t>{0, -1, -1, -1, -1});
  CHECK(found({"b", "a", "b"}, 0) == std::vector<std::int64_t>{2, -1, -1, 1, -1});
  CHECK(found({}, 1) == std::vector<std::int64_t>{-1, -1, -1, -1, -1});
}

TEST_CASE("strings are ranked by their bytes") {
  const auto ranks = [](const Texts& texts) {
    TextTensors x(texts);
    HostTensor out = HostTensor::Empty<std::int64_t>({std::ssize(texts)});
    REQUIRE(Run("rewire.text.rank", {&x.x, &x.offsets, &x.bytes, &out}).empty());
    return out.values<std::int64_t>();
  };
  using Ranks = std::vector<std::int64_t>;
  CHECK(ranks({"b", "", "b", "\u00e9", "a", "ab", "\U0001f600", "\uffff", ""}) ==
        Ranks{3, 0, 3, 4, 1, 2, 6, 5, 0});
  CHECK(ranks({}).empty());
  // Long ones are compared in parts.
  const std::string part(8192, 'x'), more = part + part;
  CHECK(ranks({more + "b", more + "a", more, part, part + "y", more + "a", part + "x"}) ==
        Ranks{4, 3, 2, 0, 5, 3, 1});
}

TEST_CASE("a list is checked") {
  HostTensor out = HostTensor::Empty<std::int64_t>({2});
  const auto check = [&](const std::vector<std::int64_t>& positions, const std::vector<std::int64_t>& ends,
                         const std::string& text) {
    HostTensor x = HostTensor::Of<std::int64_t>({2}, positions);
    HostTensor offsets = HostTensor::Of<std::int64_t>({std::ssize(ends)}, ends);
    HostTensor bytes = HostTensor::Of<std::uint8_t>({std::ssize(text)}, {text.begin(), text.end()});
    return Run("rewire.text.check", {&x, &offsets, &bytes, &out});
  };
  const std::string error = "ValueError: rewire.text.check: ";
  CHECK(check({1, 0}, {0, 1, 3}, "a\u00e9").empty());
  CHECK(out.values<std::int64_t>() == std::vector<std::int64_t>{1, 0});
  CHECK(check({1, 2}, {0, 1, 3}, "abc") == error + "a position is 2, the list has 2 strings");
  CHECK(check({-1, 0}, {0, 1, 3}, "abc") == error + "a position is -1, the list has 2 strings");
  CHECK(check({0, 0}, {0, 1, 2}, "a\u00e9") ==
        error + "offsets begin at 0 and end at 2, expected 0 and 3, the size of bytes");
  CHECK(check({0, 0}, {1, 3}, "abc") ==
        error + "offsets begin at 1 and end at 3, expected 0 and 3, the size of bytes");
  CHECK(check({0, 0}, {0, 2, 1, 3}, "abc") == error + "string 1 of offsets lies from 2 to 1 of 3 bytes");
  CHECK(check({0, 0}, {0, 4, 3}, "abc") == error + "string 0 of offsets lies from 0 to 4 of 3 bytes");
  CHECK(check({0, 0}, {0, -1, 3}, "abc") == error + "string 0 of offsets lies from 0 to -1 of 3 bytes");
  CHECK(check({0, 0}, {}, "") == error + "offsets has no elements, expected one more than strings");
  for (const char* text : {"\x80\x80\x80",
                           "a\xc3"
                           "b",
                           "\xed\xa0\x80", "\xc0\x80z"})
    CHECK(check({0, 0}, {0, 3}, text) == error + "string 0 is not UTF-8");
  CHECK(check({0, 0}, {0, 2, 3}, "a\xc3\xa9") == error + "string 0 is not UTF-8");
}

}  // namespace
}  // namespace rewire::test
