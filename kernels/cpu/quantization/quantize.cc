// SPDX-License-Identifier: Apache-2.0
//
// Conversions between floats and the integers that represent them: real = (stored - zero) * scale.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/cpu/elementwise/narrow_format.h"
#include "rewire/kernels/cpu/math/byte_map.h"
#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/quantization/linear_conversions.h"
#include "rewire/kernels/cpu/quantization/quantized_mean.h"
#include "rewire/kernels/cpu/quantization/quantized_sum.h"
#include "rewire/kernels/cpu/quantization/scale_channels.h"
#include "rewire/kernels/cpu/quantization/scale_runs.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

using Quantized = Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t>;
using Bytes = Types<std::uint8_t, std::int8_t>;
using Reals = Types<float, Float16>;
using Dequantizable = Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::int32_t>;

Status CheckZero(TensorView zero, TensorView scale, const char* as_name, TensorView as, TensorView out) {
  Checks checks;
  checks.Dense("zero", zero).Shape("zero", zero, scale.dims()).SameDType("zero", zero, as_name, as);
  return checks.NoOverlap("out", out, "zero", zero).Take();
}

Status CheckFloat(const char* name, TensorView tensor) {
  return tensor.Is<float>() ? Status() : WrongDType(Types<float>(), name, tensor);
}

// Calls body(i, scale, zero) for each element.
template <typename Body>
Status ForEachScaled(const NarrowFormat& format, const ScaleChannels& channels, TensorView x,
                     TensorView scale, std::optional<TensorView> zero, const Body& body) {
  const float* scales = scale.data<float>();
  const std::uint8_t* zeros = zero ? static_cast<const std::uint8_t*>(zero->raw_data()) : nullptr;
  return ForEachRun(channels, x.size(), kGrain / 8,
                    [&](std::int64_t first, ScaleChannels::Run run, std::int64_t c) {
                      for (std::int64_t i = 0; i < run.count; ++i, c += run.step)
                        body(first + i, scales[c], zeros != nullptr ? format.Decode(zeros[c]) : 0.0f);
                    });
}

Status QuantizeNarrow(const NarrowFormat& format, const ScaleChannels& channels, bool saturate, TensorView x,
                      TensorView scale, std::optional<TensorView> zero, TensorView out) {
  auto* to = static_cast<std::uint8_t*>(out.raw_data());
  return ForType(Reals(), "x", x, [&](auto tag) {
    const auto* from = x.data<typename decltype(tag)::type>();
    return ForEachScaled(format, channels, x, scale, zero, [&](std::int64_t i, float by, float shift) {
      const float scaled = static_cast<float>(from[i]) / by;
      to[i] = format.is_integer ? format.SaturateInteger(std::nearbyint(scaled) + shift)
                                : format.Encode(scaled + shift, saturate, PowerRounding::kUp);
    });
  });
}

Status DequantizeNarrow(const NarrowFormat& format, const ScaleChannels& channels, TensorView x,
                        TensorView scale, std::optional<TensorView> zero, TensorView out) {
  const auto* from = static_cast<const std::uint8_t*>(x.raw_data());
  return ForType(Reals(), "out", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.data<T>();
    return ForEachScaled(format, channels, x, scale, zero, [&](std::int64_t i, float by, float shift) {
      to[i] = static_cast<T>((format.Decode(from[i]) - shift) * by);
    });
  });
}

// Each ScaledOperand of QuantizeLinear and DequantizeLinear is checked alike. `stored` is the one of
// integers, `real` the one of floats.
struct ScaledOperand {
  const char* name;
  TensorView tensor;
};
Status ResolveScaled(ScaledOperand stored, ScaledOperand real, TensorView x, TensorView scale,
                     const std::optional<TensorView>& zero, TensorView out, std::int64_t axis,
                     std::int64_t block_size, ScaleChannels* channels) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).NoOverlap("out", out, "x", x);
  if (Status s = checks.NoOverlap("out", out, "scale", scale).Take(); !s.ok()) return s;
  if (!real.tensor.Is<float>() && !real.tensor.Is<Float16>())
    return WrongDType(Reals(), real.name, real.tensor);
  if (Status s = CheckFloat("scale", scale); !s.ok()) return s;
  if (Status s = CheckDense("scale", scale); !s.ok()) return s;
  if (Status s = channels->Resolve("scale", scale, x, axis, block_size); !s.ok()) return s;
  return zero ? CheckZero(*zero, scale, stored.name, stored.tensor, out) : Status();
}

struct QuantizeLinear : WithAttributes<contract::QuantizeAttributes> {
  static constexpr const char* kName = names::kQuantizeLinear;
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> zero, TensorView out) const {
    ScaleChannels channels;
    if (Status s = ResolveScaled({"out", out}, {"x", x}, x, scale, zero, out, axis, block_size, &channels);
        !s.ok())
      return s;
    if (const NarrowFormat* format = FormatOf(out.dtype()))
      return QuantizeNarrow(*format, channels, saturate, x, scale, zero, out);
    return ForType(Quantized(), "out", out, [&](auto tag) {
      using Q = typename decltype(tag)::type;
      if (x.Is<Float16>())
        return Convert(QuantizationOfHalves<Q>(), channels, kGrain / 4, x, scale, zero, out);
      return Convert(QuantizationTo<Q>(), channels, kGrain / 4, x, scale, zero, out);
    });
  }
};

struct DequantizeLinear : WithAttributes<contract::ScaleAttributes> {
  static constexpr const char* kName = names::kDequantizeLinear;
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> zero, TensorView out) const {
    ScaleChannels channels;
    if (Status s = ResolveScaled({"x", x}, {"out", out}, x, scale, zero, out, axis, block_size, &channels);
        !s.ok())
      return s;
    if (const NarrowFormat* format = FormatOf(x.dtype()))
      return DequantizeNarrow(*format, channels, x, scale, zero, out);
    return ForType(Dequantizable(), "x", x, [&](auto tag) {
      using Q = typename decltype(tag)::type;
      if (out.Is<Float16>())
        return Convert(QuantizationToHalves<Q>(), channels, kGrain / 2, x, scale, zero, out);
      return Convert(QuantizationFrom<Q>(), channels, kGrain / 2, x, scale, zero, out);
    });
  }
};

struct DynamicQuantizeLinear {
  static constexpr const char* kName = names::kDynamicQuantizeLinear;
  Status operator()(TensorView x, TensorView out, TensorView out_scale, TensorView out_zero) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).NoOverlap("out", out, "x", x);
    checks.Dense("out_scale", out_scale).Rank("out_scale", out_scale, 0);
    checks.Dense("out_zero", out_zero)
        .Rank("out_zero", out_zero, 0)
        .SameDType("out_zero", out_zero, "out", out);
    checks.NoOverlap("out_scale", out_scale, "x", x).NoOverlap("out_zero", out_zero, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckFloat("x", x); !s.ok()) return s;
    if (Status s = CheckFloat("out_scale", out_scale); !s.ok()) return s;
    if (!out.Is<std::uint8_t>()) return WrongDType(Types<std::uint8_t>(), "out", out);
    // The range includes 0, so that 0 is stored exactly.
    const float* from = x.data<float>();
    const std::int64_t size = x.size();
    struct alignas(64) Range {
      float least = 0;
      float most = 0;
    };
    Range ranges[kMostStageTasks];
    const std::int64_t part = std::max(kGrain, (size + kMostStageTasks - 1) / kMostStageTasks);
    Status widened =
        ParallelFor((size + part - 1) / part, 1, [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t i = begin; i < end; ++i) {
            const auto widen = [&](std::int64_t first, std::int64_t last) {
              BestWidenRange()(from + i * part + first, last - first, &ranges[i].least, &ranges[i].most);
            };
            if (!pace.For(std::min(part, size - i * part), 1, widen)) return;
          }
        });
    if (!widened.ok()) return widened;
    float least = 0;
    float most = 0;
    for (const Range& range : ranges) {
      least = std::min(least, range.least);
      most = std::max(most, range.most);
    }
    const float scale = most > least ? (most - least) / 255 : 1.0f;
    const auto zero = Saturate<std::uint8_t>(std::nearbyint(-least / scale));
    *out_scale.data<float>() = scale;
    *out_zero.data<std::uint8_t>() = zero;
    auto* to = out.data<std::uint8_t>();
    return ParallelFor(size, kGrain, [&](std::int64_t begin, std::int64_t end) {
      BestQuantizedMath<std::uint8_t>().quantize(from + begin, end - begin,
                                                 QuantizationOf<std::uint8_t>(scale, zero), to + begin);
    });
  }
};

struct Requantize : WithAttributes<contract::RequantizeAttributes> {
  static constexpr const char* kName = names::kRequantize;
  Status operator()(TensorView x, TensorView x_scale, TensorView w_scale, TensorView out_scale,
                    TensorView zero, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).NoOverlap("out", out, "x", x);
    checks.Dense("zero", zero).SameDType("zero", zero, "out", out).NoOverlap("out", out, "zero", zero);
    checks.NoOverlap("out", out, "w_scale", w_scale);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "x", x);
    if (Status s = CheckFloat("w_scale", w_scale); !s.ok()) return s;
    if (Status s = CheckDense("w_scale", w_scale); !s.ok()) return s;
    double of_x = 0;
    double of_out = 0;
    if (Status s = ReadNumber("x_scale", x_scale, &of_x); !s.ok()) return s;
    if (Status s = ReadNumber("out_scale", out_scale, &of_out); !s.ok()) return s;
    std::int64_t shift = 0;
    if (Status s = ReadInt("zero", zero, &shift); !s.ok()) return s;
    ScaleChannels channels;
    if (Status s = channels.Resolve("w_scale", w_scale, x, axis); !s.ok()) return s;
    return ForType(Bytes(), "out", out, [&](auto tag) {
      using Q = typename decltype(tag)::type;
      const auto* from = x.data<std::int32_t>();
      const float* of_w = w_scale.data<float>();
      Q* to = out.data<Q>();
      const Quantization by = QuantizationOf<Q>(static_cast<float>(of_out), shift);
      const auto x_factor = static_cast<float>(of_x);
      return ForEachRun(channels, x.size(), kGrain / 4,
                        [&](std::int64_t first, ScaleChannels::Run run, std::int64_t c) {
                          BestQuantizedMath<Q>().requantize(from + first, run.count, x_factor, of_w + c,
                                                            run.step, by, to + first);
                        });
    });
  }
};

struct AddQuantized {
  static constexpr const char* kName = names::kAddQuantized;
  QuantizedSum terms;
  static Status Make(Attributes& attributes, AddQuantized* add) {
    add->terms.Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView y, TensorView sum) const {
    Checks checks;
    checks.Operands("a", x, "b", y, sum).SameDType("b", y, "a", x).SameDType("out", sum, "a", x);
    checks.Shape("b", y, x.dims()).Shape("out", sum, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    return ForType(Bytes(), "a", x, [&](auto tag) {
      using Q = typename decltype(tag)::type;
      using Limits = std::numeric_limits<Q>;
      const Quantization by = terms.SumWithin(Limits::min(), Limits::max());
      return ParallelFor(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        BestQuantizedMath<Q>().add(x.data<Q>() + begin, terms.a, y.data<Q>() + begin, 1, terms.b, end - begin,
                                   by, sum.data<Q>() + begin);
      });
    });
  }
};

struct MapStored {
  static constexpr const char* kName = names::kMapBytes;
  Status operator()(TensorView x, TensorView table, TensorView out) const {
    constexpr std::int64_t kEntries = 256;
    Checks checks;
    checks.Dense("x", x).Dense("table", table).Dense("out", out).Shape("out", out, x.dims());
    checks.Shape("table", table, ShapeView(&kEntries, 1)).SameDType("table", table, "out", out);
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "table", table);
    if (Status s = checks.Take(); !s.ok()) return s;
    for (const auto& [name, tensor] : {std::pair("x", x), std::pair("out", out)}) {
      if (!tensor.Is<std::uint8_t>() && !tensor.Is<std::int8_t>()) return WrongDType(Bytes(), name, tensor);
    }
    const auto* from = static_cast<const std::uint8_t*>(x.raw_data());
    const auto* entries = static_cast<const std::uint8_t*>(table.raw_data());
    auto* to = static_cast<std::uint8_t*>(out.raw_data());
    return ParallelFor(x.size(), 4 * kGrain, [&](std::int64_t begin, std::int64_t end) {
      BestMapBytes()(from + begin, end - begin, entries, to + begin);
    });
  }
};

}  // namespace

std::span<const Kernel> QuantizeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<QuantizeLinear>(
          "x, scale, zero? -> out", "x f32 f16; scale f32; zero, out u8 i8 u16 i16 narrow",
          "axis = 1, block_size = 0, saturate = 1",
          "round(x / scale) + zero, held in out's range (floats of 8 bits: if saturate, otherwise infinite "
          "or NaN); "
          "scale and zero have one element or "
          "one for each position along the axis; with a block_size x's shape with one element for "
          "each block of so many positions along the axis"),
      Describe<DequantizeLinear>(
          "x, scale, zero? -> out", "x, zero u8 i8 u16 i16 i32 narrow; scale f32; out f32 f16",
          "axis = 1, block_size = 0", "(x - zero) * scale; scale and zero as of rewire.quantize_linear"),
      Describe<DynamicQuantizeLinear>("x -> out, out_scale, out_zero", "x, out_scale f32; out, out_zero u8",
                                      "", "x quantized by a scale and zero that just cover it and 0"),
      Describe<AddQuantized>(
          "a, b -> out", "u8 i8", "a_scale, b_scale, scale; a_zero, b_zero, zero = 0; least, most",
          "a and b, of one shape, dequantized, added, quantized and held between least and most",
          kElementwise),
      Describe<QuantizedMean>("x -> out", "u8 i8", "axes = all; x_scale, scale; x_zero, zero = 0",
                              "x dequantized by x_scale and x_zero, its mean along successive axes, and "
                              "quantized by scale and zero; out has any shape of as many elements"),
      Describe<MapStored>("x, table -> out", "x u8 i8; table, out u8 i8", "",
                          "the element of table at each byte of x, counted from 0 to 255 without a sign; "
                          "table has 256 elements"),
      Describe<Requantize>(
          "x, x_scale, w_scale, y_scale, zero -> out",
          "x i32; x_scale, w_scale, y_scale f32; zero, out u8 i8", "axis = 1",
          "round(x * (x_scale * w_scale / y_scale)) + zero, held in out's range: what follows an "
          "integer product; w_scale has one element or one for each position along the axis"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
