// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/compared_outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rewire::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The most bytes of outputs that are kept.
constexpr std::uint64_t kMostKeptBytes = std::uint64_t{256} << 20;

// Equal infinities have not moved, nor have two values that are no numbers. One of them alone has by
// infinity.
double Moved(float from, float to) {
  if (from == to || (std::isnan(from) && std::isnan(to))) return 0;
  const double moved = std::fabs(double{to} - double{from});
  if (std::isnan(moved)) return kInfinity;
  return moved;
}

struct Sums {
  double most = 0, moved = 0, all = 0;
  bool seen = false;

  void Add(Span<const float> from, Span<const float> to) {
    if (from.size() != to.size()) moved = most = kInfinity;
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      const double by = Moved(from[i], to[i]);
      seen = true;
      most = std::max(most, by);
      moved += by * by;
      if (std::isfinite(from[i])) all += double{from[i]} * double{from[i]};
    }
  }
};

}  // namespace

Result<ComparedOutputs> ComparedOutputs::Make(SampleProgram original, const Calls& calls,
                                              std::vector<std::string> names) {
  ComparedOutputs made(std::move(original), calls, std::move(names));
  std::uint64_t bytes = 0;
  for (const std::vector<rewire::Value>& inputs : calls) {
    if (bytes > kMostKeptBytes) break;
    Result<std::vector<rewire::Value>> outputs = made.original_.Run(inputs);
    if (!outputs) return Forward(outputs);
    for (const rewire::Value& output : *outputs) bytes += SampleElements(output).size() * sizeof(float);
    made.kept_.push_back(*std::move(outputs));
  }
  return made;
}

Result<std::vector<OutputMovement>> ComparedOutputs::Movement(const SampleProgram& quantized) const {
  std::vector<Sums> sums(names_.size());
  for (std::size_t call = 0; call < calls_->size(); ++call) {
    const std::vector<rewire::Value>& inputs = (*calls_)[call];
    std::vector<rewire::Value> before;
    if (call < kept_.size()) {
      before = kept_[call];
    } else {
      Result<std::vector<rewire::Value>> again = original_.Run(inputs);
      if (!again) return Forward(again);
      before = *std::move(again);
    }
    const Result<std::vector<rewire::Value>> after = quantized.Run(inputs);
    if (!after) return Forward(after);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i].Add(SampleElements(before[i]), SampleElements((*after)[i]));
  }
  std::vector<OutputMovement> movement;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i].seen) continue;
    const double relative = sums[i].moved == 0 ? 0 : std::sqrt(sums[i].moved / sums[i].all);
    movement.push_back({names_[i], sums[i].most, relative});
  }
  return movement;
}

}  // namespace rewire::compiler
