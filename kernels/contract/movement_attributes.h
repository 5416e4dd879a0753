// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels that move elements, as kernels of every kind read them, and the shapes of what
// they give. `Given` reads attributes by Require, Int, Ints and Bool, as kernel::Attributes does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "rewire/kernels/contract/shape.h"

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

// The order of the axes by perm, and the sizes in this order.
auto PermutedSizes(const auto& x, const auto& perm, auto* order, auto* result, const auto& error)
    -> decltype(error("")) {
  const std::size_t rank = x.size();
  if (!perm.empty() && perm.size() != rank) return error("perm has ", perm.size(), " axes, x has shape ", x);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = perm.empty() ? rank - 1 - i : static_cast<std::size_t>(perm[i]);
    bool fits = axis < rank;  // a negative one is a large number
    for (std::size_t j = 0; j < i && !perm.empty(); ++j) fits = fits && perm[j] != perm[i];
    if (!fits) {
      return error("perm is ", perm, ", expected each axis from 0 to ", static_cast<std::int64_t>(rank) - 1,
                   " once");
    }
    order->push_back(static_cast<std::int64_t>(axis));
    result->push_back(x[axis]);
  }
  return {};
}

// Calls cut(axis, i, step) for starts[i] and ends[i], which slice the axis. It returns false if it has cut
// the axis before.
auto SliceAxes(const auto& x, const auto& starts, const auto& ends, const auto& axes, const auto& steps,
               const auto& cut, const auto& error) -> decltype(error("")) {
  const std::size_t count = starts.size();
  if (ends.size() != count || (!axes.empty() && axes.size() != count) ||
      (!steps.empty() && steps.size() != count)) {
    return error("starts, ends, axes and steps have ", count, ", ", ends.size(), ", ", axes.size(), " and ",
                 steps.size(), " values, expected as many each (axes and steps may be empty)");
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t axis = 0;
    const std::int64_t given = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
    if (auto fits = NormalizeAxis(given, x.size(), &axis, error); !fits) return fits;
    const std::int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0) return error("the step of axis ", axis, " is 0");
    if (!cut(axis, i, step)) return error("axis ", axis, " is named twice");
  }
  return {};
}

// Sets the pads of all axes, zeros before, from those of some.
auto SpreadPads(const auto& pads, const auto& axes, std::size_t rank, auto* all, const auto& error)
    -> decltype(error("")) {
  if (pads.size() != 2 * axes.size())
    return error("pads has ", pads.size(), " values, expected two for each of ", axes.size(), " axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::size_t axis = 0;
    if (auto fits = NormalizeAxis(axes[i], rank, &axis, error); !fits) return fits;
    (*all)[axis] = pads[i];
    (*all)[axis + rank] = pads[i + axes.size()];
  }
  return {};
}

// The pads of all axes.
auto PaddedSizes(const auto& x, const auto& pads, auto* result, const auto& error) -> decltype(error("")) {
  if (pads.size() != 2 * x.size()) {
    return error("pads has ", pads.size(), " values, expected ", 2 * x.size(), " for x of shape ", x);
  }
  constexpr std::int64_t kLimit = std::int64_t{1} << 48;  // sums stay far from overflow
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t before = pads[i], after = pads[i + x.size()];
    if (before < -kLimit || before > kLimit || after < -kLimit || after > kLimit ||
        !IsSize(x[i] + before + after)) {
      return error("pads ", before, " and ", after, " do not fit axis ", i, " of x with shape ", x);
    }
    result->push_back(x[i] + before + after);
  }
  return {};
}

// The sum of the inputs of a concatenation so far and the next one. `result` is replaced, and may be the sum.
template <typename Result>
auto ConcatSizes(const auto& sum, const auto& next, std::size_t axis, std::size_t input, Result* result,
                 const auto& error) -> decltype(error("")) {
  Result sizes;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (next.size() != sum.size() || (i != axis && Differ(sum[i], next[i])))
      return error("input ", input, " has shape ", next, ", expected ", sum, " but for axis ", axis);
    sizes.push_back(i == axis ? Plus(sum[i], next[i]) : KnownOf(sum[i], next[i]));
  }
  *result = std::move(sizes);
  return {};
}

// Checks one of the parts into which x is split, and adds its size along the axis to the sum of those before.
auto AddSplitPart(const auto& x, const auto& part, std::size_t axis, std::size_t output, auto* sum,
                  const auto& error) -> decltype(error("")) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (part.size() != x.size() || (i != axis && Differ(x[i], part[i])))
      return error("output ", output, " has shape ", part, ", expected x's ", x, " but for axis ", axis);
  }
  *sum = Plus(*sum, part[axis]);
  return {};
}

auto TiledSizes(const auto& x, const auto& repeats, auto* result, const auto& error) -> decltype(error("")) {
  if (repeats.size() != x.size())
    return error("repeats has ", repeats.size(), " values, expected ", x.size(), " as x ", x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!IsSize(repeats[i]) || !IsSize(Times(x[i], repeats[i])))
      return error("repeats is ", repeats, ", which is too little or too much for axis ", i);
    result->push_back(Times(x[i], repeats[i]));
  }
  return {};
}

// x without the axes that are marked, which have one element.
auto SqueezedSizes(const auto& x, const auto& gone, auto* result, const auto& error) -> decltype(error("")) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!gone[i]) result->push_back(x[i]);
    if (gone[i] && !CanBeOne(x[i])) return error("axis ", i, " of x ", x, " is not 1");
  }
  return {};
}

// x with axes of one element at those of the result that are marked.
template <typename Result>
Result UnsqueezedSizes(const auto& x, const auto& added, std::size_t rank) {
  Result sizes;
  for (std::size_t i = 0, next = 0; i < rank; ++i) {
    if (added[i]) sizes.push_back(1);
    if (!added[i]) sizes.push_back(x[next++]);
  }
  return sizes;
}

// The target with its 0 replaced by x's size, unless `allow_zero`, and its -1 by what is left.
// `quotient(left, known)` is an optional size: nothing where it does not divide.
auto ReshapedSizes(const auto& x, const auto& target, bool allow_zero, const auto& quotient, auto* result,
                   const auto& error) -> decltype(error("")) {
  using Size = std::remove_cvref_t<decltype(target[0])>;
  // -1 is what is left of x beside the axes that a 0 copies, which may have no elements.
  Size all = 1, left = 1, given = 1, known = 1;
  const auto copies = [&](std::size_t i) { return i < target.size() && !allow_zero && Is(target[i], 0); };
  for (std::size_t i = 0; i < x.size(); ++i) {
    all = Times(all, x[i]);
    if (!copies(i)) left = Times(left, x[i]);
  }
  std::size_t open = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (copies(i) && i >= x.size()) return error("target is ", target, ": x is ", x, " and has no axis ", i);
    result->push_back(copies(i) ? x[i] : target[i]);
    if (Is(target[i], -1)) {
      if (open != target.size()) return error("target is ", target, ": -1 stands in it twice");
      open = i;
      continue;
    }
    if (!IsSize(target[i])) return error("target is ", target, ", expected dimensions of at least -1");
    given = Times(given, copies(i) ? x[i] : target[i]);
    if (!copies(i)) known = Times(known, target[i]);
  }
  if (!IsSize(all) || !IsSize(left) || !IsSize(given) || !IsSize(known))
    return error("x is ", x, " and target ", target, ", which has too many elements");
  bool fits = !Differ(all, given);
  if (open != target.size()) {
    // Beside a 0, -1 could be anything.
    if (Is(known, 0)) return error("target ", target, " leaves its -1 open");
    const std::optional<Size> rest = quotient(left, known);
    if ((fits = rest.has_value())) (*result)[open] = *rest;
  }
  if (fits) return {};
  return error("target ", target, " does not take the ", all, " elements of x ", x);
}

}  // namespace rewire::contract
