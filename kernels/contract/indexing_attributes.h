// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels that pick elements, as kernels of every kind read them, and the shapes of what
// they give. `Given` reads attributes by Int and Bool, as kernel::Attributes does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/contract/shape.h"

namespace rewire::contract {

inline constexpr std::size_t kMostRank = 16;

// The largest or smallest elements along an axis.
struct TopKAttributes {
  std::int64_t axis = -1;
  bool largest = true;

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", -1);
    largest = given.Bool("largest", true);
    given.Bool("sorted", true);  // they always are
  }
};

// Gather, GatherElements and ScatterElements have these. The reduction of a scatter is its own attribute.
struct GatherAttributes {
  std::int64_t axis = 0;

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", 0);
  }
};

struct GatherNdAttributes {
  std::int64_t batch_dims = 0;  // the first dimensions, which x and the indices share

  template <typename Given>
  void Read(Given& given) {
    batch_dims = given.Int("batch_dims", 0, 0, kMostRank);
  }
};

struct OneHotAttributes {
  std::int64_t axis = -1;  // of the result

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", -1);
  }
};

// x with its axis replaced by the dimensions of the indices.
auto GatheredSizes(const auto& x, const auto& indices, std::size_t axis, auto* result, const auto& error)
    -> decltype(error("")) {
  if (x.size() + indices.size() > kMostRank + 1)
    return error("x has shape ", x, " and indices ", indices, ": the result's rank is over ", kMostRank);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i != axis) result->push_back(x[i]);
    for (std::size_t k = 0; i == axis && k < indices.size(); ++k) result->push_back(indices[k]);
  }
  return {};
}

// The slices of x that tuples of `width` indices name: [batch..., rows..., what a tuple leaves of x].
auto SlicesSizes(const auto& x, const auto& indices, std::int64_t batch, std::int64_t width, auto* result,
                 const auto& error) -> decltype(error("")) {
  const auto rank = static_cast<std::int64_t>(x.size()),
             of_indices = static_cast<std::int64_t>(indices.size());
  bool begins = batch >= 0 && batch < of_indices && batch <= rank;
  for (std::int64_t i = 0; begins && i < batch; ++i) begins = !Differ(x[i], indices[i]);
  if (!begins) {
    return error("indices has shape ", indices, ", expected to begin with the first ", batch,
                 " dimensions of x ", x, " and to have one more");
  }
  if (width < 0 || width > rank - batch)
    return error("indices has shape ", indices, ": ", width, " indices are more than the axes of x ", x);
  if (of_indices - 1 + rank - batch - width > static_cast<std::int64_t>(kMostRank))
    return error("x has shape ", x, " and indices ", indices, ": the result's rank is over ", kMostRank);
  for (std::int64_t i = 0; i + 1 < of_indices; ++i) result->push_back(indices[i]);
  for (std::int64_t i = batch + width; i < rank; ++i) result->push_back(x[i]);
  return {};
}

// The indices' shape with the axis of classes, one for each depth.
auto OneHotSizes(const auto& indices, std::size_t axis, const auto& depth, auto* result, const auto& error)
    -> decltype(error("")) {
  if (indices.size() == kMostRank) return error("indices is ", indices, ", expected a lower rank");
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    if (i == axis) result->push_back(depth);
    if (i < indices.size()) result->push_back(indices[i]);
  }
  return {};
}

// The first k elements of x along the axis.
auto TopSizes(const auto& x, std::size_t axis, const auto& k, auto* result, const auto& error)
    -> decltype(error("")) {
  if (!IsSize(k) || !IsSize(x[axis] - k))
    return error("k is ", k, ", expected 0 to ", x[axis], " as axis ", axis, " of x ", x);
  for (std::size_t i = 0; i < x.size(); ++i) result->push_back(i == axis ? k : x[i]);
  return {};
}

}  // namespace rewire::contract
