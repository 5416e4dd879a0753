// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees. Their tensors may hold anything, so each step is checked. A tree whose walk
// meets a wrong number adds nothing.

#define NAN_IS_TRUE 8

FUNCTION int goes_to_true(float value, int mode, float threshold) {
  if ((mode & NAN_IS_TRUE) != 0 && is_nan(value)) return 1;
  switch (mode & 7) {
    case 0:
      return value <= threshold;
    case 1:
      return value < threshold;
    case 2:
      return value >= threshold;
    case 3:
      return value > threshold;
    case 4:
      return value == threshold;
    default:
      return value != threshold;
  }
}

// The leaf that each tree gives a row, -1 for none. A child stands behind its parent, so every walk ends.
KERNEL(tree_leaves)
(GLOBAL const float* x, GLOBAL const int* nodes, GLOBAL const float* thresholds, GLOBAL const int* roots,
 GLOBAL int* found, Forest forest, int first_row, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int row = (first_row + i / forest.trees) * forest.features;
  int at = roots[i % forest.trees];
  int least = 0;
  int right = 1;
  while (at >= 0) {
    right = at >= least && at < forest.nodes;
    if (!right) break;
    int feature = nodes[at * 4];
    right = feature >= 0 && feature < forest.features;
    if (!right) break;
    least = at + 1;
    int goes = goes_to_true(x[row + feature], nodes[at * 4 + 1], thresholds[at]);
    at = nodes[at * 4 + (goes ? 2 : 3)];
  }
  int leaf = -1 - at;
  found[i] = right && leaf < forest.leaves ? leaf : -1;
}

// Sums what the leaves of a row say of a target, tree after tree as on the CPU.
KERNEL(tree_sums)
(GLOBAL const int* found, GLOBAL const int* leaves, GLOBAL const int* targets, GLOBAL const float* weights,
 GLOBAL const float* base, GLOBAL float* out, Forest forest, int first_row, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int target = i % forest.outputs;
  int row = i / forest.outputs * forest.trees;
  float start = forest.aggregate == kTreeLeast ? INFINITE : forest.aggregate == kTreeMost ? -INFINITE : 0.0f;
  float sum = start;
  for (int tree = 0; tree < forest.trees; ++tree) {
    int leaf = found[row + tree];
    if (leaf < 0) continue;
    int end = leaves[leaf + 1];
    int at = leaves[leaf];
    if (at < 0 || at > end || end > forest.weights) continue;
    for (; at < end; ++at) {
      if (targets[at] != target) continue;
      float weight = weights[at];
      if (forest.aggregate == kTreeLeast) {
        sum = weight < sum ? weight : sum;
      } else if (forest.aggregate == kTreeMost) {
        sum = weight > sum ? weight : sum;
      } else {
        sum += weight;
      }
    }
  }
  if (forest.aggregate == kTreeAverage) sum /= (float)forest.trees;
  // A target that no leaf names is 0.
  if (forest.aggregate >= kTreeLeast && sum == start) sum = 0.0f;
  out[first_row * forest.outputs + i] = sum + base[target];
}
