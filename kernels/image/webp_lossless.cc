// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/webp_lossless.h"

#include <algorithm>
#include <array>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/prefix_code.h"
#include "rewire/kernels/image/webp_transforms.h"

namespace rewire::kernel::image {
namespace {

constexpr std::uint32_t kLiterals = 256, kLengths = 24, kDistances = 40, kMostCacheBits = 11;

// The codes of a group: green with lengths and cached colors, red, blue, alpha, distances.
struct Group {
  std::array<PrefixCode, 5> code;
};

// Colors that were seen, by a hash.
class ColorCache {
 public:
  explicit ColorCache(std::uint32_t* colors, int bits) : colors_(colors), bits_(bits) {}
  void Add(std::uint32_t color) {
    if (bits_ > 0) colors_[(0x1E35A7BDU * color) >> (32 - bits_)] = color;
  }
  std::uint32_t at(std::uint32_t index) const { return colors_[index]; }

 private:
  std::uint32_t* colors_;
  int bits_;
};

// The place that a code of two dimensions stands for: the pixels before this one, the nearest first.
struct Neighbor {
  int left = 0, up = 0;
};
constexpr std::uint32_t kNeighbors = 120;
std::array<Neighbor, kNeighbors> ListNeighbors() {
  std::array<Neighbor, kNeighbors> list{};
  std::size_t count = 0;
  for (int up = 0; up < 8; ++up) {
    for (int left = up == 0 ? 1 : -7; left <= 8; ++left) list[count++] = {left, up};
  }
  std::sort(list.begin(), list.end(), [](const Neighbor& a, const Neighbor& b) {
    const auto order = [](const Neighbor& n) {
      return std::array<int, 3>{n.left * n.left + n.up * n.up, std::abs(n.left), n.left > 0 ? 0 : 1};
    };
    return order(a) < order(b);
  });
  return list;
}

class LosslessDecoder {
 public:
  LosslessDecoder(File file, Canvas& canvas) : bits_(file), memory_(canvas), canvas_(canvas) {}

  Outcome Decode(std::int64_t left, std::int64_t top, std::int64_t width, std::int64_t height) {
    for (const int bits : {8, 14, 14}) (void)bits_.Take(bits);  // what ReadLosslessSize reads
    (void)bits_.Take(1);                                        // whether alpha counts
    if (bits_.Take(3) != 0) return Outcome::kDamaged;
    std::int64_t packed = width;
    while (bits_.Take(1) != 0) {
      if (const Outcome done = ReadTransform(height, &packed); done != Outcome::kDone) return done;
    }
    std::uint32_t* pixels = nullptr;
    if (const Outcome done = ReadImage(packed, height, true, &pixels); done != Outcome::kDone) return done;
    while (transforms_ > 0) {
      const Outcome done = Undo(transform_[--transforms_], height, canvas_, &pixels);
      if (done != Outcome::kDone) return done;
    }
    std::uint8_t* row = canvas_.Scratch(cpu::Times(3, width));
    if (row == nullptr) return Outcome::kFailed;
    for (std::int64_t y = 0; y < height; ++y) {
      const bool is_filled = canvas_.For(width, 3, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t x = begin; x < end; ++x) {
          const std::uint32_t pixel = pixels[y * width + x];
          for (int c = 0; c < 3; ++c) row[3 * x + c] = static_cast<std::uint8_t>(pixel >> (16 - 8 * c));
        }
      });
      if (!is_filled || !canvas_.PutPart(left, top + y, width, row, 3)) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }

 private:
  // `width` becomes that of the pixels which are stored.
  Outcome ReadTransform(std::int64_t height, std::int64_t* width) {
    const auto kind = static_cast<Transform::Kind>(bits_.Take(2));
    const auto end = transform_.begin() + transforms_;
    const bool is_known =
        std::any_of(transform_.begin(), end, [&](const Transform& t) { return t.kind == kind; });
    if (is_known) return Outcome::kDamaged;
    Transform& transform = transform_[static_cast<std::size_t>(transforms_++)];
    transform = {kind, 0, *width, nullptr};
    switch (kind) {
      case Transform::kPredictor:
      case Transform::kCrossColor:
        transform.bits = static_cast<int>(bits_.Take(3)) + 2;
        return ReadImage(BlocksOf(*width, transform.bits), BlocksOf(height, transform.bits), false,
                         &transform.data);
      case Transform::kSubtractGreen:
        return Outcome::kDone;
      case Transform::kPalette:
        return ReadPalette(width, &transform);
    }
    return Outcome::kDamaged;
  }

  // Up to 256 colors, each as what it adds to the one before. Indices share a pixel if there are few.
  Outcome ReadPalette(std::int64_t* width, Transform* transform) {
    const std::uint32_t count = bits_.Take(8) + 1;
    transform->bits = count > 16 ? 0 : count > 4 ? 1 : count > 2 ? 2 : 3;
    std::uint32_t* read = nullptr;
    if (const Outcome done = ReadImage(count, 1, false, &read); done != Outcome::kDone) return done;
    constexpr std::int64_t kMost = 256;
    transform->data = reinterpret_cast<std::uint32_t*>(canvas_.Scratch(4 * kMost));
    if (transform->data == nullptr) return Outcome::kFailed;
    std::fill_n(transform->data, kMost, 0U);
    for (std::uint32_t i = 0; i < count; ++i)
      transform->data[i] = AddColors(read[i], i == 0 ? 0 : transform->data[i - 1]);
    *width = BlocksOf(*width, transform->bits);
    return Outcome::kDone;
  }

  // The lengths of a code's symbols, which are a list of at most two, or written by a code of their own.
  Outcome ReadCode(std::uint32_t symbols, PrefixCode* code) {
    std::array<std::uint8_t, kLiterals + kLengths + (1U << kMostCacheBits)> lengths;
    std::fill_n(lengths.begin(), symbols, std::uint8_t{0});
    if (!canvas_.Spend(static_cast<std::int64_t>(symbols))) return Outcome::kFailed;
    if (bits_.Take(1) != 0) {
      const bool has_two = bits_.Take(1) != 0;
      const std::uint32_t first = bits_.Take(bits_.Take(1) != 0 ? 8 : 1);
      if (first < symbols) lengths[first] = 1;
      const std::uint32_t second = has_two ? bits_.Take(8) : first;
      if (first >= symbols || second >= symbols) return Outcome::kDamaged;
      lengths[second] = 1;
    } else if (const Outcome done = ReadLengths(symbols, lengths.data()); done != Outcome::kDone) {
      return done;
    }
    if (bits_.failed()) return Outcome::kDamaged;
    return code->Make(lengths.data(), symbols, memory_);
  }

  Outcome ReadLengths(std::uint32_t symbols, std::uint8_t* lengths) {
    constexpr std::array<std::uint8_t, 19> kOrder = {17, 18, 0, 1,  2,  3,  4,  5,  16, 6,
                                                     7,  8,  9, 10, 11, 12, 13, 14, 15};
    std::array<std::uint8_t, 19> own{};
    const std::uint32_t stated = bits_.Take(4) + 4;
    for (std::uint32_t i = 0; i < stated; ++i) own[kOrder[i]] = static_cast<std::uint8_t>(bits_.Take(3));
    // It is needed for a moment only.
    std::array<std::uint16_t, PrefixCode::kMostRoom> room;
    PrefixCode code;
    if (!code.MakeIn(own.data(), own.size(), room.data())) return Outcome::kDamaged;
    std::uint32_t left = symbols;
    if (bits_.Take(1) != 0) {
      const int bits = 2 + 2 * static_cast<int>(bits_.Take(3));
      left = 2 + bits_.Take(bits);
      if (left > symbols) return Outcome::kDamaged;
    }
    std::uint8_t last = 8;
    for (std::uint32_t symbol = 0; symbol < symbols && left > 0; --left) {
      const std::uint32_t length = code.Take(bits_);
      if (length < 16) {
        lengths[symbol++] = static_cast<std::uint8_t>(length);
        if (length != 0) last = static_cast<std::uint8_t>(length);
        continue;
      }
      // The last length, or zeros, several times.
      const std::uint32_t times = length == 16   ? 3 + bits_.Take(2)
                                  : length == 17 ? 3 + bits_.Take(3)
                                                 : 11 + bits_.Take(7);
      if (times > symbols - symbol) return Outcome::kDamaged;
      std::fill_n(lengths + symbol, times, length == 16 ? last : std::uint8_t{0});
      symbol += times;
    }
    return Outcome::kDone;
  }

  // A length or distance: its highest bits are the symbol, the others follow.
  std::uint32_t TakeCount(std::uint32_t symbol) {
    if (symbol < 4) return symbol + 1;
    const int bits = static_cast<int>(symbol - 2) >> 1;
    return ((2 + (symbol & 1U)) << bits) + bits_.Take(bits) + 1;
  }

  std::int64_t DistanceOf(std::uint32_t code, std::int64_t width) const {
    static const std::array<Neighbor, kNeighbors> kList = ListNeighbors();
    if (code > kNeighbors) return code - kNeighbors;
    const Neighbor& neighbor = kList[code - 1];
    return std::max<std::int64_t>(1, neighbor.up * width + neighbor.left);
  }

  // An image of its own; `is_picture`: the one that all others serve, whose blocks may have several groups of
  // codes.
  Outcome ReadImage(std::int64_t width, std::int64_t height, bool is_picture, std::uint32_t** pixels) {
    int cache_bits = 0;
    if (bits_.Take(1) != 0) {
      cache_bits = static_cast<int>(bits_.Take(4));
      if (cache_bits == 0 || cache_bits > static_cast<int>(kMostCacheBits)) return Outcome::kDamaged;
    }
    Blocks blocks;
    if (is_picture && bits_.Take(1) != 0) {
      blocks.bits = static_cast<int>(bits_.Take(3)) + 2;
      blocks.across = BlocksOf(width, blocks.bits);
      const std::int64_t down = BlocksOf(height, blocks.bits);
      if (const Outcome done = ReadImage(blocks.across, down, false, &blocks.group); done != Outcome::kDone)
        return done;
      for (std::int64_t i = 0; i < cpu::Times(blocks.across, down); ++i) {
        if (i % 4096 == 0 && !canvas_.Spend(4096)) return Outcome::kFailed;
        blocks.group[i] = blocks.group[i] >> 8 & 0xFFFF;
        blocks.groups = std::max(blocks.groups, std::int64_t{blocks.group[i]} + 1);
      }
    }
    auto* groups = reinterpret_cast<Group*>(canvas_.Scratch(cpu::Times(blocks.groups, sizeof(Group))));
    *pixels = reinterpret_cast<std::uint32_t*>(canvas_.Scratch(cpu::Times(4, width, height)));
    auto* cached = reinterpret_cast<std::uint32_t*>(canvas_.Scratch(std::int64_t{4} << cache_bits));
    if (groups == nullptr || *pixels == nullptr || cached == nullptr) return Outcome::kFailed;
    std::fill_n(cached, std::size_t{1} << cache_bits, 0U);
    const std::uint32_t cache_size = cache_bits == 0 ? 0 : 1U << cache_bits;
    const std::array<std::uint32_t, 5> symbols = {kLiterals + kLengths + cache_size, kLiterals, kLiterals,
                                                  kLiterals, kDistances};
    for (std::int64_t i = 0; i < blocks.groups; ++i) {
      groups[i] = {};
      for (std::size_t k = 0; k < symbols.size(); ++k) {
        if (const Outcome done = ReadCode(symbols[k], &groups[i].code[k]); done != Outcome::kDone)
          return done;
      }
    }
    return ReadPixels(width, height, blocks, groups, ColorCache(cached, cache_bits), *pixels);
  }

  // The group of codes that the pixels of each block have.
  struct Blocks {
    int bits = 0;
    std::int64_t across = 0;
    std::int64_t groups = 1;
    std::uint32_t* group = nullptr;  // null: they all have the only one
  };

  Outcome ReadPixels(std::int64_t width, std::int64_t height, const Blocks& blocks, const Group* groups,
                     ColorCache cache, std::uint32_t* pixels) {
    const std::int64_t all = cpu::Times(width, height);
    const Group* group = groups;
    std::int64_t x = 0, y = 0, at = 0, count = 0;
    const auto choose_group = [&] {
      if (blocks.group != nullptr && at + count < all)
        group = groups + blocks.group[(y >> blocks.bits) * blocks.across + (x >> blocks.bits)];
    };
    for (choose_group(); at < all; at += count) {
      const std::uint32_t symbol = group->code[0].Take(bits_);
      count = 1;
      if (symbol < kLiterals) {
        const std::uint32_t red = group->code[1].Take(bits_), blue = group->code[2].Take(bits_),
                            alpha = group->code[3].Take(bits_);
        pixels[at] = alpha << 24 | red << 16 | symbol << 8 | blue;
        cache.Add(pixels[at]);
      } else if (symbol < kLiterals + kLengths) {
        count = TakeCount(symbol - kLiterals);
        const std::int64_t distance = DistanceOf(TakeCount(group->code[4].Take(bits_)), width);
        if (distance > at || count > all - at) return Outcome::kDamaged;
        for (std::int64_t i = at; i < at + count; ++i) {
          pixels[i] = pixels[i - distance];
          cache.Add(pixels[i]);
        }
      } else {
        pixels[at] = cache.at(symbol - kLiterals - kLengths);
        cache.Add(pixels[at]);
      }
      if (!canvas_.Spend(8 + count)) return Outcome::kFailed;
      x += count;
      if (x >= width) {
        y += x / width;
        x %= width;
        if (bits_.failed()) return Outcome::kDamaged;
      }
      if (count > 1 || (x & ((std::int64_t{1} << blocks.bits) - 1)) == 0) choose_group();
    }
    return bits_.failed() ? Outcome::kDamaged : Outcome::kDone;
  }

  BitReader bits_;
  CodeMemory memory_;
  Canvas& canvas_;
  std::array<Transform, 4> transform_{};
  int transforms_ = 0;
};

}  // namespace

bool ReadLosslessSize(File file, std::int64_t* width, std::int64_t* height) {
  constexpr std::uint32_t kSignature = 0x2F;
  BitReader bits(file);
  if (bits.Take(8) != kSignature) return false;
  *width = std::int64_t{bits.Take(14)} + 1;
  *height = std::int64_t{bits.Take(14)} + 1;
  return !bits.failed();
}

Outcome DecodeLossless(File file, std::int64_t left, std::int64_t top, Canvas& canvas) {
  std::int64_t width = 0, height = 0;
  if (!ReadLosslessSize(file, &width, &height)) return Outcome::kDamaged;
  return LosslessDecoder(file, canvas).Decode(left, top, width, height);
}

}  // namespace rewire::kernel::image
