// SPDX-License-Identifier: Apache-2.0
// The range of a tensor's elements over all calls of a calibration.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/compiler/compiler.h"

namespace rewire::compiler {

class ActivationRange {
 public:
  struct Limits {
    float least = 0, most = 0;
  };

  // Elements that are no finite numbers are left out.
  void Extend(Span<const float> elements);
  // Counts elements in equal parts of the range, for Entropy() and LeastSquares(). Call it for the same
  // elements after all of Extend().
  void Count(Span<const float> elements);

  std::optional<Limits> By(CalibrationMethod method) const;
  // The range of all elements and 0. nullopt: there are none, or all are 0, or the range is no float.
  std::optional<Limits> MinMax() const;
  // A part of that range. Elements beyond a magnitude are cut off, where this changes their distribution
  // least in terms of entropy (Kullback-Leibler), if 255 steps are left.
  std::optional<Limits> Entropy() const;
  // The part of that range that makes the mean square of the errors smallest, where elements beyond it become
  // its ends and others are rounded to 255 steps.
  std::optional<Limits> LeastSquares() const;

  // Elements that Extend() saw, finite or not.
  std::uint64_t elements() const { return elements_; }

 private:
  float least_ = 0, most_ = 0;
  std::uint64_t elements_ = 0;
  std::vector<std::uint64_t> counts_;
};

}  // namespace rewire::compiler
