// SPDX-License-Identifier: Apache-2.0
//
// Products of floats and of integers share these: the arguments of their device code, and its launch.
#pragma once

#include <cstdint>

#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {

// Short names would be those of the device code's structs.
using ProductArguments = ::Product;

// numpy's matmul of operands whose shapes fit.
ProductArguments MatMulArguments(ShapeView a, ShapeView b, ShapeView out, std::int64_t* batches);

// Runs the product, on CUDA by cuBLASLt if it is there and takes it. `c` is read if the arguments have one.
// The tensors are of one type, dense and checked, and out has elements.
Status RunProduct(TensorView a, TensorView b, const std::optional<TensorView>& c, TensorView out,
                  const ProductArguments& product, std::int64_t batches);

// The same by Rewire's own device code.
Status LaunchProduct(TensorView a, TensorView b, const std::optional<TensorView>& c, TensorView out,
                     const ProductArguments& product, std::int64_t batches);

// Rows and columns of the tiles that groups compute (code/tiles.h): kTile, or kSmallTile if there would be
// too few to keep a GPU busy.
inline constexpr std::int64_t kTile = 64;
inline constexpr std::int64_t kSmallTile = 16;
std::int64_t TileFor(std::int64_t rows, std::int64_t columns, std::int64_t batches);

// Launches code that computes tiles of `rows` x `columns` results, for each batch.
Status RunTiles(Call& call, std::int64_t tile, std::int64_t rows, std::int64_t columns, std::int64_t batches);

}  // namespace rewire::kernel::device
