// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/sampling.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace rewire::serve {
namespace {

std::int64_t Chosen(Sampler* sampler, const std::vector<float>& logits) {
  const Result<std::int64_t> token = sampler->Choose(logits);
  REQUIRE(token);
  return *token;
}

TEST_CASE("sampling: without temperature, the likeliest token is taken, and the first of equal ones") {
  std::mt19937 random(5);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<float> logits(1 + random() % 40);
    for (float& logit : logits) logit = static_cast<float>(static_cast<int>(random() % 9) - 4);
    Sampler sampler(0, 1, random());
    CHECK(Chosen(&sampler, logits) == std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
}

TEST_CASE("sampling: tokens are drawn as often as their shares say, and a seed gives the same ones again") {
  const std::vector<float> logits = {0, 1, -std::numeric_limits<float>::infinity(), 2, 1};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    std::array<double, 5> shares{};
    double sum = 0;
    for (std::size_t i = 0; i < 5; ++i) sum += shares[i] = std::exp(logits[i] / temperature);
    for (const double top_p : {1.0, 0.999999}) {  // by both ways to draw
      Sampler sampler(temperature, top_p, 7), again(temperature, top_p, 7);
      std::array<int, 5> counts{};
      constexpr int kTurns = 20000;
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::int64_t token = Chosen(&sampler, logits);
        REQUIRE(token == Chosen(&again, logits));
        ++counts[static_cast<std::size_t>(token)];
      }
      // Six standard deviations of a count.
      for (std::size_t i = 0; i < 5; ++i) {
        const double share = shares[i] / sum;
        CHECK(std::abs(counts[i] - kTurns * share) <= 6 * std::sqrt(kTurns * share * (1 - share)));
      }
    }
  }
}

TEST_CASE("sampling: top_p keeps the likeliest tokens that have this share together, and no other") {
  // Shares: 0.5, 0.25, 0.125, 0.0625, 0.0625.
  const std::vector<float> logits = {std::log(1.0F), std::log(8.0F), std::log(2.0F), std::log(4.0F),
                                     std::log(1.0F)};
  struct Row {
    double top_p;
    std::set<std::int64_t> tokens;
  };
  for (const Row& row : {Row{0, {1}}, Row{0.4, {1}}, Row{0.6, {1, 3}}, Row{0.8, {1, 2, 3}},
                         Row{0.9, {0, 1, 2, 3}}, Row{0.99, {0, 1, 2, 3, 4}}}) {
    CAPTURE(row.top_p);
    Sampler sampler(1, row.top_p, 3);
    std::set<std::int64_t> drawn;
    for (int turn = 0; turn < 2000; ++turn) drawn.insert(Chosen(&sampler, logits));
    CHECK(drawn == row.tokens);
  }
}

TEST_CASE("sampling: logits without a token to choose are an error") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits :
       {std::vector<float>{}, {0, std::nanf(""), 1}, {-kInfinity, -kInfinity}, {0, kInfinity}}) {
    for (const double temperature : {0.0, 1.0}) {
      Sampler sampler(temperature, 1, 1);
      const Result<std::int64_t> token = sampler.Choose(logits);
      REQUIRE_FALSE(token);
      CHECK(token.error().code() == StatusCode::kRuntimeFailed);
      CHECK_THAT(token.error().message(), Catch::Contains("the logits have no token to choose"));
    }
  }
}

}  // namespace
}  // namespace rewire::serve
