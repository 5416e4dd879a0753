// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rewire::serve {

Result<std::int64_t> Sampler::Choose(Span<const float> logits) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  const bool has_nan =
      std::any_of(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); });
  if (likeliest == logits.end() || has_nan || !std::isfinite(*likeliest)) {
    return Fail(StatusCode::kRuntimeFailed, "the logits have no token to choose: {}",
                logits.empty() ? "there are none" : "NaN or infinite numbers are among them");
  }
  if (temperature_ == 0) return likeliest - logits.begin();
  candidates_.clear();
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight =
        std::exp((static_cast<double>(logits[i]) - static_cast<double>(*likeliest)) / temperature_);
    if (weight == 0) continue;
    candidates_.push_back({weight, static_cast<std::uint32_t>(i)});
    sum += weight;
  }
  // The likeliest token has the weight 1, so there is a candidate.
  double drawn = static_cast<double>(random_() >> 11) * 0x1p-53;
  if (top_p_ >= 1) {
    drawn *= sum;
    for (const Candidate& one : candidates_) {
      drawn -= one.weight;
      if (drawn < 0) return one.token;
    }
    return candidates_.back().token;
  }
  // Few candidates have most of the weight, so they are taken from a heap one by one.
  const auto less = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less);
  auto end = candidates_.end();
  double kept = 0;
  do {
    std::pop_heap(candidates_.begin(), end, less);
    --end;
    kept += end->weight;
  } while (kept < top_p_ * sum && end != candidates_.begin());
  drawn *= kept;
  for (auto one = candidates_.end(); one != end;) {
    --one;
    drawn -= one->weight;
    if (drawn < 0) return one->token;
  }
  return end->token;
}

}  // namespace rewire::serve
