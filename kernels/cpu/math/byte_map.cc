// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/math/byte_map.h"

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
