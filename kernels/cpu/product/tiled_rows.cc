// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/tiled_rows.h"

#include <cstring>

namespace rewire::kernel::cpu {
void UnitRows::Write(std::int64_t first, std::int64_t count, std::byte* block) const {
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* row = block + i * kLineBytes;
    WriteBytes(from_ + (first + i) * depth_ * kUnitBytes, depth_ * kUnitBytes, 0, row);
    PadUnits(depth_, row);
  }
}

void ByteRows::Write(std::int64_t first, std::int64_t count, std::byte* block) const {
  const auto flip = static_cast<std::uint8_t>(is_signed_ ? 0x80 : 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* from = from_ + (first + i) * depth_;
    std::byte* row = block + i * kLineBytes;
    for (std::int64_t k = 0; k < depth_; k += kLineBytes) {
      alignas(kLineBytes) std::uint8_t line[kLineBytes] = {};
      if (depth_ - k >= kLineBytes)
        for (std::int64_t j = 0; j < kLineBytes; ++j) line[j] = from[k + j] ^ flip;
      else
        for (std::int64_t j = 0; j < depth_ - k; ++j) line[j] = from[k + j] ^ flip;
      std::memcpy(row + TiledAt(0, k / kUnitBytes), line, kLineBytes);
    }
  }
}

std::int64_t TiledAtOnce(std::int64_t rows, std::int64_t depth, std::int64_t threads) {
  constexpr std::int64_t kBytes = 1 << 19;  // in the second cache, with one thread
  const std::int64_t bytes = threads == 1 ? kBytes : 4 * kBytes;
  const std::int64_t block = Times(std::max<std::int64_t>(1, StepsOf(depth)), kStepBytes);
  return std::min(rows, kBlockRows * std::max<std::int64_t>(2, bytes / block));
}

Status TiledWorkspace(std::int64_t rows, std::int64_t depth, std::byte** tiled) {
  const auto threads = static_cast<std::int64_t>(__rewire_kernel_api->thread_count());
  return Workspace(Times(BlocksOf(TiledAtOnce(rows, depth, threads)), StepsOf(depth), kStepBytes), tiled);
}

std::int64_t TiledBytes(std::int64_t rows, std::int64_t depth) {
  return Times(BlocksOf(TiledAtOnce(rows, depth, 0)), StepsOf(depth), kStepBytes);
}

void DeclareTiledRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth) {
  if (HasTiles()) sizes.Take(TiledBytes(rows, depth), 1);
}

}  // namespace rewire::kernel::cpu
