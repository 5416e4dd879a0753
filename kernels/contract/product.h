// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of matrix products.
#pragma once

#include <string_view>

#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/work_rule.h"

namespace rewire::names {

// Products and convolutions by packed weights, and what packs them.
constexpr bool IsPacked(std::string_view name) { return StartsWith(Stem(name), "packed."); }

// Matrix products.
inline constexpr char kDense[] = "rewire.dense";
inline constexpr char kGemm[] = "rewire.gemm";
inline constexpr char kMatMul[] = "rewire.matmul";

// Products by packed weights.
inline constexpr char kPackedPack[] = "rewire.packed.pack";
inline constexpr char kPackedMatMul[] = "rewire.packed.matmul";

// Products by weights of 4 and 8 bits in blocks.
inline constexpr char kBlockedMatMul[] = "rewire.blocked.matmul";

// Packing of weights of 4 and 8 bits.
inline constexpr char kBlockedPack[] = "rewire.blocked.pack";
inline constexpr char kBlockedPackScales[] = "rewire.blocked.pack_scales";
inline constexpr char kBlockedPackOffsets[] = "rewire.blocked.pack_offsets";

// Integer products by packed weights.
inline constexpr char kPackedPackIntegers[] = "rewire.packed.pack_integers";
inline constexpr char kPackedMatMulInteger[] = "rewire.packed.matmul_integer";
inline constexpr char kPackedMatMulBytes[] = "rewire.packed.matmul_bytes";

// Integer products.
inline constexpr char kMatMulInteger[] = "rewire.matmul_integer";

// Einstein summation.
inline constexpr char kEinsum[] = "rewire.einsum";
inline constexpr char kShapeEinsum[] = "rewire.shape.einsum";

// Square matrices.
inline constexpr char kDet[] = "rewire.det";

// By oneDNN.
inline constexpr char kOneDnnPackMatMul[] = "rewire.onednn.pack_matmul";
inline constexpr char kOneDnnMatMul[] = "rewire.onednn.matmul";

inline constexpr WorkRule kProductWork[] = {
    {.kernel = kMatMul, .products = "out * a[-1]", .factors = {0, 2}},
    {.kernel = kMatMulInteger, .products = "out * a[-1]"},
    {.kernel = kGemm, .products = "out * (transA * a[0] + (1 - transA) * a[-1])", .factors = {0, 2}},
    {.kernel = kDense, .products = "out * x[-1]"},
    {.kernel = kPackedMatMul, .products = "out * x[-1]"},
    {.kernel = kPackedMatMulInteger, .products = "out * x[-1]"},
    {.kernel = kPackedMatMulBytes, .products = "out * x[-1]"},
    {.kernel = kBlockedMatMul, .products = "out * x[-1]"},
    {.kernel = kOneDnnMatMul, .products = "out * x[-1]"},
};

}  // namespace rewire::names
