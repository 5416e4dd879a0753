// SPDX-License-Identifier: Apache-2.0
//
// The largest values that dimensions can have during a run, as far as they follow from the limits of the
// inputs' dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

class DimLimits {
 public:
  // The graph must not change while this object is used.
  explicit DimLimits(const Graph& graph);

  // The largest value of each dimension. nullopt if one depends on a dimension without a limit, even if it
  // has one itself, such as min(512, N): its largest value is far from what most runs need.
  std::optional<std::vector<std::int64_t>> MostOf(const Shape& dims) const;

 private:
  // nullopt if a symbol has no limit.
  std::optional<Interval> BoundsOf(const DimExpr& dim) const;

  std::unordered_map<std::string, Interval> symbols_;
};

}  // namespace rewire::compiler
