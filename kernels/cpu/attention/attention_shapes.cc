// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/attention/attention_shapes.h"

#include <algorithm>
#include <cmath>

#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

void AttentionAttributes::Read(Attributes& attributes) {
  scale = attributes.Float("scale", 0);
  softcap = attributes.Float("softcap", 0);
  left = attributes.Int("left", -1, -1, kMostSize);
  right = attributes.Int("right", -1, -1, kMostSize);
}

float AttentionAttributes::ScaleOf(std::int64_t size) const {
  return static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size)));
}

Status AttentionShapes::Resolve(TensorView q, TensorView k, TensorView v, TensorView out) {
  if (q.ndim() != 3 && q.ndim() != 4) return ValueError("q has shape ", q.dims(), ", expected rank 3 or 4");
  if (Status s = CheckRank("k", k, 4); !s.ok()) return s;
  if (Status s = CheckRank("v", v, 4); !s.ok()) return s;
  joined = q.ndim() == 3;
  batch = k.dim(0);
  groups = k.dim(1);
  keys = visible = k.dim(2);
  size = k.dim(3);
  value_size = v.dim(3);
  const std::int64_t of_v[] = {batch, groups, keys, value_size};
  if (Status s = CheckShape("v", v, ShapeView(of_v, 4)); !s.ok()) return s;
  length = q.dim(joined ? 1 : 2);
  const std::int64_t hidden = q.dim(joined ? 2 : 1);
  heads = !joined ? hidden : size > 0 ? hidden / size : 0;
  const bool fits = q.dim(0) == batch && groups > 0 && size > 0 && heads > 0 && heads % groups == 0 &&
                    (joined ? hidden == heads * size : q.dim(3) == size);
  if (!fits)
    return ValueError("q has shape ", q.dims(), " and k ", k.dims(),
                      ", expected [B, H, L, D] or [B, L, H * D] with H a multiple of k's second dimension");
  const std::int64_t of_out[] = {batch, heads, length, value_size};
  const std::int64_t of_joined[] = {batch, length, Times(heads, value_size)};
  return CheckShape("out", out, joined ? ShapeView(of_joined, 3) : ShapeView(of_out, 4));
}

Status AttentionShapes::ResolveBias(TensorView bias) {
  const std::int64_t all[] = {batch, heads, length, keys};
  // Keys behind its last column are not seen.
  const std::int64_t columns = bias.ndim() > 0 ? bias.dim(bias.ndim() - 1) : 1;
  if (columns > 1) visible = std::min(keys, columns);
  bool fits = bias.ndim() <= 4 && columns <= std::max<std::int64_t>(1, keys);
  for (int i = 0; fits && i + 1 < bias.ndim(); ++i)
    fits = bias.dim(i) == 1 || bias.dim(i) == all[4 - bias.ndim() + i];
  if (!fits)
    return ValueError("bias has shape ", bias.dims(), ", expected one that broadcasts to ",
                      ShapeView(all, 4));
  BroadcastStrides(bias, 4, bias_strides);
  return Status();
}

Status StepOfCounts(const char* name, TensorView counts, std::int64_t batch, std::int64_t* step) {
  if (!counts.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), name, counts);
  if (counts.size() != 1 && (counts.ndim() != 1 || counts.dim(0) != batch))
    return ValueError(name, " has shape ", counts.dims(), ", expected one element or [", batch, "]");
  *step = counts.size() == 1 ? 0 : 1;
  return Status();
}

}  // namespace rewire::kernel::cpu
