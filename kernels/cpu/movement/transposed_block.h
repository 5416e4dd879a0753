// SPDX-License-Identifier: Apache-2.0
//
// Blocks of elements whose rows and columns change places, with the vectors of the CPU that the process runs
// on.
#pragma once

#include <cstdint>
#include <tuple>

namespace rewire::kernel::cpu {

struct Bytes16 {
  std::uint64_t low;
  std::uint64_t high;
};

// Writes `rows` rows of `columns` elements: out[r * out_row + c] = in[r + c * in_column].
//
// `past_caches`: whole lines may go to memory past the caches, which then need not fetch them first. The
// thread calls hwy::FlushStream before others read them.
template <typename T>
using TransposeBlock = void (*)(T* out, std::int64_t out_row, const T* in, std::int64_t in_column,
                                std::int64_t rows, std::int64_t columns, bool past_caches);

// For each type that elements are moved as.
using BlockTransposes =
    std::tuple<TransposeBlock<std::uint8_t>, TransposeBlock<std::uint16_t>, TransposeBlock<std::uint32_t>,
               TransposeBlock<std::uint64_t>, TransposeBlock<Bytes16>>;

// The functions for the best instruction set that this CPU and the build support.
BlockTransposes ChooseBlockTransposes();

// The same, chosen once per process.
const BlockTransposes& BestBlockTransposes();

}  // namespace rewire::kernel::cpu
