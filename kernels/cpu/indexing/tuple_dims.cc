// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/indexing/tuple_dims.h"

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
  const auto batch = static_cast<std::size_t>(batch_dims);
  const bool has_batch = batch < indices.size() && batch <= x.size();
  if (indices.empty() || !has_batch || ShapeView(x.data(), batch) != ShapeView(indices.data(), batch)) {
    return ValueError("indices has shape ", indices, ", expected to begin with the first ", batch_dims,
                      " dimensions of x ", x, " and to have one more");
  }
  const std::int64_t width = indices[indices.size() - 1];
  if (width < 0 || static_cast<std::size_t>(width) > x.size() - batch) {
    return ValueError("indices has shape ", indices, ": ", width, " indices are more than the axes of x ", x);
  }
  const std::size_t kept = x.size() - batch - static_cast<std::size_t>(width);
  if (indices.size() - 1 + kept > kMaxKernelRank) {
    return ValueError("x has shape ", x, " and indices ", indices, ": the result's rank is over ",
                      kMaxKernelRank);
  }
  *result = Dims(ShapeView(indices.data(), indices.size() - 1));
  for (std::size_t i = x.size() - kept; i < x.size(); ++i) result->push_back(x[i]);
  return Status();
}

}  // namespace rewire::kernel::cpu
