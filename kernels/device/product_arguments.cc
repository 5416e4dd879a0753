// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/product_arguments.h"

#include <algorithm>

#include "rewire/kernels/cpu/shape/shapes.h"

namespace rewire::kernel::device {

ProductArguments MatMulArguments(ShapeView a, ShapeView b, ShapeView out, std::int64_t* batches) {
  const int a_rank = static_cast<int>(a.size());
  const int b_rank = static_cast<int>(b.size());
  const int a_batches = std::max(0, a_rank - 2);
  const int b_batches = std::max(0, b_rank - 2);
  ProductArguments product{};
  product.k = static_cast<int>(a[a.size() - 1]);
  product.m = static_cast<int>(a_rank == 1 ? 1 : a[a.size() - 2]);
  product.n = static_cast<int>(b_rank == 1 ? 1 : b[b.size() - 1]);
  product.rows = std::max(1, product.m);
  product.a_row = product.k;
  product.a_column = 1;
  product.b_row = product.n;
  product.b_column = 1;
  product.alpha = 1;
  *batches = 1;
  // One b for every a: the batches of a are rows of one product.
  if (b_batches == 0 && a_batches > 0) {
    product.m = static_cast<int>(cpu::Product(a, 0, a_rank - 1));
    return product;
  }
  const int rank = std::max(a_batches, b_batches);
  std::int64_t a_step = std::int64_t{product.m} * product.k;
  std::int64_t b_step = std::int64_t{product.k} * product.n;
  product.rank = rank;
  for (int i = rank - 1; i >= 0; --i) {
    const int ai = i - (rank - a_batches);
    const int bi = i - (rank - b_batches);
    const std::int64_t a_dim = ai >= 0 ? a[static_cast<std::size_t>(ai)] : 1;
    const std::int64_t b_dim = bi >= 0 ? b[static_cast<std::size_t>(bi)] : 1;
    const std::int64_t dim = out[static_cast<std::size_t>(i)];
    product.dims[i] = static_cast<int>(dim);
    *batches *= dim;
    product.a_batch[i] = a_dim != 1 ? static_cast<int>(a_step) : 0;
    product.b_batch[i] = b_dim != 1 ? static_cast<int>(b_step) : 0;
    a_step *= a_dim;
    b_step *= b_dim;
  }
  return product;
}

Status RunTiles(Call& call, std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  constexpr std::int64_t kTile = 64;  // rows and columns that a group computes
  return call.Groups((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile, batches, 16, 16);
}

}  // namespace rewire::kernel::device
