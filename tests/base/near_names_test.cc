// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/near_names.h"

#include <catch2/catch.hpp>

namespace rewire {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("near names are the nearest, at most three, each once") {
  const Names candidates = {"scores", "scored", "score", "image", "scores", "cores", "labels"};
  CHECK(NearNames("scores", candidates) == Names{"scores", "cores", "score"});
  CHECK(NearNames("SCORE", candidates) == Names{"score", "scored", "scores"});
  CHECK(NearNames("iamge", candidates) == Names{"image"});
  CHECK(NearNames("weight", candidates).empty());
  CHECK(NearNames("", candidates).empty());
  CHECK(NearNames("x", Names{"y", "xy"}) == Names{"xy"});
}

TEST_CASE("a missing or superfluous prefix is near") {
  const Names candidates = {"rewire.add", "rewire.conv2d", "relu"};
  CHECK(NearNames("conv2d", candidates) == Names{"rewire.conv2d"});
  CHECK(NearNames("rewire.relu", candidates) == Names{"relu"});
  CHECK(NearNames("d", candidates).empty());
}

TEST_CASE("names of any length are compared in bounded time") {
  const std::string long_name(1 << 20, 'a');
  CHECK(NearNames(long_name, Names{long_name + "b", std::string(1 << 20, 'b')}).empty());
}

TEST_CASE("the suggestion is the end of a sentence") {
  CHECK(DidYouMean("ad", Names{"add"}) == "; did you mean 'add'?");
  CHECK(DidYouMean("add", Names{"addd", "ad"}) == "; did you mean 'ad' or 'addd'?");
  CHECK(DidYouMean("abcd", Names{"abce", "abcf", "abcg", "abch"}) ==
        "; did you mean 'abce', 'abcf' or 'abcg'?");
  CHECK(DidYouMean("abcd", Names{"wxyz"}).empty());
}

TEST_CASE("names that are known are listed, with the nearest first") {
  const Names inputs = {"image", "mask"};
  CHECK(KnownNames("inputs", "imgae", inputs) == "; did you mean 'image'? The inputs: image, mask");
  CHECK(KnownNames("inputs", "picture", inputs) == "; the inputs: image, mask");
  CHECK(KnownNames("inputs", "x", {}) == "; the inputs: none");
  // The list would say nothing that the suggestion does not.
  CHECK(KnownNames("functions", "mian", Names{"main"}) == "; did you mean 'main'?");
}

TEST_CASE("a list of names is short, however many there are and however long they are") {
  Names many;
  for (int i = 100; i < 150; ++i) many.push_back("n" + std::to_string(i));
  const std::string list = KnownNames("nodes", "x", many);
  CHECK(list.find("; the nodes: n100, n101, ") == 0);
  CHECK(list.find(", n119 and 30 more") == list.size() - std::string(", n119 and 30 more").size());
  const std::string long_name(900, 'a');
  CHECK(KnownNames("nodes", "x", Names{long_name, long_name + "b", "c"}) ==
        "; the nodes: " + long_name + " and 2 more");
  CHECK(KnownNames("nodes", "x", Names{std::string(1 << 20, 'a')}) == "; the nodes: 1, too long to list");
}

}  // namespace
}  // namespace rewire
