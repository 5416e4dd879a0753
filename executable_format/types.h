// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/types.h>.
//
// Types in signatures: what a function declares about its inputs and its result.
//
// A type is a tensor with static, symbolic or unknown dimensions, a tree of ADTs (tagged tuples), or a kind
// that the signature leaves open.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <optional>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"

namespace rewire {

// One dimension. n >= 0 is a static size, kUnknownDim is unknown, and SymbolDim(k) is the module's symbol k
// (such as "N"). Within one call, all dimensions with the same symbol have the same size.
using Dim = std::int64_t;
inline constexpr Dim kUnknownDim = -1;
constexpr Dim SymbolDim(std::uint32_t symbol) { return -2 - static_cast<Dim>(symbol); }
constexpr bool IsSymbol(Dim dim) { return dim <= -2; }
constexpr std::uint32_t SymbolOf(Dim dim) { return static_cast<std::uint32_t>(-2 - dim); }

// The kinds of value that a signature knows.
enum class TypeKind : std::uint8_t {
  kTensor = 0,  // dtype, rank, dims and device, as far as they are known
  kAdt = 1,     // a tag and fields
  kClosure = 2,
  kStorage = 3,
  kInteger = 4,  // an unboxed integer
  kValue = 5,    // any of these kinds, checked where it is used; in a result, one opaque leaf
};

inline constexpr DLDataType kUnknownDType = {0, 0, 0};
inline constexpr std::int32_t kUnknownRank = -1;
inline constexpr std::uint32_t kAnyDevice = 0xFFFFFFFFu;
inline constexpr std::uint32_t kHostDevice = 0;  // index in the module's device table

struct TypeNode {
  TypeKind kind = TypeKind::kValue;
  // kTensor
  DLDataType dtype = kUnknownDType;
  std::int32_t rank = kUnknownRank;  // equals dims.size() when known
  Array<Dim> dims;
  std::uint32_t device = kHostDevice;  // index in the device table, or kAnyDevice; kValue: docs/assembly.md
  // kAdt
  std::uint32_t tag = 0;
  std::uint32_t field_count = 0;  // the fields' subtrees follow this node in pre-order

  bool operator==(const TypeNode& other) const;
};

// A type, stored as its nodes in pre-order. A tensor type is one node. An ADT's node is followed by the
// subtrees of its fields. The storage is flat so that reading, comparing and releasing need no recursion.
struct Type {
  Array<TypeNode> nodes;

  bool operator==(const Type& other) const { return nodes == other.nodes; }
};

REWIRE_API Type TensorType(DLDataType dtype, Array<Dim> dims, std::uint32_t device = kHostDevice);
REWIRE_API Type UnrankedTensorType(DLDataType dtype = kUnknownDType, std::uint32_t device = kHostDevice);
REWIRE_API Type AdtType(std::uint32_t tag, const Array<Type>& fields);
REWIRE_API Type SimpleType(TypeKind kind);  // closure, storage, integer, value

// Indices in type.nodes of the leaves (all nodes that are not ADTs), in pre-order. Output names have the same
// order.
REWIRE_API Array<std::uint32_t> Leaves(const Type& type);

// Index after the last node of the subtree that starts at `node`. The type must be well formed.
REWIRE_API std::uint32_t SubtreeEnd(const Type& type, std::uint32_t node);

// Bytes of a tensor with these dimensions. nullopt if one is not static or the size exceeds 2^63 - 1.
REWIRE_API std::optional<std::uint64_t> TensorBytes(DLDataType dtype, Span<const Dim> dims);

// Spells a type: "f32[N, 4]", "(f32[2], i64[])", "adt 3 (f32[2])", "value". `symbols` are the module's symbol
// names.
//
// A device other than the host is appended as "@1", and "@*" means any device. An unknown rank is "[*]".
// Other unknown parts are "?".
REWIRE_API std::string TypeText(const Type& type, Span<const std::string> symbols);

}  // namespace rewire
