// SPDX-License-Identifier: Apache-2.0
#include "base/did_you_mean.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace rewire {
namespace {

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps of neighbours") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("image", "image") == 0);
  CHECK(EditDistance("imge", "image") == 1);
  CHECK(EditDistance("imgae", "image") == 1);
  CHECK(EditDistance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest name is at most two edits away and keeps a letter") {
  const std::vector<std::string> names = {"image", "mask", "x"};
  CHECK(NearestName("imgae", names) == "image");
  CHECK(NearestName("masks", names) == "mask");
  CHECK(NearestName("scores", names).empty());
  CHECK(NearestName("y", names).empty());
  CHECK(NearestName("", names).empty());
  CHECK(NearestName(std::string(100000, 'a'), names).empty());
}

TEST_CASE("the end of the message names the nearest name or what there is") {
  CHECK(DidYouMean("imgae", {"image", "mask"}) == "; did you mean \"image\"?");
  CHECK(DidYouMean("scores", {"image", "mask"}) == "; known: \"image\", \"mask\"");
  CHECK(DidYouMean("scores", {}) == "; there are none");
  const std::vector<std::string> many(10, "abcdefgh");
  const std::string text = DidYouMean("x", many);
  CHECK(text.substr(text.size() - 11) == " and 2 more");
}

}  // namespace
}  // namespace rewire
