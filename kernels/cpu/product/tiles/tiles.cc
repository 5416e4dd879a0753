// SPDX-License-Identifier: Apache-2.0
//
// Tile registers are addressed by name in assembly, since the compiler does not give them to variables:
// 0 to 3 hold the sums of two tiles of rows by two of columns, 4 and 5 rows, 6 and 7 weights.
#include "rewire/kernels/cpu/product/tiles/tiles.h"

#include <algorithm>

#include "rewire/vm/kernel/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#ifndef __clang__
// g++ 12 warns of what its own header leaves undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define REWIRE_HAS_TILES 1
#else
#define REWIRE_HAS_TILES 0
#endif

namespace rewire::kernel::cpu {

#if REWIRE_HAS_TILES

namespace {

bool AskForTiles() {
  if (!CpuHasAmx() || __builtin_cpu_supports("avx512bw") == 0) return false;
  // The kernel saves the registers of a process only if that has asked for them: arch_prctl(2) with
  // ARCH_REQ_XCOMP_PERM, feature 18 (tile data). A kernel that does not know of them says no.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Palette 1: eight registers of 16 rows of 64 bytes.
struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

constexpr std::int64_t kTileRows = 16;

struct Pairs {
  static void Multiply(bool two_rows, bool two_columns) {
    asm volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0" ::: "memory");
    if (two_columns) asm volatile("tdpbf16ps %%tmm7, %%tmm4, %%tmm1" ::: "memory");
    if (two_rows) asm volatile("tdpbf16ps %%tmm6, %%tmm5, %%tmm2" ::: "memory");
    if (two_rows && two_columns) asm volatile("tdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::: "memory");
  }
};
struct Bytes {
  static void Multiply(bool two_rows, bool two_columns) {
    asm volatile("tdpbusd %%tmm6, %%tmm4, %%tmm0" ::: "memory");
    if (two_columns) asm volatile("tdpbusd %%tmm7, %%tmm4, %%tmm1" ::: "memory");
    if (two_rows) asm volatile("tdpbusd %%tmm6, %%tmm5, %%tmm2" ::: "memory");
    if (two_rows && two_columns) asm volatile("tdpbusd %%tmm7, %%tmm5, %%tmm3" ::: "memory");
  }
};
struct SignedBytes {
  static void Multiply(bool two_rows, bool two_columns) {
    asm volatile("tdpbssd %%tmm6, %%tmm4, %%tmm0" ::: "memory");
    if (two_columns) asm volatile("tdpbssd %%tmm7, %%tmm4, %%tmm1" ::: "memory");
    if (two_rows) asm volatile("tdpbssd %%tmm6, %%tmm5, %%tmm2" ::: "memory");
    if (two_rows && two_columns) asm volatile("tdpbssd %%tmm7, %%tmm5, %%tmm3" ::: "memory");
  }
};

template <class Unit, bool kTwoRows, bool kTwoColumns>
inline void AddStep(const std::byte* rows, std::int64_t row_bytes, const std::byte* weights,
                    std::int64_t of_weights) {
  asm volatile("tileloadd (%0, %1, 1), %%tmm4" ::"r"(rows), "r"(row_bytes) : "memory");
  asm volatile("tileloadd (%0, %1, 1), %%tmm6" ::"r"(weights), "r"(of_weights) : "memory");
  if (kTwoColumns)
    asm volatile("tileloadd (%0, %1, 1), %%tmm7" ::"r"(weights + kLineBytes), "r"(of_weights) : "memory");
  if (kTwoRows)
    asm volatile("tileloadd (%0, %1, 1), %%tmm5" ::"r"(rows + kTileRows * row_bytes), "r"(row_bytes)
                 : "memory");
  Unit::Multiply(kTwoRows, kTwoColumns);
}

template <class Unit, bool kTwoRows, bool kTwoColumns>
void Run(const TileRows& rows, const TileWeights& weights, void* sums) {
  constexpr std::int64_t kOfWeights = kTwoColumns ? 2 * kLineBytes : kLineBytes,
                         kStep = kLineUnits * kOfWeights;
  asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::: "memory");
  const std::byte *const panel = weights.panel(), *const end = panel + rows.units() * kOfWeights;
  for (std::int64_t s = 0; s < rows.segments; ++s) {
    const std::byte* from = rows.from + rows.segment_at[s];
    const std::byte* next = panel + s * rows.depth * kOfWeights;
    // Behind a segment's weights lie those of the next. They are multiplied by zeros.
    for (std::int64_t k = 0; k < rows.depth; k += kLineUnits, from += kLineBytes, next += kStep) {
      const bool is_within = end - next >= kStep;
      AddStep<Unit, kTwoRows, kTwoColumns>(
          from, rows.row_bytes, is_within ? next : weights.Last(end - next, kOfWeights), kOfWeights);
    }
  }
  constexpr std::int64_t kOfSums = kPanelWidth * kUnitBytes;
  auto* to = static_cast<std::byte*>(sums);
  asm volatile("tilestored %%tmm0, (%0, %1, 1)" ::"r"(to), "r"(kOfSums) : "memory");
  if (kTwoColumns)
    asm volatile("tilestored %%tmm1, (%0, %1, 1)" ::"r"(to + kLineBytes), "r"(kOfSums) : "memory");
  if (!kTwoRows) return;
  to += kTileRows * kOfSums;
  asm volatile("tilestored %%tmm2, (%0, %1, 1)" ::"r"(to), "r"(kOfSums) : "memory");
  if (kTwoColumns)
    asm volatile("tilestored %%tmm3, (%0, %1, 1)" ::"r"(to + kLineBytes), "r"(kOfSums) : "memory");
}

template <class Unit>
void RunAs(const TileRows& rows, std::int64_t count, const TileWeights& weights, void* sums) {
  const bool two_columns = weights.width() > kHalfPanel;
  if (count > kTileRows) {
    return two_columns ? Run<Unit, true, true>(rows, weights, sums)
                       : Run<Unit, true, false>(rows, weights, sums);
  }
  return two_columns ? Run<Unit, false, true>(rows, weights, sums)
                     : Run<Unit, false, false>(rows, weights, sums);
}

}  // namespace

bool HasTiles() {
  static const bool kHas = AskForTiles();
  return kHas;
}

[[gnu::target("avx512f,avx512bw")]] void CopyToLines(const RowsToLines& copy) {
  const __m512i bits = _mm512_set1_epi8(static_cast<char>(copy.flip));
  const std::int64_t whole = copy.bytes / kLineBytes * kLineBytes, rest = copy.bytes - whole;
  const __mmask64 used = rest == 0 ? 0 : ~std::uint64_t{0} >> (kLineBytes - rest);
  const __m512i bits_of_rest = _mm512_maskz_mov_epi8(used, bits);
  const std::byte* from = copy.from;
  std::byte* to = copy.to;
  for (std::int64_t i = 0; i < copy.rows; ++i, from += copy.from_step, to += copy.to_step) {
    for (std::int64_t at = 0; at < whole; at += kLineBytes)
      _mm512_storeu_si512(to + at, _mm512_xor_si512(_mm512_loadu_si512(from + at), bits));
    if (rest > 0) {
      const __m512i last = _mm512_maskz_loadu_epi8(used, from + whole);
      _mm512_storeu_si512(to + whole, _mm512_xor_si512(last, bits_of_rest));
    }
  }
}

[[gnu::target("avx512f,avx512bw")]] void SumBytes(const TileRows& rows, std::int64_t count,
                                                  std::int32_t* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    __m512i sum = _mm512_setzero_si512();
    for (std::int64_t s = 0; s < rows.segments; ++s) {
      const std::byte* from = rows.from + i * rows.row_bytes + rows.segment_at[s];
      for (std::int64_t k = 0; k < rows.depth; k += kLineUnits, from += kLineBytes)
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(_mm512_load_si512(from), _mm512_setzero_si512()));
    }
    sums[i] = static_cast<std::int32_t>(_mm512_reduce_add_epi64(sum));
  }
}

TileWeights::TileWeights(const void* panel, std::int64_t units, std::int64_t depth, std::int64_t width)
    : panel_(static_cast<const std::byte*>(panel)), width_(width) {
  if (depth % kLineUnits == 0) return;
  const std::int64_t unit_bytes = width * kUnitBytes, last = std::min(units, kLineUnits);
  std::byte* const end = last_ + kLineUnits * unit_bytes;
  std::copy_n(panel_ + (units - last) * unit_bytes, last * unit_bytes, end - last * unit_bytes);
  std::fill_n(end, kLineUnits * unit_bytes, std::byte{0});
}

TileRegisters::TileRegisters() {
  static constexpr Configuration kConfiguration;
  asm volatile("ldtilecfg %0" ::"m"(kConfiguration) : "memory");
}
TileRegisters::~TileRegisters() { asm volatile("tilerelease" ::: "memory"); }

void TileRegisters::Multiply(TileUnit unit, const TileRows& rows, std::int64_t count,
                             const TileWeights& weights, void* sums) const {
  switch (unit) {
    case TileUnit::kPairs:
      return RunAs<Pairs>(rows, count, weights, sums);
    case TileUnit::kBytes:
      return RunAs<Bytes>(rows, count, weights, sums);
    case TileUnit::kSignedBytes:
      return RunAs<SignedBytes>(rows, count, weights, sums);
  }
}

#else

bool HasTiles() { return false; }
TileWeights::TileWeights(const void* panel, std::int64_t, std::int64_t, std::int64_t width)
    : panel_(static_cast<const std::byte*>(panel)), width_(width) {}
TileRegisters::TileRegisters() {}
TileRegisters::~TileRegisters() {}
void TileRegisters::Multiply(TileUnit, const TileRows&, std::int64_t, const TileWeights&, void*) const {}
void CopyToLines(const RowsToLines&) {}
void SumBytes(const TileRows&, std::int64_t, std::int32_t*) {}

#endif

}  // namespace rewire::kernel::cpu
