// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/winograd/winograd_call.h"

#include <algorithm>
#include <array>

#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/winograd/winograd_transforms.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"

namespace rewire::kernel::cpu {
namespace {

std::int64_t Quotient(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns where the part of this number begins when `count` are divided into parts of like size.
std::int64_t Share(std::int64_t count, std::int64_t parts, std::int64_t number) {
  return count / parts * number + std::min(count % parts, number);
}

std::int64_t TilesOf(std::int64_t outputs) { return Quotient(outputs, kWinogradOutputs); }

std::int64_t FirstOutput(const WindowAxis& axis, std::int64_t tile) {
  const std::int64_t tiles = TilesOf(Quotient(axis.output, axis.dilation));  // of one remainder
  return tile / tiles + tile % tiles * kWinogradOutputs * axis.dilation;
}

// How many of a tile's outputs from `first` on lie inside the image.
std::int64_t OutputsFrom(const WindowAxis& axis, std::int64_t first) {
  if (first >= axis.output) return 0;
  return std::min(kWinogradOutputs, Quotient(axis.output - first, axis.dilation));
}

// The place of a tile: its image, and its first output.
struct Place {
  std::int64_t image, row, column;
};
Place PlaceOf(const WinogradCall& call, std::int64_t tile) {
  return {tile / call.tile_columns / call.tile_rows,
          FirstOutput(*call.rows, tile / call.tile_columns % call.tile_rows),
          FirstOutput(*call.columns, tile % call.tile_columns)};
}

// Input planes that lie between two windows are not read.
bool IsRead(const WindowAxis& depth, std::int64_t slice) {
  return (slice + depth.before) % depth.stride < depth.reach();
}

void TransformTile(const WinogradCall& call, const WinogradGroup& group, std::int64_t i) {
  const Place place = PlaceOf(call, group.first + i % group.count);
  const std::int64_t plane = place.image * call.depth->input + group.first_slice + i / group.count;
  WinogradInput tile;
  tile.channels = call.in_channels;
  tile.to = call.inputs + i * call.in_channels;
  tile.step = call.input_step;
  const float** point = tile.from;
  for (std::int64_t dy = 0; dy < kWinogradInputs; ++dy) {
    const std::int64_t y = place.row - call.rows->before + dy * call.rows->dilation;
    const bool inside = y >= 0 && y < call.rows->input;
    const std::int64_t line = (plane * call.rows->input + y) * call.columns->input;
    for (std::int64_t dx = 0; dx < kWinogradInputs; ++dx) {
      const std::int64_t x = place.column - call.columns->before + dx * call.columns->dilation;
      *point++ =
          inside && x >= 0 && x < call.columns->input ? call.x + (line + x) * call.in_channels : call.zeros;
    }
  }
  BestWinogradTransforms().input(tile);
}

void FinishTile(const WinogradCall& call, const WinogradGroup& group, std::int64_t i) {
  const Place place = PlaceOf(call, group.first + i % group.count);
  const std::int64_t plane = place.image * call.depth->output + group.first_plane + i / group.count;
  WinogradOutput tile;
  tile.from = call.products + i * call.out_channels;
  tile.step = call.product_step;
  tile.channels = call.out_channels;
  tile.bias = call.bias;
  tile.rows = OutputsFrom(*call.rows, place.row);
  tile.columns = OutputsFrom(*call.columns, place.column);
  if (tile.rows == 0 || tile.columns == 0) return;
  tile.row_step = call.rows->dilation * call.columns->output * call.out_channels;
  tile.column_step = call.columns->dilation * call.out_channels;
  const std::int64_t at =
      ((plane * call.rows->output + place.row) * call.columns->output + place.column) * call.out_channels;
  tile.addend = call.addend == nullptr ? nullptr : call.addend + at;
  tile.out = call.out + at;
  tile.activation = call.activation;
  BestWinogradTransforms().output(tile);
}

// The transformed tiles of one point as the segments of PanelTiles: one segment for each input plane under
// the window. Planes outside the image are left out.
class PointOfPlanes {
 public:
  PointOfPlanes(const WinogradCall& call, const WinogradGroup& group, std::int64_t point)
      : call_(call),
        group_(group),
        inputs_(call.inputs + point * call.input_step),
        products_(call.products + point * call.product_step),
        w_(call.w + point * PackedColumns(call.out_channels) * DepthOf(call)) {
    tile_.rows = pointers_.data();
    tile_.depth = call.in_channels;
    tile_.step = call.out_channels;
    tile_.bias = nullptr;
  }

  // All tiles by one panel, which stays in the first cache. Returns false if told to stop.
  bool Multiply(std::int64_t panel, Pace& pace) {
    const WindowAxis& depth = *call_.depth;
    const std::int64_t last = group_.first_plane + group_.planes;
    std::int64_t number = 0;
    for (std::int64_t plane = group_.first_plane, next; plane < last; plane = next) {
      // Planes of the same part of the window go together.
      const Part part = PartOf(depth, plane);
      next = plane + 1;
      while (next < last && PartOf(depth, next) == part) ++next;
      if (!MultiplyPart(part, plane, next, panel, &number, pace)) return false;
    }
    return true;
  }

 private:
  // The taps along the planes that lie inside the image.
  struct Part {
    std::int64_t first, last;
    bool operator==(const Part&) const = default;
  };
  static Part PartOf(const WindowAxis& depth, std::int64_t plane) {
    Part part;
    depth.Inside(plane, &part.first, &part.last);
    part.last = std::max(part.first, part.last);
    return part;
  }
  static std::int64_t DepthOf(const WinogradCall& call) { return call.depth->kernel * call.in_channels; }

  bool MultiplyPart(const Part& part, std::int64_t plane, std::int64_t next, std::int64_t panel,
                    std::int64_t* number, Pace& pace) {
    const PanelKernel& kernel = BestPanelKernel();
    const std::int64_t column = panel * kPanelWidth, width = WidthOfPanel(panel, call_.out_channels);
    tile_.segments = part.last - part.first;
    tile_.panel = w_ + column * DepthOf(call_) + part.first * call_.in_channels * width;
    tile_.columns = UsedOfPanel(panel, call_.out_channels);
    const std::int64_t begin = (plane - group_.first_plane) * group_.count;
    const std::int64_t end = (next - group_.first_plane) * group_.count;
    for (std::int64_t i = begin; i < end; i += tile_.count) {
      tile_.count = RowsOfEqualTile(begin, end, kernel.rows, &i);
      if (!pace.Spend(ProductsOf(tile_.count, tile_.segments * call_.in_channels))) return false;
      Gather(part, i);
      tile_.ahead = AheadOf((*number)++, kPanelWidth * DepthOf(call_));
      tile_.out = products_ + i * call_.out_channels + column;
      kernel.run(tile_);
    }
    return true;
  }

  void Gather(const Part& part, std::int64_t i) {
    const std::int64_t step = call_.depth->dilation * group_.count * call_.in_channels;
    for (int r = 0; r < tile_.count; ++r) {
      const std::int64_t plane = group_.first_plane + (i + r) / group_.count;
      const std::int64_t slice =
          call_.depth->start(plane) + part.first * call_.depth->dilation - group_.first_slice;
      const float* from = inputs_ + (slice * group_.count + (i + r) % group_.count) * call_.in_channels;
      for (std::int64_t s = 0; s < tile_.segments; ++s) pointers_[s * tile_.count + r] = from + s * step;
    }
  }

  const WinogradCall& call_;
  const WinogradGroup& group_;
  const float* inputs_;
  float* products_;
  const float* w_;
  PanelTile tile_ = {};
  // A window has three rows for each plane.
  std::array<const float*, kMostTaps / 3 * kMostPanelRows> pointers_;
};

}  // namespace

std::int64_t WinogradCall::chunks() const { return Quotient(depth->output, planes); }

std::int64_t WinogradTilesAlong(std::int64_t outputs, std::int64_t dilation) {
  return Times(std::min(outputs, dilation), TilesOf(Quotient(outputs, dilation)));
}

std::int64_t WinogradSlices(const WindowAxis& depth, std::int64_t planes) {
  return Plus(Times(planes - 1, depth.stride), depth.reach());
}

WinogradGroup WinogradGroupOf(const WinogradCall& call, std::int64_t tiles, std::int64_t number) {
  const WindowAxis& depth = *call.depth;
  WinogradGroup group;
  // Groups of like size: none of several is so small that its products are added in another order.
  const std::int64_t groups = Quotient(call.tiles, tiles), group_number = number / call.chunks();
  group.first = Share(call.tiles, groups, group_number);
  group.count = Share(call.tiles, groups, group_number + 1) - group.first;
  group.first_plane = number % call.chunks() * call.planes;
  group.planes = std::min(call.planes, depth.output - group.first_plane);
  const std::int64_t begin = depth.start(group.first_plane);
  const std::int64_t end = depth.start(group.first_plane + group.planes - 1) + depth.reach();
  group.first_slice = std::clamp<std::int64_t>(begin, 0, depth.input);
  group.slices = std::clamp<std::int64_t>(end, group.first_slice, depth.input) - group.first_slice;
  return group;
}

void TransformTiles(const WinogradCall& call, const WinogradGroup& group, std::int64_t begin,
                    std::int64_t end, Pace& pace) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (!pace.Spend(8 * kWinogradPoints + 4 * call.in_channels)) return;
    if (IsRead(*call.depth, group.first_slice + i / group.count)) TransformTile(call, group, i);
  }
}

void MultiplyPoints(const WinogradCall& call, const WinogradGroup& group, std::int64_t begin,
                    std::int64_t end, Pace& pace) {
  const std::int64_t panels = PanelCount(call.out_channels);
  const std::int64_t of_point = PackedColumns(call.out_channels) * call.in_channels;
  for (std::int64_t point = begin; point < end; ++point) {
    if (IsPoint(*call.depth)) {
      const RowsByPanels product = {call.inputs + point * call.input_step,
                                    group.count,
                                    call.in_channels,
                                    call.w + point * of_point,
                                    call.out_channels,
                                    nullptr,
                                    nullptr,
                                    Activation(),
                                    call.products + point * call.product_step};
      if (!MultiplyPanels(product, 0, panels, pace)) return;
      continue;
    }
    PointOfPlanes planes(call, group, point);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      if (!planes.Multiply(panel, pace)) return;
    }
  }
}

void FinishTiles(const WinogradCall& call, const WinogradGroup& group, std::int64_t begin, std::int64_t end,
                 Pace& pace) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (!pace.Spend(8 * kWinogradPoints + 4 * call.out_channels)) return;
    FinishTile(call, group, i);
  }
}

}  // namespace rewire::kernel::cpu
