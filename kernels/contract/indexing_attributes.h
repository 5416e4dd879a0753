// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels that pick elements, as kernels of every kind read them. `Given` reads attributes
// by Int and Bool, as kernel::Attributes does.
#pragma once

#include <cstdint>

namespace rewire::contract {

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
  static constexpr std::int64_t kMostBatchDims = 16;

  std::int64_t batch_dims = 0;  // the first dimensions, which x and the indices share

  template <typename Given>
  void Read(Given& given) {
    batch_dims = given.Int("batch_dims", 0, 0, kMostBatchDims);
  }
};

struct OneHotAttributes {
  std::int64_t axis = -1;  // of the result

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", -1);
  }
};

}  // namespace rewire::contract
