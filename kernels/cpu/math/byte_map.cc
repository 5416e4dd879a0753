// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/math/byte_map.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/math/byte_map.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void MapEach(const std::uint8_t* HWY_RESTRICT from, std::int64_t count,
             const std::uint8_t* HWY_RESTRICT table, std::uint8_t* HWY_RESTRICT to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

#if HWY_TARGET == HWY_SCALAR
MapBytes OfMap() { return &MapEach; }
#else

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

// Looks each byte up in 16 rows of 16 bytes. These CPUs take the last four bits of a place alone, and give
// zero to places of 128 and more. So a byte meets every row of its half of the table up to its own, if 16 is
// taken off for each. What the rows before have given is taken back: each row has the difference from the one
// before it.
void MapRows(const std::uint8_t* HWY_RESTRICT from, std::int64_t count,
             const std::uint8_t* HWY_RESTRICT table, std::uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int kRow = 16, kHalf = 128;
  HWY_ALIGN std::uint8_t differences[2 * kHalf];
  for (int half = 0; half < 2 * kHalf; half += kHalf) {
    std::copy_n(table + half, kRow, differences + half);
    for (int i = half + kRow; i < half + kHalf; ++i)
      differences[i] = static_cast<std::uint8_t>(table[i] ^ table[i - kRow]);
  }
  // With a sign, so that what is 128 or more stays below zero.
  const hn::RebindToSigned<decltype(d)> with_sign;
  const auto step = hn::Set(with_sign, std::int8_t{kRow});
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bytes = hn::LoadU(d, from + i);
    auto low = hn::BitCast(with_sign, bytes);
    auto high = hn::BitCast(with_sign, hn::Xor(bytes, hn::Set(d, std::uint8_t{kHalf})));
    auto found_low = hn::Zero(d), found_high = hn::Zero(d);
    for (int row = 0; row < kHalf; row += kRow) {
      const auto of_low = hn::LoadDup128(d, differences + row);
      const auto of_high = hn::LoadDup128(d, differences + kHalf + row);
      found_low = hn::Xor(found_low, hn::TableLookupBytesOr0(of_low, hn::BitCast(d, low)));
      found_high = hn::Xor(found_high, hn::TableLookupBytesOr0(of_high, hn::BitCast(d, high)));
      low = hn::SaturatedSub(low, step);
      high = hn::SaturatedSub(high, step);
    }
    hn::StoreU(hn::Or(found_low, found_high), d, to + i);
  }
  MapEach(from + i, count - i, table, to + i);
}

#else

// Looks each byte up in 16 rows of 16 bytes. A row gives zero to the bytes of the other rows.
void MapRows(const std::uint8_t* HWY_RESTRICT from, std::int64_t count,
             const std::uint8_t* HWY_RESTRICT table, std::uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bytes = hn::LoadU(d, from + i);
    auto found = hn::Zero(d);
    for (int row = 0; row < 256; row += 16) {
      // Bytes of this row become 0x70 to 0x7F, all others 0x80 and more.
      const auto place = hn::Sub(bytes, hn::Set(d, static_cast<std::uint8_t>(row)));
      const auto raised = hn::SaturatedAdd(place, hn::Set(d, std::uint8_t{0x70}));
      const auto in_row = hn::And(raised, hn::Set(d, std::uint8_t{0x8F}));
      found = hn::Or(found, hn::TableLookupBytesOr0(hn::LoadDup128(d, table + row), in_row));
    }
    hn::StoreU(found, d, to + i);
  }
  MapEach(from + i, count - i, table, to + i);
}

#endif

#if HWY_TARGET == HWY_AVX3

// With AVX512-VBMI, which looks 64 bytes up in 128 at once.
void MapHalves(const std::uint8_t* HWY_RESTRICT from, std::int64_t count,
               const std::uint8_t* HWY_RESTRICT table, std::uint8_t* HWY_RESTRICT to) {
  const hn::FixedTag<std::uint8_t, 64> d;
  const hn::FixedTag<std::int8_t, 64> with_sign;
  const auto first = hn::LoadU(d, table), second = hn::LoadU(d, table + 64);
  const auto third = hn::LoadU(d, table + 128), fourth = hn::LoadU(d, table + 192);
  std::int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const auto bytes = hn::LoadU(d, from + i);
    auto low = bytes, high = bytes;
    asm("vpermi2b %2, %1, %0" : "+v"(low.raw) : "v"(first.raw), "v"(second.raw));
    asm("vpermi2b %2, %1, %0" : "+v"(high.raw) : "v"(third.raw), "v"(fourth.raw));
    const auto is_high = hn::Lt(hn::BitCast(with_sign, bytes), hn::Zero(with_sign));
    hn::StoreU(hn::IfThenElse(hn::RebindMask(d, is_high), high, low), d, to + i);
  }
  MapEach(from + i, count - i, table, to + i);
}

#endif

MapBytes OfMap() {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512vbmi") != 0) return &MapHalves;
#endif
  return &MapRows;
}

#endif

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(OfMap);

MapBytes ChooseMapBytes() { return HWY_DYNAMIC_DISPATCH(OfMap)(); }

}  // namespace rewire::kernel::cpu
#endif
