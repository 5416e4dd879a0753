// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/activation_range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rewire::compiler {
namespace {

constexpr std::size_t kBins = 2048;
constexpr std::size_t kLevels = 128;
// Of a bin that was empty before others were cut off to it, so that the divergence stays finite.
constexpr double kLeastProbability = 1e-9;

// How far the counts of the first `kept` bins move if the others are cut off to the last of these, and all
// become kLevels levels.
double Divergence(const std::vector<std::uint64_t>& counts, std::size_t kept) {
  std::vector<double> cut(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<double> levelled(kept, 0);
  for (std::size_t level = 0; level < kLevels; ++level) {
    const std::size_t first = level * kept / kLevels, last = (level + 1) * kept / kLevels;
    double sum = 0, filled = 0;
    for (std::size_t i = first; i < last; ++i) {
      sum += cut[i];
      filled += cut[i] > 0 ? 1 : 0;
    }
    for (std::size_t i = first; i < last; ++i) levelled[i] = cut[i] > 0 ? sum / filled : 0;
  }
  cut.back() += std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(kept), counts.end(), 0.0);
  const double all = std::accumulate(cut.begin(), cut.end(), 0.0);
  const double all_levelled = std::accumulate(levelled.begin(), levelled.end(), 0.0);
  double divergence = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    if (cut[i] == 0) continue;
    const double q = all_levelled > 0 ? levelled[i] / all_levelled : 0;
    divergence += cut[i] / all * std::log(cut[i] / all / std::max(q, kLeastProbability));
  }
  return divergence;
}

}  // namespace

void ActivationRange::Extend(Span<const float> elements) {
  for (const float element : elements) {
    if (!std::isfinite(element)) continue;
    least_ = std::min(least_, element);
    most_ = std::max(most_, element);
  }
}

void ActivationRange::Count(Span<const float> elements) {
  const float magnitude = Magnitude();
  if (!(magnitude > 0)) return;
  counts_.resize(kBins);
  for (const float element : elements) {
    // Zeroes stay exact at any range.
    if (!std::isfinite(element) || element == 0) continue;
    const double bin = double{std::fabs(element)} / magnitude * kBins;
    ++counts_[std::min(static_cast<std::size_t>(bin), kBins - 1)];
  }
}

std::optional<ActivationRange::Limits> ActivationRange::MinMax() const {
  if (!(most_ > least_) || !std::isfinite(most_ - least_)) return std::nullopt;
  return Limits{least_, most_};
}

std::optional<ActivationRange::Limits> ActivationRange::Entropy() const {
  const std::optional<Limits> all = MinMax();
  if (!all || counts_.empty()) return all;
  double best = std::numeric_limits<double>::infinity();
  std::size_t kept = kBins;
  for (std::size_t tried = kLevels; tried <= kBins; tried += kLevels / 8) {
    const double divergence = Divergence(counts_, tried);
    if (divergence < best) {
      best = divergence;
      kept = tried;
    }
  }
  const float limit = Magnitude() * static_cast<float>(kept) / static_cast<float>(kBins);
  return Limits{std::max(all->least, -limit), std::min(all->most, limit)};
}

float ActivationRange::Magnitude() const { return std::max(-least_, most_); }

}  // namespace rewire::compiler
