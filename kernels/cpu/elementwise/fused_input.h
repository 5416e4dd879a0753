// SPDX-License-Identifier: Apache-2.0
//
// How rewire.fused reads an input: elements of any of its types become floats.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/elementwise/fused_program.h"
#include "rewire/kernels/cpu/elementwise/fused_steps.h"
#include "rewire/kernels/cpu/math/halves.h"
#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// An input, by how its elements lie beside those of the output.
struct FusedInput {
  enum Kind {
    kRepeated,  // one element for all
    kAlike,     // in the same order
    kRows,      // the same for each innermost run
    kOther,
  };
  enum Element { kFloat, kBool, kBf16, kF16, kUnsigned, kSigned, kNone };
  Kind kind = kOther;
  Element element = kFloat;
  const void* data = nullptr;
  FusedBytes bytes;  // of kUnsigned and kSigned

  static Element ElementOf(TensorView tensor) {
    if (tensor.Is<float>()) return kFloat;
    if (tensor.Is<bool>()) return kBool;
    if (tensor.Is<BFloat16>()) return kBf16;
    if (tensor.Is<Float16>()) return kF16;
    if (tensor.Is<std::uint8_t>()) return kUnsigned;
    return tensor.Is<std::int8_t>() ? kSigned : kNone;
  }
  float At(std::int64_t offset) const {
    switch (element) {
      case kBool:
        return static_cast<const std::uint8_t*>(data)[offset] != 0 ? 1.0F : 0.0F;
      case kBf16:
        return static_cast<float>(static_cast<const BFloat16*>(data)[offset]);
      case kF16:
        return static_cast<float>(static_cast<const Float16*>(data)[offset]);
      case kUnsigned:
        return Dequantized(static_cast<const std::uint8_t*>(data)[offset]);
      case kSigned:
        return Dequantized(static_cast<const std::int8_t*>(data)[offset]);
      case kFloat:
      case kNone:
        break;
    }
    return static_cast<const float*>(data)[offset];
  }
  // `count` elements from `offset` on, `step` apart.
  void Copy(std::int64_t offset, std::int64_t step, std::int64_t count, float* to) const {
    if (step == 0) {
      std::fill_n(to, count, At(offset));
    } else if (step == 1 && element == kFloat) {
      std::copy_n(static_cast<const float*>(data) + offset, count, to);
    } else if (step == 1 && element == kBf16) {
      BestFusedConversions().widen(static_cast<const std::uint16_t*>(data) + offset, count, to);
    } else if (step == 1 && element == kF16) {
      BestHalfRows().widen(static_cast<const Float16*>(data) + offset, to, count);
    } else if (step == 1 && element == kUnsigned) {
      DequantizeRun<std::uint8_t>(offset, count, to);
    } else if (step == 1 && element == kSigned) {
      DequantizeRun<std::int8_t>(offset, count, to);
    } else if (step == 1) {
      BestFusedConversions().truths(static_cast<const std::uint8_t*>(data) + offset, count, to);
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = At(offset + i * step);
    }
  }
  // `rows` such runs, of which each begins `next` elements behind the one before.
  void CopyRuns(std::int64_t offset, std::int64_t step, std::int64_t next, std::int64_t rows,
                std::int64_t count, float* to) const {
    if (element == kFloat && count == 2) return CopyShort<2>(offset, step, next, rows, to);
    if (element == kFloat && count == 3) return CopyShort<3>(offset, step, next, rows, to);
    if (element == kFloat && count == 4) return CopyShort<4>(offset, step, next, rows, to);
    if (step == 1 && next == count) return Copy(offset, 1, rows * count, to);
    if (step == 0 && next == 0) return Copy(offset, 0, rows * count, to);
    if (next == 0) {
      // The first run, then what is written already, as often as it fits.
      Copy(offset, step, count, to);
      for (std::int64_t done = count, all = rows * count; done < all;) {
        const std::int64_t more = std::min(done, all - done);
        std::copy_n(to, more, to + done);
        done += more;
      }
      return;
    }
    if (step == 0) return RepeatElements(offset, next, rows, count, to);
    for (std::int64_t r = 0; r < rows; ++r) Copy(offset + r * next, step, count, to + r * count);
  }

 private:
  float Dequantized(std::int32_t byte) const { return static_cast<float>(byte - bytes.zero) * bytes.scale; }
  template <typename Q>
  void DequantizeRun(std::int64_t offset, std::int64_t count, float* to) const {
    const Q* from = static_cast<const Q*>(data) + offset;
    constexpr std::int64_t kShort = 8;  // elements that are not worth a call
    if (count >= kShort)
      return BestQuantizedMath<Q>().dequantize(from, count, {bytes.scale, bytes.zero, 0, 0}, to);
    for (std::int64_t i = 0; i < count; ++i) to[i] = Dequantized(from[i]);
  }
  // Each of `rows` elements `count` times. Some become floats at once, since one by one that takes longer
  // than to write them. What four elements at once write too many are written again by the next one.
  void RepeatElements(std::int64_t offset, std::int64_t next, std::int64_t rows, std::int64_t count,
                      float* to) const {
    constexpr std::int64_t kAtOnce = 4, kRows = 64;
    float elements[kRows];
    for (std::int64_t r = 0; r < rows; ++r, to += count) {
      if (r % kRows == 0) Copy(offset + r * next, next, std::min(kRows, rows - r), elements);
      const float value = elements[r % kRows];
      if (count < kAtOnce || r + 1 == rows) {
        std::fill_n(to, count, value);
        continue;
      }
      const float values[kAtOnce] = {value, value, value, value};
      for (std::int64_t i = 0; i < count; i += kAtOnce) std::copy_n(values, kAtOnce, to + i);
    }
  }
  // Runs of a point's or a color's few numbers, one of which is copied faster than a function is called.
  template <int kCount>
  void CopyShort(std::int64_t offset, std::int64_t step, std::int64_t next, std::int64_t rows,
                 float* to) const {
    const float* from = static_cast<const float*>(data) + offset;
    if (step == 0) {
      for (std::int64_t r = 0; r < rows; ++r) std::fill_n(to + r * kCount, kCount, from[r * next]);
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (int i = 0; i < kCount; ++i) to[r * kCount + i] = from[r * next + i * step];
      }
    }
  }
};

}  // namespace rewire::kernel::cpu
