// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/activation_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace rewire::compiler {
namespace {

using Counts = std::vector<std::uint64_t>;

constexpr std::size_t kBins = 4096;
constexpr std::size_t kLevels = 256;
constexpr double kSteps = kLevels - 1;
// Parts of the range at which it may end.
constexpr std::size_t kEnds = 128;
// The probability of a bin that was empty before others were cut off to it, so that the divergence stays
// finite.
constexpr double kLeastProbability = 1e-9;
constexpr double kWorst = std::numeric_limits<double>::infinity();

double CountIn(const Counts& counts, std::size_t first, std::size_t last) {
  return std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(first),
                         counts.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
}

// How far the counts of the bins from `first` to `last` move if others are cut off to the first and last of
// these, and all become kLevels levels.
double Divergence(const Counts& counts, std::size_t first, std::size_t last) {
  const std::size_t kept = last - first;
  std::vector<double> cut(counts.begin() + static_cast<std::ptrdiff_t>(first),
                          counts.begin() + static_cast<std::ptrdiff_t>(last));
  std::vector<double> levelled(kept, 0);
  for (std::size_t level = 0; level < kLevels; ++level) {
    const std::size_t from = level * kept / kLevels, to = (level + 1) * kept / kLevels;
    double sum = 0, filled = 0;
    for (std::size_t i = from; i < to; ++i) {
      sum += cut[i];
      filled += cut[i] > 0 ? 1 : 0;
    }
    for (std::size_t i = from; i < to; ++i) levelled[i] = cut[i] > 0 ? sum / filled : 0;
  }
  cut.front() += CountIn(counts, 0, first);
  cut.back() += CountIn(counts, last, counts.size());
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

// The number, sum and squares of elements in bins, by the number of bins before.
class Moments {
 public:
  Moments(const Counts& counts, double least, double width) : sums_(counts.size() + 1) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto count = static_cast<double>(counts[i]);
      const double middle = least + width * (static_cast<double>(i) + 0.5);
      sums_[i + 1] = {sums_[i][0] + count, sums_[i][1] + count * middle,
                      sums_[i][2] + count * middle * middle};
    }
  }

  double Count(std::size_t first, std::size_t last) const { return sums_[last][0] - sums_[first][0]; }
  // The sum of squares if all elements of these bins become `to`.
  double ErrorAt(double to, std::size_t first, std::size_t last) const {
    const std::array<double, 3>&a = sums_[first], &b = sums_[last];
    return b[2] - a[2] - 2 * to * (b[1] - a[1]) + to * to * (b[0] - a[0]);
  }

 private:
  std::vector<std::array<double, 3>> sums_;
};

}  // namespace

void ActivationRange::Extend(Span<const float> elements) {
  elements_ += elements.size();
  for (const float element : elements) {
    if (!std::isfinite(element)) continue;
    least_ = std::min(least_, element);
    most_ = std::max(most_, element);
  }
}

void ActivationRange::Count(Span<const float> elements) {
  if (!MinMax()) return;
  counts_.resize(kBins);
  const double bins = kBins / (double{most_} - double{least_});
  for (const float element : elements) {
    // Zeros stay exact in any range.
    if (!std::isfinite(element) || element == 0) continue;
    const double bin = (double{element} - double{least_}) * bins;
    ++counts_[std::min(static_cast<std::size_t>(std::max(bin, 0.0)), kBins - 1)];
  }
}

std::optional<ActivationRange::Limits> ActivationRange::By(CalibrationMethod method) const {
  if (method == CalibrationMethod::kEntropy) return Entropy();
  if (method == CalibrationMethod::kLeastSquares) return LeastSquares();
  return MinMax();
}

std::optional<ActivationRange::Limits> ActivationRange::MinMax() const {
  if (!(most_ > least_) || !std::isfinite(most_ - least_)) return std::nullopt;
  return Limits{least_, most_};
}

std::optional<ActivationRange::Limits> ActivationRange::Entropy() const {
  std::optional<Limits> best = MinMax();
  if (!best || counts_.empty()) return best;
  const double width = (double{most_} - double{least_}) / kBins, magnitude = std::max(-least_, most_);
  double least_divergence = kWorst;
  for (std::size_t i = kEnds; i > 0; --i) {
    const double limit = magnitude * static_cast<double>(i) / kEnds;
    const double low = std::max<double>(least_, -limit), high = std::min<double>(most_, limit);
    const auto first = static_cast<std::size_t>(std::floor((low - least_) / width));
    const auto last = std::min(static_cast<std::size_t>(std::ceil((high - least_) / width)), kBins);
    if (last < first + kLevels) break;
    const double divergence = Divergence(counts_, first, last);
    if (divergence >= least_divergence) continue;
    least_divergence = divergence;
    best = Limits{static_cast<float>(low), static_cast<float>(high)};
  }
  return best;
}

std::optional<ActivationRange::Limits> ActivationRange::LeastSquares() const {
  std::optional<Limits> best = MinMax();
  if (!best || counts_.empty()) return best;
  const double width = (double{most_} - double{least_}) / kBins;
  const Moments moments(counts_, least_, width);
  double least_error = kWorst;
  for (std::size_t i = 0; i < kEnds; ++i) {
    for (std::size_t j = kEnds; j > i; --j) {
      const std::size_t first = i * kBins / kEnds, last = j * kBins / kEnds;
      const double low = least_ + width * static_cast<double>(first);
      const double high = least_ + width * static_cast<double>(last);
      if (low > 0 || high < 0) break;
      const double step = (high - low) / kSteps;
      const double error = moments.Count(first, last) * step * step / 12 + moments.ErrorAt(low, 0, first) +
                           moments.ErrorAt(high, last, kBins);
      if (error >= least_error) continue;
      least_error = error;
      best = Limits{std::min(static_cast<float>(low), 0.0F), std::max(static_cast<float>(high), 0.0F)};
    }
  }
  return best;
}

}  // namespace rewire::compiler
