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

}  // namespace rewire::contract
