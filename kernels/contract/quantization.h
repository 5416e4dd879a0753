// SPDX-License-Identifier: Apache-2.0
//
// Names and attributes of the kernels that quantize. Kernels of every kind, passes and the writer of C source
// read the attributes by these structs: `Given` reads by Int and Bool, as kernel::Attributes does.
#pragma once

#include <cstdint>
#include <limits>

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Quantization.
inline constexpr char kQuantizeLinear[] = "rewire.quantize_linear";
inline constexpr char kDequantizeLinear[] = "rewire.dequantize_linear";
inline constexpr char kDynamicQuantizeLinear[] = "rewire.dynamic_quantize_linear";
inline constexpr char kAddQuantized[] = "rewire.add_quantized";
inline constexpr char kMapBytes[] = "rewire.map_bytes";
inline constexpr char kRequantize[] = "rewire.requantize";

// Quantized activations and means.
inline constexpr char kPReluQuantized[] = "rewire.prelu_quantized";
inline constexpr char kMeanQuantized[] = "rewire.mean_quantized";

inline constexpr Cost kQuantizationCosts[] = {
    {kAddQuantized, 4},   {kDequantizeLinear, 2}, {kMapBytes, 1},   {kMeanQuantized, 1},
    {kPReluQuantized, 4}, {kQuantizeLinear, 4},   {kRequantize, 4},
};

}  // namespace rewire::names

namespace rewire::contract {

// Scales are those of the entries of `axis`, or of blocks of `block_size` of them.
struct ScaleAttributes {
  std::int64_t axis = 1;
  std::int64_t block_size = 0;  // 0: no blocks

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", 1);
    block_size = given.Int("block_size", 0, 0, std::numeric_limits<std::int64_t>::max());
  }
};

struct QuantizeAttributes : ScaleAttributes {
  bool saturate = true;  // floats of 8 bits are held in their range, rather than made infinite

  template <typename Given>
  void Read(Given& given) {
    ScaleAttributes::Read(given);
    saturate = given.Bool("saturate", true);
  }
};

// From the sums of an integer product to integers.
struct RequantizeAttributes {
  std::int64_t axis = 1;  // of the scales of the weights

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", 1);
  }
};

}  // namespace rewire::contract
