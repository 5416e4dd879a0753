// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of matrix products.
#pragma once

#include <string_view>

#include "rewire/kernels/contract/names.h"

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

}  // namespace rewire::names
