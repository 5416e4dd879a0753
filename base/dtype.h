// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/dtype.h>.
//
// DLPack element types (dtypes): codes, sizes and spelling ("f32", "i64", "bool").
//
// Debian's dlpack 0.6 does not define kDLBool yet, so this header names the codes itself. Inside Rewire a
// boolean is always {6, 8, 1}: code kBool, 8 bits, one lane. Adapters translate the older spelling (uint1)
// when a value enters or leaves.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/export.h"

namespace rewire {

enum DTypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kOpaqueHandle = 3,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
  // Floats of 8 bits, and one of 4: each code is one type.
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
  kFloat4E2M1FN = 17,
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
  // One comparison, because the struct has no padding.
  return __builtin_bit_cast(std::uint32_t, a) == __builtin_bit_cast(std::uint32_t, b);
}
inline bool operator!=(DLDataType a, DLDataType b) { return !(a == b); }

// Bytes of one element, all lanes included. Types of fewer than 8 bits are rounded up to whole bytes.
constexpr std::uint64_t ElementBytes(DLDataType type) {
  return (std::uint64_t{type.bits} * type.lanes + 7) / 8;
}

// True if a file may use this dtype: code 0 to 6, 1 to 128 bits, at least one lane. The narrow floats above
// have their own number of bits.
REWIRE_API bool IsValidDType(DLDataType type);

// Returns "f32", "i64", "u8", "bf16", "bool", "c64", "f8e4m3fn" or "h64" (opaque handle). Several lanes are
// appended: "f32x4".
REWIRE_API std::string DTypeName(DLDataType type);
// The inverse of DTypeName. Also accepts numpy's names ("float32", "int64", "uint8", "bool").
REWIRE_API std::optional<DLDataType> ParseDType(std::string_view name);

}  // namespace rewire
