// SPDX-License-Identifier: Apache-2.0
// How much memory Gemm packs into.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// The most elements that a product with so many columns and terms packs, and the most of any.
std::int64_t MostPacked(std::int64_t columns, std::int64_t depth);
inline constexpr std::int64_t kGemmMost = std::int64_t{1} << 40;

}  // namespace rewire::kernel::cpu
