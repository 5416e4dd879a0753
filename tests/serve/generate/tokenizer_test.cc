// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/tokenizer.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "rewire/tests/serve/word_tokenizer.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

TEST_CASE("tokenizer: a file that is no model of SentencePiece is refused with its path") {
  const rewire::test::TempFolder folder;
  const std::string missing = (folder.path() / "missing.model").string();
  const std::string damaged = (folder.path() / "damaged.model").string();
  std::ofstream(damaged, std::ios::binary) << "no model";
  for (const std::string& path : {missing, damaged}) {
    const auto opened = OpenTokenizer(path);
    REQUIRE_FALSE(opened);
    CHECK_THAT(opened.error().message(), Contains(path));
    // Without the library that is said, too.
    const bool is_missing = opened.error().code() == StatusCode::kUnsupported;
    if (!is_missing) CHECK_THAT(opened.error().message(), Contains("no model of SentencePiece can be read"));
    if (is_missing) CHECK_THAT(opened.error().message(), Contains("tokenizers need"));
  }
}

TEST_CASE("tokenizer: texts are tokens and back, from several threads at once") {
  const rewire::test::TempFolder folder;
  const auto tokenizer = OpenTokenizer(WriteTokenizer(folder));
  if (!tokenizer && tokenizer.error().code() == StatusCode::kUnsupported) {
    WARN("skipped: " << tokenizer.error().message());
    return;
  }
  INFO((tokenizer ? std::string() : tokenizer.error().message()));
  REQUIRE(tokenizer);
  using Tokens = std::vector<std::int64_t>;
  CHECK(*(*tokenizer)->Encode("abc") == Tokens{3, 4, 5, 6});
  CHECK(*(*tokenizer)->Encode("a b") == Tokens{3, 4, 3, 5});
  CHECK((*tokenizer)->Encode("")->empty());
  CHECK(*(*tokenizer)->Encode("aZ") == Tokens{3, 4, 0});
  const Tokens tokens = {1, 3, 4, 3, 5, 2, 16, -1, std::int64_t{1} << 40};
  CHECK(*(*tokenizer)->Decode({tokens.data(), tokens.size()}) == "a b");
  CHECK((*tokenizer)->Decode({})->empty());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::string text;
      for (int turn = 0; turn < 300; ++turn) {
        text += static_cast<char>('a' + (turn + i) % 12);
        const auto encoded = (*tokenizer)->Encode(text);
        const bool good = encoded && encoded->size() == text.size() + 1 &&
                          *(*tokenizer)->Decode({encoded->data(), encoded->size()}) == text;
        wrong += good ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace rewire::serve::test
