// SPDX-License-Identifier: Apache-2.0
// How large dimensions can be when the program runs, as far as the limits of its inputs' dimensions say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

class DimLimits {
 public:
  // The graph must not change as long as this is asked.
  explicit DimLimits(const Graph& graph);

  // The most that each dimension can be; nothing where one depends on a dimension without a limit, though it
  // may have one itself: that of min(512, N) is far from what most runs take.
  std::optional<std::vector<std::int64_t>> MostOf(const Shape& dims) const;

 private:
  // Nothing where a symbol has no limit.
  std::optional<Interval> BoundsOf(const DimExpr& dim) const;

  std::unordered_map<std::string, Interval> symbols_;
};

}  // namespace rewire::compiler
