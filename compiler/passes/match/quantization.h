// SPDX-License-Identifier: Apache-2.0
// Passes over quantized models share this.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

inline bool IsByte(const Value* value) { return value->type.dtype == kUInt8 || value->type.dtype == kInt8; }

// One element, as a scalar or a vector.
inline bool HasOneElement(const Value* value) {
  return value->type.ranked && value->type.rank() <= 1 && ProductOf(value->type.dims).Is(1);
}

// The one element of a constant of 8-bit integers, if that is what it is.
std::optional<std::int64_t> ByteOf(const Value* value);

// A node between floats and 8-bit integers, by one constant scale and zero for all elements.
struct Quantization {
  float scale = 1;
  std::int64_t zero = 0;
};
// The quantization of a rewire.quantize_linear or rewire.dequantize_linear whose integers have 8 bits.
std::optional<Quantization> QuantizationOf(const Node& node);

// The range that an activation leaves for the quantized integers. An absent bound means that the activation
// does not limit that side.
struct StoredRange {
  std::optional<std::int64_t> least, most;
};
// The range for a relu, or for a clip whose limits are attributes, if its result is quantized with `by` to
// this dtype. nullopt for other nodes.
std::optional<StoredRange> StoredRangeOf(const Node& activation, const Quantization& by, DLDataType dtype);

}  // namespace rewire::compiler
