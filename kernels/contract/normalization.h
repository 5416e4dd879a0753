// SPDX-License-Identifier: Apache-2.0
//
// Names and attributes of the kernels of normalization. Kernels of every kind, passes and the writer of C
// source read the attributes by these structs: `Given` reads by Int and Float, as kernel::Attributes does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Normalization.
inline constexpr char kLayerNorm[] = "rewire.layer_norm";
inline constexpr char kRmsNorm[] = "rewire.rms_norm";
inline constexpr char kGroupNorm[] = "rewire.group_norm";
inline constexpr char kLrn[] = "rewire.lrn";
inline constexpr char kBatchNorm[] = "rewire.batch_norm";

// Softmax.
inline constexpr char kSoftmax[] = "rewire.softmax";
inline constexpr char kLogSoftmax[] = "rewire.log_softmax";

inline constexpr Cost kNormalizationCosts[] = {
    {kBatchNorm, 2}, {kGroupNorm, 3}, {kLayerNorm, 3}, {kLogSoftmax, 6}, {kRmsNorm, 3}, {kSoftmax, 6},
};

}  // namespace rewire::names

namespace rewire::contract {

// This is added to a variance or mean square, unless the attribute epsilon says another number.
inline constexpr double kUsualEpsilon = 1e-5;

template <typename Given>
double ReadEpsilon(Given& given) {
  return given.Float("epsilon", kUsualEpsilon);
}

// Softmax and its logarithm have these.
struct SoftmaxAttributes {
  std::int64_t axis = -1;

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", -1);
  }
};

// LayerNorm and RmsNorm normalize the dimensions from `axis` on.
struct RowNormAttributes {
  std::int64_t axis = -1;
  double epsilon = kUsualEpsilon;

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", -1);
    epsilon = ReadEpsilon(given);
  }
};

// The shape of the statistics of x, whose dimensions from `first` on are normalized.
template <typename Result>
Result StatisticsSizes(const auto& x, std::size_t first) {
  Result sizes;
  for (std::size_t i = 0; i < first; ++i) sizes.push_back(x[i]);
  for (std::size_t i = first; i < x.size(); ++i) sizes.push_back(1);
  return sizes;
}

// The attribute `layout` stands apart (layout_attribute.h), because a device's kernel has none.
struct GroupNormAttributes {
  std::int64_t groups = 0;  // 0: as many as channels
  double epsilon = kUsualEpsilon;

  template <typename Given>
  void Read(Given& given) {
    groups = given.Int("num_groups", 0, 0);
    epsilon = ReadEpsilon(given);
  }
  std::int64_t GroupsOf(std::int64_t channels) const { return groups == 0 ? channels : groups; }
};

struct BatchNormAttributes {
  double epsilon = kUsualEpsilon;

  template <typename Given>
  void Read(Given& given) {
    epsilon = ReadEpsilon(given);
  }
};

}  // namespace rewire::contract
