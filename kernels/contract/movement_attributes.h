// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels that move elements, as kernels of every kind read them. `Given` reads attributes
// by Require, Int, Ints and Bool, as kernel::Attributes does.
#pragma once

#include <cstdint>
#include <vector>

namespace rewire::contract {

struct TransposeAttributes {
  std::vector<std::int64_t> perm;  // empty: the axes in reverse

  template <typename Given>
  void Read(Given& given) {
    perm = given.Ints("perm", {});
  }
};

// Empty axes mean all from the first on, empty steps mean ones.
struct SliceAttributes {
  std::vector<std::int64_t> starts, ends, axes, steps;

  template <typename Given>
  void Read(Given& given) {
    given.Require("starts");
    given.Require("ends");
    starts = given.Ints("starts", {});
    ends = given.Ints("ends", {});
    axes = given.Ints("axes", {});
    steps = given.Ints("steps", {});
  }
};

struct TriluAttributes {
  bool upper = true;  // the elements on and above the diagonal stay, rather than those below

  template <typename Given>
  void Read(Given& given) {
    upper = given.Bool("upper", true);
  }
};

// `pads` has the pads before each axis, then those behind each.
struct PadAttributes {
  std::vector<std::int64_t> pads;

  template <typename Given>
  void Read(Given& given) {
    given.Require("pads");
    pads = given.Ints("pads", {});
  }
};

struct ConcatAttributes {
  std::int64_t axis = 0;

  template <typename Given>
  void Read(Given& given) {
    given.Require("axis");
    axis = given.Int("axis", 0);
  }
};

struct SplitAttributes {
  std::int64_t axis = 0;

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", 0);
  }
};

}  // namespace rewire::contract
