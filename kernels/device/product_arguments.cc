// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/product_arguments.h"

#include <algorithm>
#include <optional>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cuda_libraries/product.h"

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

namespace {

// The step from one batch to the next, if it is the same for all. Axes of size 1 have none.
std::optional<std::int64_t> StepOf(const ProductArguments& product, const int* steps) {
  std::int64_t step = 0, expected = -1;
  for (int i = product.rank - 1; i >= 0; --i) {
    if (product.dims[i] == 1) continue;
    if (expected < 0) step = expected = steps[i];
    if (steps[i] != expected) return std::nullopt;
    expected *= product.dims[i];
  }
  return step;
}

// The product as cuBLASLt can do it. False if it cannot.
bool ForCublas(const ProductArguments& product, std::int64_t batches, cuda_libraries::Product* given) {
  const bool a_plain = product.a_column == 1 && product.a_row == product.k;
  const bool b_plain = product.b_column == 1 && product.b_row == product.n;
  if (!a_plain && (product.a_row != 1 || product.a_column != product.m)) return false;
  if (!b_plain && (product.b_row != 1 || product.b_column != product.k)) return false;
  const auto a_step = StepOf(product, product.a_batch), b_step = StepOf(product, product.b_batch);
  if (!a_step || !b_step) return false;
  const bool row = product.c_column == 1 && product.c_row == 0 && product.beta == 1;
  const bool matrix = product.c_column == 1 && product.c_row == product.n;
  if (product.has_c != 0 && (batches != 1 || (!row && !matrix))) return false;
  given->m = product.m;
  given->n = product.n;
  given->k = product.k;
  given->a_transposed = a_plain ? 0 : 1;
  given->b_transposed = b_plain ? 0 : 1;
  given->batch = batches;
  given->a_step = *a_step;
  given->b_step = *b_step;
  given->alpha = product.alpha;
  given->activation = static_cast<cuda_libraries::Activation>(product.activation);
  if (product.has_c != 0) {
    given->addend = row ? cuda_libraries::Product::kRow : cuda_libraries::Product::kMatrix;
    given->beta = product.beta;
  }
  return true;
}

}  // namespace

Status RunProduct(TensorView a, TensorView b, const std::optional<TensorView>& c, TensorView out,
                  const ProductArguments& product, std::int64_t batches) {
  cuda_libraries::Product given;
  if (DeviceTypeOf(out.device()) == kDLCUDA && ForCublas(product, batches, &given)) {
    bool done = false;
    Status s = cuda_libraries::Multiply(given, a, b, product.has_c != 0 ? c : std::nullopt, out, &done);
    if (!s.ok() || done) return s;
  }
  return LaunchProduct(a, b, c, out, product, batches);
}

Status LaunchProduct(TensorView a, TensorView b, const std::optional<TensorView>& c, TensorView out,
                     const ProductArguments& product, std::int64_t batches) {
  // A tile of few columns would compute mostly nothing.
  constexpr int kFewColumns = 4;
  constexpr int kLeastDepth = 32;
  const bool dots = product.n <= kFewColumns && product.k >= kLeastDepth;
  const std::int64_t tile = TileFor(product.m, product.n, batches);
  Call call(out, Program::kProduct, RealForm(a),
            dots                 ? "dots"
            : tile == kSmallTile ? "small_product"
                                 : "product");
  call.Tensor(a).Tensor(b).Optional(c, a).Tensor(out).Value(product);
  return dots ? call.Rows(out.size()) : RunTiles(call, tile, product.m, product.n, batches);
}

namespace {
std::int64_t TilesOf(std::int64_t count, std::int64_t tile) { return (count + tile - 1) / tile; }
}  // namespace

std::int64_t TileFor(std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  constexpr std::int64_t kManyTiles = 256;  // large GPUs have 60 to 150 multiprocessors
  return TilesOf(rows, kTile) * TilesOf(columns, kTile) * batches < kManyTiles ? kSmallTile : kTile;
}

Status RunTiles(Call& call, std::int64_t tile, std::int64_t rows, std::int64_t columns,
                std::int64_t batches) {
  return call.Groups(TilesOf(columns, tile) * TilesOf(rows, tile) * batches, 1, 1, 16, 16);
}

}  // namespace rewire::kernel::device
