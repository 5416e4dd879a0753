// SPDX-License-Identifier: Apache-2.0
//
// The attributes of the kernels that reduce axes or run along one, and the shape of a reduction. Kernels of
// every kind, the compiler and the C source that it writes read them here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rewire::contract {

// `Given` reads attributes by Int, Ints and Bool, as kernel::Attributes does.

struct ReduceAttributes {
  std::vector<std::int64_t> axes;
  bool keepdims = true;
  bool keep_without_axes = false;  // no axes mean that nothing is reduced, rather than everything

  template <typename Given>
  void Read(Given& given) {
    axes = given.Ints("axes", {});
    keepdims = given.Bool("keepdims", true);
    keep_without_axes = given.Bool("noop_with_empty_axes", false);
  }
};

// The position of the largest or smallest element along an axis has these.
struct ArgReduceAttributes {
  std::int64_t axis = 0;
  bool keepdims = true;
  bool last = false;  // the last of several that are equal

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", 0);
    keepdims = given.Bool("keepdims", true);
    last = given.Bool("select_last_index", false);
  }
};

// A running sum or product has these.
struct RunningAttributes {
  bool exclusive = false;  // each result leaves out its own element
  bool reverse = false;    // from the end

  template <typename Given>
  void Read(Given& given) {
    exclusive = given.Bool("exclusive", false);
    reverse = given.Bool("reverse", false);
  }
};

// The shape of a reduction of x. `Result` is a list of sizes, which may be expressions; `reduced` says of
// each axis whether it is reduced.
template <typename Result, typename Sizes, typename IsReduced>
Result ReducedSizes(const Sizes& x, const IsReduced& reduced, bool keepdims) {
  Result sizes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) sizes.push_back(x[i]);
    if (reduced[i] && keepdims) sizes.push_back(1);
  }
  return sizes;
}

}  // namespace rewire::contract
