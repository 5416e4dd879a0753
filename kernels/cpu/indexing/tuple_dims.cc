// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/indexing/tuple_dims.h"

#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/cpu/shape/shape_error.h"

namespace rewire::kernel::cpu {

Status CheckElementIndices(ShapeView x, ShapeView indices, int along) {
  bool fits = indices.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) {
    fits = i == static_cast<std::size_t>(along) || indices[i] <= x[i];
  }
  if (fits) return Status();
  return ValueError("indices has shape ", indices, ", expected at most x's ", x, " but along axis ", along);
}

Status GatherNDDims(ShapeView x, ShapeView indices, std::int64_t batch_dims, Dims* result) {
  const std::int64_t width = indices.empty() ? 0 : indices[indices.size() - 1];
  return contract::SlicesSizes(x, indices, batch_dims, width, result, kShapeError);
}

}  // namespace rewire::kernel::cpu
