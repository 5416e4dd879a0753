// SPDX-License-Identifier: Apache-2.0
//
// Conversions between floats of 32 or 16 bits and the integers that represent them, in runs of elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/quantization/scale_runs.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

template <typename Q>
float HeldIn(float value) {
  constexpr auto kLeast = static_cast<float>(std::numeric_limits<Q>::min());
  constexpr auto kMost = static_cast<float>(std::numeric_limits<Q>::max());
  const float least = value > kLeast ? value : kLeast;  // for NaN, too
  return least < kMost ? least : kMost;
}
template <typename Q>
Q Saturate(float value) {
  return static_cast<Q>(ToTypeInRange<std::int32_t>(HeldIn<Q>(value)));
}

// to[i] = what of(i) gives, held in the range of Q. The numbers of a block are written as floats first: a
// compiler that sees both steps compares each number for them once more.
template <typename Q, typename Of>
void SaturateEach(std::int64_t count, Q* to, const Of& of) {
  constexpr std::int64_t kBlock = 256;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t size = std::min(kBlock, count - first);
    float held[kBlock];
    for (std::int64_t i = 0; i < size; ++i) held[i] = HeldIn<Q>(of(first + i));
    for (std::int64_t i = 0; i < size; ++i)
      to[first + i] = static_cast<Q>(ToTypeInRange<std::int32_t>(held[i]));
  }
}

// The same as QuantizedMath does, for what that does not have, and for a few elements. Element i has
// scales[i * step], and zeros alike, which may be null.
template <typename Q>
void QuantizePlainly(const float* from, std::int64_t count, const float* scales, const Q* zeros,
                     std::int64_t step, Q* to) {
  if (step == 0) {
    WideLoop([=, scale = scales[0], shift = zeros == nullptr ? 0.0F : static_cast<float>(zeros[0])] {
      SaturateEach(count, to, [=](std::int64_t i) { return std::nearbyint(from[i] / scale) + shift; });
    });
  } else if (zeros == nullptr) {
    WideLoop([=] {
      SaturateEach(count, to, [=](std::int64_t i) { return std::nearbyint(from[i] / scales[i]); });
    });
  } else {
    WideLoop([=] {
      SaturateEach(count, to, [=](std::int64_t i) {
        return std::nearbyint(from[i] / scales[i]) + static_cast<float>(zeros[i]);
      });
    });
  }
}

// Integers of 32 bits may differ from their zeros by more than such an integer holds.
template <typename Q>
void DequantizePlainly(const Q* from, std::int64_t count, const float* scales, const Q* zeros,
                       std::int64_t step, float* to) {
  using Wide = std::conditional_t<sizeof(Q) < sizeof(std::int32_t), std::int32_t, std::int64_t>;
  if (zeros == nullptr) {
    if (step == 0) {
      WideLoop([=, scale = scales[0]] {
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale;
      });
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scales[i];
    }
  } else if (step == 0) {
    WideLoop([=, zero = Wide{zeros[0]}, scale = scales[0]] {
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(Wide{from[i]} - zero) * scale;
    });
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(Wide{from[i]} - Wide{zeros[i]}) * scales[i];
  }
}

template <typename Q>
Conversion<Q, float, Q> QuantizationTo() {
  if constexpr (sizeof(Q) == 1) {
    const QuantizedMath<Q>& math = BestQuantizedMath<Q>();
    return {math.quantize, math.quantize_each, QuantizePlainly<Q>};
  } else {
    return {nullptr, nullptr, QuantizePlainly<Q>};
  }
}
template <typename Q>
Conversion<Q, Q, float> QuantizationFrom() {
  if constexpr (sizeof(Q) == 1) {
    const QuantizedMath<Q>& math = BestQuantizedMath<Q>();
    return {math.dequantize, math.dequantize_each, DequantizePlainly<Q>};
  } else {
    return {nullptr, nullptr, DequantizePlainly<Q>};
  }
}

// The functions of a conversion on 16-bit floats: they go through floats in blocks.
template <typename Q, typename Function>
void QuantizeHalves(const Float16* from, std::int64_t count, Q* to, const Function& function) {
  float block[kHalfBlock];
  for (std::int64_t at = 0; at < count; at += kHalfBlock) {
    const std::int64_t size = std::min(count - at, kHalfBlock);
    BestHalfRows().widen(from + at, block, size);
    function(at, block, size, to + at);
  }
}
template <typename Q, typename Function>
void DequantizeHalves(const Q* from, std::int64_t count, Float16* to, const Function& function) {
  float block[kHalfBlock];
  for (std::int64_t at = 0; at < count; at += kHalfBlock) {
    const std::int64_t size = std::min(count - at, kHalfBlock);
    function(at, from + at, size, block);
    BestHalfRows().narrow(block, to + at, size);
  }
}

// The scales and zeros of the elements from number `at` on; both may be one, and zeros null.
template <typename Q>
const Q* From(const Q* of_each, std::int64_t step, std::int64_t at) {
  return of_each == nullptr ? nullptr : of_each + at * step;
}
template <typename Q>
Conversion<Q, Float16, Q> QuantizationOfHalves() {
  Conversion<Q, Float16, Q> conversion{nullptr, nullptr, nullptr};
  if constexpr (sizeof(Q) == 1) {
    conversion.by_one = [](const Float16* from, std::int64_t count, const Quantization& by, Q* to) {
      QuantizeHalves(from, count, to, [&](std::int64_t, const float* x, std::int64_t size, Q* q) {
        BestQuantizedMath<Q>().quantize(x, size, by, q);
      });
    };
    conversion.by_each = [](const Float16* from, std::int64_t count, const float* scales, const Q* zeros,
                            Q* to) {
      QuantizeHalves(from, count, to, [=](std::int64_t at, const float* x, std::int64_t size, Q* q) {
        BestQuantizedMath<Q>().quantize_each(x, size, scales + at, From(zeros, 1, at), q);
      });
    };
  }
  conversion.plainly = [](const Float16* from, std::int64_t count, const float* scales, const Q* zeros,
                          std::int64_t step, Q* to) {
    QuantizeHalves(from, count, to, [=](std::int64_t at, const float* x, std::int64_t size, Q* q) {
      QuantizePlainly(x, size, scales + at * step, From(zeros, step, at), step, q);
    });
  };
  return conversion;
}
template <typename Q>
Conversion<Q, Q, Float16> QuantizationToHalves() {
  Conversion<Q, Q, Float16> conversion{nullptr, nullptr, nullptr};
  if constexpr (sizeof(Q) == 1) {
    conversion.by_one = [](const Q* from, std::int64_t count, const Quantization& by, Float16* to) {
      DequantizeHalves(from, count, to, [&](std::int64_t, const Q* q, std::int64_t size, float* x) {
        BestQuantizedMath<Q>().dequantize(q, size, by, x);
      });
    };
    conversion.by_each = [](const Q* from, std::int64_t count, const float* scales, const Q* zeros,
                            Float16* to) {
      DequantizeHalves(from, count, to, [=](std::int64_t at, const Q* q, std::int64_t size, float* x) {
        BestQuantizedMath<Q>().dequantize_each(q, size, scales + at, From(zeros, 1, at), x);
      });
    };
  }
  conversion.plainly = [](const Q* from, std::int64_t count, const float* scales, const Q* zeros,
                          std::int64_t step, Float16* to) {
    DequantizeHalves(from, count, to, [=](std::int64_t at, const Q* q, std::int64_t size, float* x) {
      DequantizePlainly(q, size, scales + at * step, From(zeros, step, at), step, x);
    });
  };
  return conversion;
}

}  // namespace rewire::kernel::cpu
