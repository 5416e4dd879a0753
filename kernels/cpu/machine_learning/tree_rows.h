// SPDX-License-Identifier: Apache-2.0
//
// Rows that go through a small tree together. Every node is compared for all of them at once, so that nothing
// waits for a node that a walk has yet to find.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// A row of the kernel's `nodes`. A child below 0 is the leaf -1 - child.
struct TreeNode {
  std::int32_t feature;
  std::int32_t mode;         // 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=; plus 8: NaN goes to children[0]
  std::int32_t children[2];  // if true, if false
};

// How many rows go together at most. Their features are columns of so many numbers.
inline constexpr std::int64_t kTreeRows = 32;

// The nodes [begin, end) of a tree whose root is `begin`. They compare by <=, or by <= with NaN on the true
// side, and their features are right. A child stands behind its parent.
struct SmallTree {
  const TreeNode* nodes;
  const float* thresholds;
  std::int32_t begin, end;
};

struct TreeRows {
  // Finds the leaves of the first `count` of kTreeRows rows. `columns` has kTreeRows numbers for each
  // feature, `leaves` room for kTreeRows. False if a row left the nodes of the tree.
  bool (*find_leaves)(const SmallTree& tree, const float* columns, bool has_nan, std::int64_t count,
                      std::int32_t* leaves);
  std::int64_t rows_in_step;  // how many rows one comparison of a node takes
};

// For the best instruction set that this CPU and the build support.
TreeRows ChooseTreeRows();
// The same, chosen once per process.
const TreeRows& BestTreeRows();

}  // namespace rewire::kernel::cpu
