// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/answer_text.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace rewire::serve {
namespace {

// A token is a byte. Bytes that are no whole character come as U+FFFD.
class Bytes : public Tokenizer {
 public:
  Result<std::vector<std::int64_t>> Encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  Result<std::string> Decode(Span<const std::int64_t> tokens) const override {
    std::string text;
    for (std::size_t i = 0; i < tokens.size();) {
      const std::int64_t first = tokens[i];
      const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
      if (i + size > tokens.size() || (first & 0xc0) == 0x80) {
        text += "\xef\xbf\xbd";
        ++i;
        continue;
      }
      for (std::size_t k = 0; k < size; ++k) text += static_cast<char>(tokens[i + k]);
      i += size;
    }
    return text;
  }
};

struct Told {
  std::vector<std::string> parts;
  bool stopped = false;
  std::string Whole() const {
    std::string whole;
    for (const std::string& part : parts) whole += part;
    return whole;
  }
};

// The parts that are told of a text whose tokens come one by one.
Told Tell(const std::string& text, const std::vector<std::string>& stop) {
  const auto tokenizer = std::make_shared<Bytes>();
  const std::vector<std::int64_t> tokens = *tokenizer->Encode(text), prompt = *tokenizer->Encode("a prompt");
  AnswerText answer(tokenizer, {prompt.data(), prompt.size()}, stop);
  Told told;
  for (std::size_t i = 1; i <= tokens.size() && !told.stopped; ++i) {
    const Result<std::string> part = answer.Take({tokens.data(), i}, i == tokens.size());
    REQUIRE(part);
    told.parts.push_back(*part);
    told.stopped = answer.stopped();
  }
  return told;
}

TEST_CASE("answer text: parts are whole characters, and together the whole text") {
  const std::string text = "a\u00e9\u20ac\U0001F600b";
  const Told told = Tell(text, {});
  CHECK(told.Whole() == text);
  CHECK_FALSE(told.stopped);
  CHECK(told.parts ==
        std::vector<std::string>{"a", "", "\u00e9", "", "", "\u20ac", "", "", "", "\U0001F600", "b"});
}

TEST_CASE("answer text: it ends in front of the first text that ends it, and nothing of that is told") {
  std::mt19937 random(9);
  const auto draw = [&](std::size_t most) {
    std::string text(1 + random() % most, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int turn = 0; turn < 3000; ++turn) {
    const std::string text = draw(20);
    std::vector<std::string> stop;
    for (std::size_t i = random() % 3; i > 0; --i) stop.push_back(draw(5));
    // The texts that are whole first, as tokens come, and the earliest of them.
    std::size_t end = std::string::npos;
    for (std::size_t size = 1; size <= text.size() && end == std::string::npos; ++size) {
      for (const std::string& one : stop) end = std::min(end, text.substr(0, size).find(one));
    }
    const Told told = Tell(text, stop);
    CAPTURE(text, stop);
    CHECK(told.stopped == (end != std::string::npos));
    CHECK(told.Whole() == text.substr(0, end));
  }
}

}  // namespace
}  // namespace rewire::serve
