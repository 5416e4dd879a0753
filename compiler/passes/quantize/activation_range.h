// SPDX-License-Identifier: Apache-2.0
// The range of a tensor's elements over all calls of a calibration.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/span.h"

namespace rewire::compiler {

class ActivationRange {
 public:
  struct Limits {
    float least = 0, most = 0;
  };

  // Elements that are no finite numbers are left out.
  void Extend(Span<const float> elements);
  // Counts elements by magnitude, for Entropy(). Call it for the same elements after all of Extend().
  void Count(Span<const float> elements);

  // The range of all elements and 0. nullopt: there are none, or all are 0, or the range is no float.
  std::optional<Limits> MinMax() const;
  // A part of that range. Elements beyond a magnitude are cut off, where this changes their distribution
  // least in terms of entropy (Kullback-Leibler), if 128 levels are left.
  std::optional<Limits> Entropy() const;

 private:
  float Magnitude() const;

  float least_ = 0, most_ = 0;
  std::vector<std::uint64_t> counts_;
};

}  // namespace rewire::compiler
