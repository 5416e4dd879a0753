// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/integer_depthwise.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/integer_depthwise.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/convolution/quads-inl.h"
#include "rewire/kernels/cpu/product/integer_finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// Operands are read where they lie.
void Arrange(const IntegerDepthwise&, std::int64_t) {}

// The sum of channel c of the position whose window begins at `column`.
std::int32_t SumAt(const IntegerDepthwise& call, const std::uint8_t* const* rows, std::int64_t c,
                   std::int64_t column) {
  const std::int64_t panel = c / kPanelWidth, width = WidthOfPanel(panel, call.channels);
  const std::int8_t* w = call.w + (panel * kPanelWidth * call.quads() + c % kPanelWidth) * kQuad;
  const std::int32_t zero = call.w_zero == nullptr ? 0 : call.w_zero[c];
  auto sum = static_cast<std::uint32_t>(call.start[c]);
  for (std::int64_t i = 0; i < call.quads() * kQuad; ++i) {
    const std::int64_t quad = i / kQuad, member = i % kQuad;
    const std::uint8_t* row = rows[quad % call.rows * kQuad + member];
    const std::int64_t at = column + quad / call.rows * call.dilation + member * call.member;
    std::int32_t x = call.border;
    if (row != nullptr && at >= 0 && at < call.input)
      x = row[at * call.channels + c] ^ (call.is_signed ? 0x80 : 0);
    const bool tap = (call.taps[static_cast<std::size_t>(quad)] >> (8 * member) & 1) != 0;
    sum += static_cast<std::uint32_t>(x * (w[quad * width * kQuad + member] - (tap ? zero : 0)));
  }
  return static_cast<std::int32_t>(sum);
}

void Finish(const IntegerFinish& finish, std::int64_t c, std::int32_t sum, std::int64_t at, void* out) {
  const hn::CappedTag<std::int32_t, 1> d;
  const hn::CappedTag<float, 1> of_floats;
  const auto scale = hn::Set(of_floats, finish.scale == nullptr ? 0 : finish.scale[c]);
  const auto bias = hn::Set(of_floats, finish.bias == nullptr ? 0 : finish.bias[c]);
  ForFinishedType(finish.kind, [&](auto of_type) {
    StoreFinished(d, hn::Set(d, sum), finish, scale, bias, static_cast<decltype(of_type)*>(out) + at, 1);
  });
}

void RunGroup(const IntegerDepthwise& call, std::int64_t group, const std::uint8_t* const* rows,
              std::int64_t column, std::int64_t count, void* out) {
  const std::int64_t first = group * kDepthwiseGroup;
  const std::int64_t end = std::min(call.channels, first + kDepthwiseGroup);
  for (std::int64_t o = 0; o < count; ++o) {
    for (std::int64_t c = first; c < end; ++c)
      Finish(call.finish, c, SumAt(call, rows, c, column + o * call.stride), o * call.channels + c, out);
  }
}

IntegerDepthwiseKernel IntegerDepthwiseOfTarget(bool) { return {&Arrange, &RunGroup}; }

#else

using DB = hn::CappedTag<std::uint8_t, kDepthwiseGroup>;
using D = Sums32<DB>;
using DF = hn::Rebind<float, D>;

constexpr std::int64_t kScratch = kMostQuads * kDepthwiseGroup;  // quads

// The channels of a group, and where its operands are arranged: [quads + 4][kArrangedChannels] of 32 bits.
struct Group {
  std::int64_t first, channels;
  std::uint8_t* arranged;

  Group(const IntegerDepthwise& call, std::int64_t group)
      : first(group * kDepthwiseGroup),
        channels(std::min(kDepthwiseGroup, call.channels - first)),
        arranged(call.arranged + group * ArrangedBytes(call.quads())) {}
  std::uint8_t* at(std::int64_t operand) const { return arranged + operand * kArrangedChannels * kQuad; }
};

// Puts the first channels behind the last one.
void GoOn(const Group& group, std::uint8_t* operand) {
  for (std::int64_t i = 0; i < (kArrangedChannels - kDepthwiseGroup) * kQuad; i += kQuad)
    std::memcpy(operand + group.channels * kQuad + i, operand + i, kQuad);
}

template <typename T>
void ArrangeVector(const Group& group, const T* from, std::int64_t operand) {
  if (from == nullptr) return;
  std::memcpy(group.at(operand), from + group.first, static_cast<std::size_t>(group.channels * kQuad));
  GoOn(group, group.at(operand));
}

void Arrange(const IntegerDepthwise& call, std::int64_t number) {
  const Group group(call, number);
  for (std::int64_t q = 0; q < call.quads(); ++q) {
    for (std::int64_t c = 0; c < group.channels; c += kPanelWidth) {
      const std::int64_t panel = (group.first + c) / kPanelWidth;
      const std::int64_t count = std::min(kPanelWidth, group.channels - c);
      const std::int64_t from = panel * kPanelWidth * call.quads() + q * WidthOfPanel(panel, call.channels);
      std::memcpy(group.at(q) + c * kQuad, call.w + from * kQuad, static_cast<std::size_t>(count * kQuad));
    }
    GoOn(group, group.at(q));
  }
  ArrangeVector(group, call.start, call.quads());
  ArrangeVector(group, call.w_zero, call.quads() + 1);
  ArrangeVector(group, call.finish.scale, call.quads() + 2);
  ArrangeVector(group, call.finish.bias, call.quads() + 3);
}

// Writes quads of `count` bytes from those places on, which may be null for the border. Some more are written
// behind them.
HWY_INLINE void FillRun(const IntegerDepthwise& call, const std::uint8_t* const (&from)[kQuad],
                        std::int64_t count, std::uint8_t* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DB()));
  const auto flip = hn::Set(DB(), static_cast<std::uint8_t>(call.is_signed ? 0x80 : 0));
  for (std::int64_t i = 0; i < count; i += lanes) {
    hn::Vec<DB> members[kQuad];
    for (int m = 0; m < kQuad; ++m) {
      members[m] = from[m] == nullptr ? hn::Set(DB(), call.border)
                                      : hn::Xor(LoadBefore(DB(), call.end, from[m] + i), flip);
    }
    StoreQuads(DB(), members, to + i * kQuad);
  }
}

// Most often the divisor is 1, and dividing takes long.
HWY_INLINE std::int64_t Quotient(std::int64_t a, std::int64_t b) { return b == 1 ? a : a / b; }

// The quads of an image's columns for some positions side by side. Columns whose numbers leave the same rest
// by the stride follow each other, as successive positions read them.
struct Tile {
  std::int64_t spacing, stride, dilation;  // of columns; the latter two in columns that are `spacing` apart
  std::int64_t positions;                  // the most of a tile
  std::int64_t columns;                    // with the same rest

  Tile(const IntegerDepthwise& call, std::int64_t channels)
      : spacing(call.spacing),
        stride(Quotient(call.stride, spacing)),
        dilation(Quotient(call.dilation, spacing)) {
    const std::int64_t room = kScratch / (channels * call.rows);
    const std::int64_t most = Quotient(room, stride);
    std::int64_t more = dilation > kScratch ? kScratch : Quotient((call.columns - 1) * dilation, stride);
    if (more >= most) {
      // The columns of one window are all that there is room for.
      spacing = call.dilation;
      stride = dilation = 1;
      more = call.columns - 1;
      positions = 1;
    } else {
      positions = most - more;
    }
    columns = positions + more;
  }
  // The place of column t of the first position's window.
  std::int64_t PlaceOf(std::int64_t t) const {
    return stride == 1 ? t * dilation : t * dilation % stride * columns + t * dilation / stride;
  }
};

// Fills a tile for `positions` positions, the first of which begins at `column`.
HWY_INLINE void FillTile(const IntegerDepthwise& call, const Group& group, const Tile& tile,
                         const std::uint8_t* const* rows, std::int64_t column, std::int64_t positions,
                         std::uint8_t* scratch) {
  const std::int64_t used = positions + tile.columns - tile.positions;
  const bool whole =
      group.channels == call.channels && tile.spacing == 1 && tile.stride == 1 && call.member == 0;
  for (std::int64_t q = 0; q < call.rows; ++q) {
    for (std::int64_t rest = 0; rest < tile.stride; ++rest) {
      std::uint8_t* to = scratch + (q * tile.stride + rest) * tile.columns * group.channels * kQuad;
      for (std::int64_t i = 0, count = 1; i < used; i += count, to += count * group.channels * kQuad) {
        const std::int64_t first = column + (i * tile.stride + rest) * tile.spacing;
        // Columns that lie side by side on both sides.
        count = whole && first >= 0 && first < call.input ? std::min(used - i, call.input - first) : 1;
        const std::uint8_t* from[kQuad];
        for (int m = 0; m < kQuad; ++m) {
          const std::uint8_t* row = rows[q * kQuad + m];
          const std::int64_t at = first + m * call.member;
          const bool inside = row != nullptr && at >= 0 && at < call.input;
          from[m] = inside ? row + at * call.channels + group.first : nullptr;
        }
        FillRun(call, from, count * group.channels, to);
      }
    }
  }
}

// Vectors of sums: `count` of each from sum `first` of a tile on, for the channels from `c` on.
struct Vectors {
  std::int64_t first,
      step;  // sums from one vector to the next: whole positions, so the channels are the same
  std::int64_t c, count;
  std::int64_t out, out_step;  // where the first one goes, and how far the next
};

// The sums that the vectors of a tile have in common.
struct TileSums {
  const IntegerDepthwise& call;
  const Group& group;
  const std::uint8_t* const* places;
  std::int64_t line;  // bytes from one row of quads to the next

  HWY_INLINE hn::Vec<D> Operand(std::int64_t operand, std::int64_t c) const {
    return hn::LoadU(D(), reinterpret_cast<const std::int32_t*>(group.at(operand)) + c);
  }

  // weights_of(quad) gives a vector of weights.
  template <class Way, int kCount, class WeightsOf>
  HWY_INLINE void AddProducts(const Vectors& at, const WeightsOf& weights_of,
                              Sums<Way, DB, kCount>& sums) const {
    sums.Clear();
    std::int64_t quad = 0;
    for (std::int64_t t = 0; t < call.columns; ++t) {
      const std::uint8_t* x = places[t] + at.first * kQuad;
      for (std::int64_t q = 0; q < call.rows; ++q, ++quad, x += line)
        sums.Add(x, at.step * kQuad, Way::template Sum<DB>::Split(weights_of(quad)));
    }
  }

  template <class Way, int kCount>
  HWY_NOINLINE void Run(const Vectors& at, void* out) const {
    Sums<Way, DB, kCount> sums, counts;
    AddProducts(
        at, [&](std::int64_t quad) HWY_ATTR { return hn::BitCast(DB(), Operand(quad, at.c)); }, sums);
    if (call.w_zero != nullptr) {
      AddProducts(
          at,
          [&](std::int64_t quad) HWY_ATTR {
            const hn::Repartition<std::uint32_t, DB> quads;
            return hn::BitCast(DB(), hn::Set(quads, call.taps[static_cast<std::size_t>(quad)]));
          },
          counts);
    }
    ForFinishedType(call.finish.kind, [&](auto of_type) HWY_ATTR {
      Store(sums, counts, at, static_cast<decltype(of_type)*>(out));
    });
  }

  template <typename T, class Way, int kCount>
  HWY_INLINE void Store(const Sums<Way, DB, kCount>& sums, const Sums<Way, DB, kCount>& counts,
                        const Vectors& at, T* out) const {
    const IntegerFinish& finish = call.finish;
    const auto start = Operand(call.quads(), at.c);
    const auto none = hn::Zero(DF());
    const auto scale = finish.scale != nullptr ? hn::BitCast(DF(), Operand(call.quads() + 2, at.c)) : none;
    const auto bias = finish.bias != nullptr ? hn::BitCast(DF(), Operand(call.quads() + 3, at.c)) : none;
    const auto store = [&](hn::Vec<D> sum, std::int64_t to) HWY_ATTR {
      StoreFinished(D(), hn::Add(start, sum), finish, scale, bias, out + to, at.count);
    };
    if (call.w_zero == nullptr) return sums.ForEach(at.out, at.out_step, store);
    sums.ForEachLess(Operand(call.quads() + 1, at.c), counts, at.out, at.out_step, store);
  }

  // `count` successive vectors.
  template <class Way>
  HWY_INLINE void RunAll(Vectors at, std::int64_t count, void* out) const {
    constexpr int kTogether = Way::kVectors;
    const auto next = [&](std::int64_t vectors) {
      at.first += vectors * at.step;
      at.out += vectors * at.out_step;
    };
    for (; count >= kTogether; count -= kTogether, next(kTogether)) Run<Way, kTogether>(at, out);
    for (; count > 0; --count, next(1)) Run<Way, 1>(at, out);
  }

  // All positions of the tile, where all channels are one group: vectors cover positions side by side.
  template <class Way>
  HWY_INLINE void RunWhole(std::int64_t positions, void* out) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    const std::int64_t period = std::lcm(group.channels, lanes), total = positions * group.channels;
    std::int64_t first = 0;
    for (; first < period && first + lanes <= total; first += lanes) {
      RunAll<Way>({first, period, first % group.channels, lanes, first, period},
                  (total - first - lanes) / period + 1, out);
    }
    if (total % lanes == 0) return;
    // The last vector overlaps the one before.
    first = std::max<std::int64_t>(0, total - lanes);
    Run<Way, 1>({first, 0, first % group.channels, std::min(lanes, total), first, 0}, out);
  }

  // One of several groups: vectors cover channels of one position.
  template <class Way>
  HWY_INLINE void RunPart(std::int64_t positions, void* out) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    for (std::int64_t i = 0; i < group.channels; i += lanes) {
      const std::int64_t c = std::max<std::int64_t>(0, std::min(i, group.channels - lanes));
      RunAll<Way>({c, group.channels, c, std::min(lanes, group.channels), group.first + c, call.channels},
                  positions, out);
    }
  }
};

template <class Way>
void RunGroup(const IntegerDepthwise& call, std::int64_t number, const std::uint8_t* const* rows,
              std::int64_t column, std::int64_t count, void* out) {
  HWY_ALIGN std::uint8_t scratch[(kScratch + kDepthwiseGroup) * kQuad];
  const Group group(call, number);
  const Tile tile(call, group.channels);
  const std::uint8_t* places[kMostQuads];
  for (std::int64_t t = 0; t < call.columns; ++t)
    places[t] = scratch + tile.PlaceOf(t) * group.channels * kQuad;
  const TileSums sums{call, group, places, tile.stride * tile.columns * group.channels * kQuad};
  const IntegerFinish::Kind kind = call.finish.kind;
  const std::int64_t bytes = kind == IntegerFinish::kSums || kind == IntegerFinish::kFloats ? 4 : 1;
  for (std::int64_t o = 0; o < count; o += tile.positions) {
    const std::int64_t positions = std::min(tile.positions, count - o);
    FillTile(call, group, tile, rows, column + o * call.stride, positions, scratch);
    void* to = static_cast<std::uint8_t*>(out) + o * call.channels * bytes;
    if (group.channels == call.channels)
      sums.template RunWhole<Way>(positions, to);
    else
      sums.template RunPart<Way>(positions, to);
  }
}

IntegerDepthwiseKernel IntegerDepthwiseOfTarget([[maybe_unused]] bool any_instruction) {
#if HWY_TARGET == HWY_AVX3
  if (any_instruction && HasVnni()) return {&Arrange, &RunGroup<VnniProducts>};
#endif
  return {&Arrange, &RunGroup<PairProducts>};
}

#endif

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(IntegerDepthwiseOfTarget);

IntegerDepthwiseKernel ChooseIntegerDepthwiseKernel(bool any_instruction) {
  return HWY_DYNAMIC_DISPATCH(IntegerDepthwiseOfTarget)(any_instruction);
}

const IntegerDepthwiseKernel& BestIntegerDepthwiseKernel() {
  static const IntegerDepthwiseKernel kBest = ChooseIntegerDepthwiseKernel(true);
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
