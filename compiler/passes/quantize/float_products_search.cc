// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/float_products_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rewire::compiler {
namespace {

// Products that stay float are tried again, some at once; each try runs all samples.
constexpr std::size_t kMostTries = 16;

}  // namespace

// Products whose noise is largest for the work that 8 bits save come first. Noises of products are
// independent, so their squares add up.
std::vector<std::size_t> FloatProductsSearch::Candidates() const {
  std::vector<std::size_t> order;
  std::vector<double> scores(ranges_.limits.size(), 0);
  for (std::size_t i = 0; i < ranges_.limits.size(); ++i) {
    if (!ranges_.limits[i]) continue;
    order.push_back(i);
    scores[i] = noise_[i] * noise_[i] / std::max(ranges_.work[i], 1.0);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return order;
}

Result<FloatProductsSearch::Found> FloatProductsSearch::Try(const std::vector<bool>& stays_float) const {
  const auto floats = std::count(stays_float.begin(), stays_float.end(), true);
  progress_(
      fmt::format("comparing with the float model, {} of {} products float", floats, stays_float.size()));
  Found found;
  found.limits = ranges_.limits;
  for (std::size_t i = 0; i < stays_float.size(); ++i) {
    if (stays_float[i]) found.limits[i].reset();
  }
  Graph graph = graph_.Copy();
  QuantizeProducts(&graph, FloatProducts(graph), found.limits);
  const Result<SampleProgram> program = SampleProgram::Make(std::move(graph), building_);
  if (!program) return Forward(program);
  Result<std::vector<OutputMovement>> movement = outputs_.Movement(*program);
  if (!movement) return Forward(movement);
  found.movement = *std::move(movement);
  for (const OutputMovement& output : found.movement) found.worst = std::max(found.worst, output.relative);
  return found;
}

Result<FloatProductsSearch::Found> FloatProductsSearch::Run(double most) const {
  const std::vector<std::size_t> order = Candidates();
  std::vector<bool> none(ranges_.limits.size(), false);
  Result<Found> all = Try(none);
  if (!all || all->worst <= most || order.empty()) return all;
  // It is known that `good` products that stay float are enough.
  const auto first = [&](std::size_t count) {
    std::vector<bool> floats = none;
    for (std::size_t i = 0; i < count; ++i) floats[order[i]] = true;
    return floats;
  };
  std::size_t bad = 0, good = order.size();
  Result<Found> best = Try(first(good));
  if (!best) return best;
  while (good - bad > 1) {
    const std::size_t middle = bad + (good - bad) / 2;
    Result<Found> tried = Try(first(middle));
    if (!tried) return tried;
    if (tried->worst <= most) {
      good = middle;
      best = std::move(tried);
    } else {
      bad = middle;
    }
  }
  return WinBack(first(good), *std::move(best), most);
}

Result<FloatProductsSearch::Found> FloatProductsSearch::WinBack(std::vector<bool> stays_float, Found found,
                                                                double most) const {
  std::vector<std::size_t> floats;
  for (std::size_t i = 0; i < stays_float.size(); ++i) {
    if (stays_float[i]) floats.push_back(i);
  }
  std::stable_sort(floats.begin(), floats.end(),
                   [&](std::size_t a, std::size_t b) { return ranges_.work[a] > ranges_.work[b]; });
  std::size_t group = 1, at = 0;
  for (std::size_t tries = 0; tries < kMostTries && at < floats.size(); ++tries) {
    group = std::min(group, floats.size() - at);
    std::vector<bool> fewer = stays_float;
    for (std::size_t i = at; i < at + group; ++i) fewer[floats[i]] = false;
    Result<Found> tried = Try(fewer);
    if (!tried) return tried;
    if (tried->worst <= most) {
      stays_float = std::move(fewer);
      found = *std::move(tried);
      at += group;
      group *= 2;
    } else if (group > 1) {
      group /= 2;
    } else {
      ++at;
    }
  }
  return found;
}

}  // namespace rewire::compiler
