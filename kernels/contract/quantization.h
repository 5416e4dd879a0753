// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels that quantize.
#pragma once

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Quantization.
inline constexpr char kQuantizeLinear[] = "rewire.quantize_linear";
inline constexpr char kDequantizeLinear[] = "rewire.dequantize_linear";
inline constexpr char kDynamicQuantizeLinear[] = "rewire.dynamic_quantize_linear";
inline constexpr char kAddQuantized[] = "rewire.add_quantized";
inline constexpr char kMapBytes[] = "rewire.map_bytes";
inline constexpr char kRequantize[] = "rewire.requantize";

// Quantized activations.
inline constexpr char kPReluQuantized[] = "rewire.prelu_quantized";

inline constexpr Cost kQuantizationCosts[] = {
    {kAddQuantized, 4},   {kDequantizeLinear, 2}, {kMapBytes, 1},
    {kPReluQuantized, 4}, {kQuantizeLinear, 4},   {kRequantize, 4},
};

}  // namespace rewire::names
