// SPDX-License-Identifier: Apache-2.0
//
// The choice of the next token among logits.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire::serve {

// Sampler: draws tokens. The same seed gives the same tokens for the same logits. One thread at a time.
class Sampler {
 public:
  // `temperature`: logits are divided by it; 0: the likeliest token is taken, the first of equal ones.
  // `top_p`: only the likeliest tokens are drawn, as few as have this share together (nucleus sampling,
  // https://arxiv.org/abs/1904.09751).
  Sampler(double temperature, double top_p, std::uint64_t seed)
      : temperature_(temperature), top_p_(top_p), random_(seed) {}

  // Errors: kRuntimeFailed if there is no token, or if no logit is a finite number or one is NaN.
  Result<std::int64_t> Choose(Span<const float> logits);

 private:
  struct Candidate {
    double weight;
    std::uint32_t token;
  };

  const double temperature_;
  const double top_p_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;
};

}  // namespace rewire::serve
