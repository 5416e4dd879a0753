// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/attention/attention_shapes.h"

#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

void AttentionAttributes::Read(Attributes& attributes) {
  scale = attributes.Float("scale", 0);
  softcap = attributes.Float("softcap", 0);
  left = attributes.Int("left", -1, -1, kMostSize);
  right = attributes.Int("right", -1, -1, kMostSize);
  strict = attributes.Bool("strict", false);
}

float AttentionAttributes::ScaleOf(std::int64_t size) const {
  return static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size)));
}

Status AttentionShapes::Resolve(const AttentionAttributes& given, TensorView q, TensorView k, TensorView v,
                                TensorView out) {
  if (q.ndim() != 3 && q.ndim() != 4) return ValueError("q has shape ", q.dims(), ", expected rank 3 or 4");
  joined = q.ndim() == 3;
  keys_joined = k.ndim() == 3;
  batch = q.dim(0);
  length = q.dim(joined ? 1 : 2);
  if (Status s = ResolveHeads(given.heads, q, k, v); !s.ok()) return s;
  const auto of_v = contract::AttendedSizes<Dims>(batch, groups, keys, value_size, keys_joined);
  if (Status s = CheckShape("v", v, of_v.view()); !s.ok()) return s;
  return CheckShape("out", out,
                    contract::AttendedSizes<Dims>(batch, heads, length, value_size, joined).view());
}

// Reads what the shapes of q and k tell, and the size of values.
Status AttentionShapes::ResolveHeads(std::int64_t given, TensorView q, TensorView k, TensorView v) {
  if (!keys_joined) {
    if (Status s = CheckRank("k", k, 4); !s.ok()) return s;
  }
  if (Status s = CheckRank("v", v, k.ndim()); !s.ok()) return s;
  keys = visible = k.dim(keys_joined ? 1 : 2);
  if (keys_joined && given == 0)
    return ValueError("k has shape ", k.dims(), ", which needs the attribute heads");
  const std::int64_t hidden = q.dim(joined ? 2 : 1), of_keys = k.dim(keys_joined ? 2 : 3);
  if (!joined)
    size = q.dim(3);
  else
    size = keys_joined ? hidden / given : of_keys;
  heads = !joined ? hidden : size > 0 ? hidden / size : 0;
  groups = !keys_joined ? k.dim(1) : size > 0 ? of_keys / size : 0;
  const bool fits = k.dim(0) == batch && groups > 0 && size > 0 && heads > 0 && heads % groups == 0 &&
                    (!joined || hidden == heads * size) && (!keys_joined || heads == given) &&
                    of_keys == (keys_joined ? groups * size : size);
  if (!fits && keys_joined)
    return ValueError("q has shape ", q.dims(), " and k ", k.dims(),
                      ", expected [B, H, L, D] or [B, L, H * D] and [B, S, G * D] with H a multiple of G");
  if (!fits)
    return ValueError("q has shape ", q.dims(), " and k ", k.dims(),
                      ", expected [B, H, L, D] or [B, L, H * D] with H a multiple of k's second dimension");
  value_size = keys_joined ? v.dim(2) / groups : v.dim(3);
  return Status();
}

Status AttentionShapes::ResolveTerm(const AttentionAttributes& given, const char* name, TensorView term,
                                    std::int64_t* strides) {
  const std::int64_t all[] = {batch, heads, length, keys};
  // Keys behind its last column are not seen.
  const std::int64_t columns = term.ndim() > 0 ? term.dim(term.ndim() - 1) : 1;
  if (columns > 1) visible = std::min(visible, columns);
  bool fits = term.ndim() <= 4 && (columns == 1 || columns == keys || (columns < keys && !given.strict));
  for (int i = 0; fits && i + 1 < term.ndim(); ++i)
    fits = term.dim(i) == 1 || term.dim(i) == all[4 - term.ndim() + i];
  if (!fits)
    return ValueError(name, " has shape ", term.dims(), ", expected one that broadcasts to ",
                      ShapeView(all, 4));
  BroadcastStrides(term, 4, strides);
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
