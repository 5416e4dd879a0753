// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/machine_learning/tree_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/machine_learning/tree_rows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Part of kTreeRows, since vectors may be longer.
using TreeLanes = hn::CappedTag<float, kTreeRows / 2>;
using TreePlaces = hn::RebindToSigned<TreeLanes>;
using Places = hn::Vec<TreePlaces>;

// A node in all lanes.
struct WideNode {
  HWY_INLINE WideNode(const SmallTree& tree, std::int32_t i)
      : here(hn::Set(TreePlaces(), i)),
        when_true(hn::Set(TreePlaces(), tree.nodes[i].children[0])),
        when_false(hn::Set(TreePlaces(), tree.nodes[i].children[1])),
        mode(hn::Set(TreePlaces(), tree.nodes[i].mode)),
        threshold(hn::Set(TreeLanes(), tree.thresholds[i])) {}
  Places here, when_true, when_false, mode;
  hn::Vec<TreeLanes> threshold;
};

// The next nodes of rows: those that are at the node go on to a child, all others stay.
template <bool kNaN>
HWY_INLINE Places Next(Places at, const WideNode& node, const float* column) {
  const TreePlaces places;
  const auto x = hn::LoadU(TreeLanes(), column);
  auto goes = hn::RebindMask(places, hn::Le(x, node.threshold));
  if constexpr (kNaN) {
    const auto nan_is_true = hn::Ne(node.mode, hn::Zero(places));
    goes = hn::Or(goes, hn::And(hn::RebindMask(places, hn::IsNaN(x)), nan_is_true));
  }
  const auto next = hn::IfThenElse(goes, node.when_true, node.when_false);
  return hn::IfThenElse(hn::Eq(at, node.here), next, at);
}

// Two vectors side by side, since each has to wait for the node before.
template <bool kNaN>
HWY_INLINE bool FindTwo(const SmallTree& tree, const float* columns, std::int32_t* leaves) {
  const TreePlaces places;
  const std::size_t lanes = hn::Lanes(places);
  auto first = hn::Set(places, tree.begin), second = first;
  for (std::int32_t i = tree.begin; i < tree.end; ++i) {
    const WideNode node(tree, i);
    const float* column = columns + tree.nodes[i].feature * kTreeRows;
    first = Next<kNaN>(first, node, column);
    second = Next<kNaN>(second, node, column + lanes);
  }
  hn::StoreU(hn::Not(first), places, leaves);  // -1 - at
  hn::StoreU(hn::Not(second), places, leaves + lanes);
  return hn::AllTrue(places, hn::Lt(hn::And(first, second), hn::Zero(places)));
}

bool FindLeaves(const SmallTree& tree, const float* columns, bool has_nan, std::int64_t count,
                std::int32_t* leaves) {
  const auto step = static_cast<std::int64_t>(2 * hn::Lanes(TreeLanes()));
  bool all = true;
  for (std::int64_t row = 0; row < count; row += step) {
    all = (has_nan ? FindTwo<true>(tree, columns + row, leaves + row)
                   : FindTwo<false>(tree, columns + row, leaves + row)) &&
          all;
  }
  return all;
}

TreeRows TreeRowsOfTarget() { return {&FindLeaves, static_cast<std::int64_t>(2 * hn::Lanes(TreeLanes()))}; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(TreeRowsOfTarget);

TreeRows ChooseTreeRows() { return HWY_DYNAMIC_DISPATCH(TreeRowsOfTarget)(); }

const TreeRows& BestTreeRows() {
  static const TreeRows kBest = ChooseTreeRows();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
