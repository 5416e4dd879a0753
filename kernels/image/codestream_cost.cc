// SPDX-License-Identifier: Apache-2.0
// Estimates what OpenJPEG 2.5 allocates for the parts of a tile, and how much it does before it decodes the
// first pixel.
#include <algorithm>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/codestream.h"

namespace rewire::kernel::image {
namespace {

using cpu::Plus;
using cpu::Times;

// Bytes of OpenJPEG's records, with what malloc adds: 88 for a block, 256 for its first segments, 64 in two
// trees; 56 for a precinct and 184 for the roots of its trees.
constexpr std::int64_t kOfCodeBlock = 512, kOfPrecinct = 512, kOfAll = std::int64_t{1} << 17;
// A pass that is terminated takes 3 bits at least, and gets 24 bytes.
constexpr std::int64_t kOfTerminatedByte = 96;
// Styles in which passes are terminated one by one.
constexpr std::uint32_t kTerminating = 1 | 4;

std::int64_t CeilShift(std::int64_t a, int shift) { return (a + (std::int64_t{1} << shift) - 1) >> shift; }
// Into how many parts of 2^power an axis is divided.
std::int64_t PartsOf(std::int64_t begin, std::int64_t end, int power) {
  return begin >= end ? 0 : CeilShift(end, power) - (begin >> power);
}

struct Division {
  std::int64_t blocks = 0, precincts = 0, most_precincts = 0, samples = 0;
};

Division Divide(const Rectangle& tile, const Codestream::Component& component,
                const ComponentCoding& coding) {
  const Rectangle own = SamplesIn(tile, component);
  Division division;
  division.samples = Times(own.width(), own.height());
  for (int i = 0; i <= coding.levels; ++i) {
    const int level = coding.levels - i;
    const std::int64_t x0 = CeilShift(own.left, level), x1 = CeilShift(own.right, level),
                       y0 = CeilShift(own.top, level), y1 = CeilShift(own.bottom, level);
    const int across = coding.parts[static_cast<std::size_t>(i)] & 15,
              down = coding.parts[static_cast<std::size_t>(i)] >> 4;
    const std::int64_t columns = PartsOf(x0, x1, across), rows = PartsOf(y0, y1, down);
    const std::int64_t precincts = Times(columns, rows);
    // Above the smallest level, three bands of half the size share the precincts.
    const int half = i == 0 ? 0 : 1, bands = i == 0 ? 1 : 3;
    const int block_across = std::min(coding.block_width, across - half),
              block_down = std::min(coding.block_height, down - half);
    // Each precinct may begin and end within a block.
    const std::int64_t block_columns = Plus((CeilShift(x1 - x0, half) >> block_across) + 1, columns),
                       block_rows = Plus((CeilShift(y1 - y0, half) >> block_down) + 1, rows);
    if (precincts > 0) division.blocks = Plus(division.blocks, Times(bands, block_columns, block_rows));
    division.precincts = Plus(division.precincts, precincts);
    division.most_precincts = std::max(division.most_precincts, precincts);
  }
  return division;
}

}  // namespace

bool MeasureTile(const Codestream& stream, const Tile& tile, TileCost* cost) {
  constexpr std::int64_t kMostSamples = std::int64_t{1} << 26, kMostBlocks = std::int64_t{1} << 16,
                         kMostWork = std::int64_t{1} << 21, kLeastData = 1 << 16;
  *cost = {};
  const auto is_like_first = [&](const Codestream::Component& component) {
    return component.across == stream.component[0].across && component.down == stream.component[0].down;
  };
  if (tile.coding.mixes && stream.components >= 3 &&
      !(is_like_first(stream.component[1]) && is_like_first(stream.component[2])))
    return false;
  std::int64_t precincts = 0, most_precincts = 0, levels = 0;
  std::uint32_t style = 0;
  for (std::uint32_t i = 0; i < stream.components; ++i) {
    const ComponentCoding& coding = tile.coding.component[i];
    const Division division = Divide(tile.area, stream.component[i], coding);
    cost->blocks = Plus(cost->blocks, division.blocks);
    cost->samples = Plus(cost->samples, division.samples);
    precincts = Plus(precincts, division.precincts);
    most_precincts = std::max(most_precincts, division.most_precincts);
    levels = std::max<std::int64_t>(levels, coding.levels + 1);
    cost->planes = std::max(cost->planes, coding.planes + coding.shift);
    cost->largest_block =
        std::max(cost->largest_block, std::int64_t{1} << std::max(coding.block_width, coding.block_height));
    style |= coding.style;
  }
  const auto data = static_cast<std::int64_t>(tile.data.size);
  // Each packet takes a byte of data at least.
  const std::int64_t packets = Times(precincts, tile.coding.layers);
  if (packets > data || data > Plus(kLeastData, Times(4, cost->samples)) || cost->samples > kMostSamples ||
      cost->blocks > kMostBlocks)
    return false;
  cost->work = Plus(Times(cost->blocks, tile.coding.layers), Times(16, packets));
  if (cost->work > kMostWork) return false;
  const std::int64_t visits =
      Times(2 * (std::int64_t{tile.coding.layers} + 1), levels, stream.components, most_precincts);
  const std::int64_t of_data = (style & kTerminating) != 0 ? kOfTerminatedByte : 0;
  cost->bytes = Plus(kOfAll, Plus(Times(kOfCodeBlock, cost->blocks), Times(3 * kOfPrecinct, precincts)));
  cost->bytes = Plus(cost->bytes, Plus(visits, Times(2 + of_data, data)));
  // Each use of a block takes 6 bits of a packet at least.
  cost->uses = std::min(Times(cost->blocks, tile.coding.layers), Times(4, data) / 3);
  return true;
}

}  // namespace rewire::kernel::image
