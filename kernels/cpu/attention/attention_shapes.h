// SPDX-License-Identifier: Apache-2.0
//
// Attention of the CPU and of devices share attributes and checks of shapes.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

struct AttentionAttributes {
  double scale = 0, softcap = 0;
  std::int64_t left = -1, right = -1;
  // The heads of q, where k and v are joined; 0: not given. Devices do not read it, so compilers leave joined
  // keys to the CPU.
  std::int64_t heads = 0;
  bool strict = false;  // a bias that is too short is an error, and hides no keys

  void Read(Attributes& attributes);
  float ScaleOf(std::int64_t size) const;
};

struct AttentionShapes {
  std::int64_t batch, heads, groups, length, keys, size, value_size;  // groups: heads of keys
  bool joined;       // q and out are [batch, length, heads * size]
  bool keys_joined;  // k and v are [batch, keys, groups * size]
  std::int64_t bias_strides[4], mask_strides[4];
  std::int64_t visible;  // keys that may be seen at all

  // Without a bias and a mask.
  Status Resolve(const AttentionAttributes& given, TensorView q, TensorView k, TensorView v, TensorView out);
  // After Resolve. Sets the strides by which a bias or mask broadcasts to the scores.
  Status ResolveTerm(const AttentionAttributes& given, const char* name, TensorView term,
                     std::int64_t* strides);

 private:
  Status ResolveHeads(std::int64_t given, TensorView q, TensorView k, TensorView v);
};

// How far it is from the integer of a batch to the next one's: 0 if there is one for all, else 1.
Status StepOfCounts(const char* name, TensorView counts, std::int64_t batch, std::int64_t* step);

}  // namespace rewire::kernel::cpu
