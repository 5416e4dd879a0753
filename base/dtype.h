// SPDX-License-Identifier: Apache-2.0
// DLPack element types: codes, sizes and spelling ("f32", "i64", "bool").
//
// Debian's dlpack 0.6 predates kDLBool, so the codes are named here. Inside Rewire a boolean is always {6, 8,
// 1}, one byte an element; adapters at the door rewrite the older uint1 spelling.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/export.h"

namespace rewire {

enum DTypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kOpaqueHandle = 3,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
};

constexpr DLDataType MakeDType(DTypeCode code, int bits, int lanes = 1) {
  return DLDataType{code, static_cast<std::uint8_t>(bits), static_cast<std::uint16_t>(lanes)};
}
inline constexpr DLDataType kFloat32 = MakeDType(kFloat, 32);
inline constexpr DLDataType kFloat64 = MakeDType(kFloat, 64);
inline constexpr DLDataType kFloat16 = MakeDType(kFloat, 16);
inline constexpr DLDataType kInt8 = MakeDType(kInt, 8);
inline constexpr DLDataType kInt32 = MakeDType(kInt, 32);
inline constexpr DLDataType kInt64 = MakeDType(kInt, 64);
inline constexpr DLDataType kUInt8 = MakeDType(kUInt, 8);
inline constexpr DLDataType kBool8 = MakeDType(kBool, 8);

inline bool operator==(DLDataType a, DLDataType b) {
  return __builtin_memcmp(&a, &b, sizeof(a)) == 0;  // one comparison: there are no gaps
}
inline bool operator!=(DLDataType a, DLDataType b) { return !(a == b); }

// Bytes of one element, lanes included. Sub-byte types round up to whole bytes per element.
constexpr std::uint64_t ElementBytes(DLDataType type) {
  return (std::uint64_t{type.bits} * type.lanes + 7) / 8;
}

// True for codes 0 to 6 with 1 to 128 bits and at least one lane: what a file may name.
REWIRE_API bool IsValidDType(DLDataType type);

// "f32", "i64", "u8", "bf16", "bool", "c64", "h64" (opaque handle), with "x4" after it for four lanes.
REWIRE_API std::string DTypeName(DLDataType type);
// The reverse; also takes numpy's names ("float32", "int64", "uint8", "bool").
REWIRE_API std::optional<DLDataType> ParseDType(std::string_view name);

}  // namespace rewire
