// SPDX-License-Identifier: Apache-2.0
// Conversions between float32 numbers and the integers that represent them.
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/quantization/quantized_sum.h"
#include "rewire/kernels/cpu/quantization/scale_channels.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

Channels ChannelsOf(const cpu::ScaleChannels& channels) {
  return {static_cast<int>(channels.count), static_cast<int>(channels.inner),
          static_cast<int>(channels.block), static_cast<int>(channels.blocks)};
}

// The type's number in device code.
Status TypeOf(const char* what, TensorView tensor, IntegerType* type) {
  if (tensor.Is<std::uint8_t>()) {
    *type = kTypeU8;
  } else if (tensor.Is<std::int8_t>()) {
    *type = kTypeI8;
  } else if (tensor.Is<std::uint16_t>()) {
    *type = kTypeU16;
  } else if (tensor.Is<std::int16_t>()) {
    *type = kTypeI16;
  } else if (tensor.Is<std::int32_t>()) {
    *type = kTypeI32;
  } else {
    return TypeError(what, " is ", DTypeName(tensor.dtype()), ", expected u8, i8, u16, i16 or i32");
  }
  return Status();
}

// Both quantize_linear and dequantize_linear take an integer and a float tensor of one shape.
struct Linear : contract::ScaleAttributes {
  Status Run(const char* code, const char* stored_name, TensorView stored, const char* real_name,
             TensorView x, TensorView scale, const std::optional<TensorView>& zero, TensorView out) const {
    const TensorView real = stored_name[0] == 'x' ? out : x;
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Beside("scale", scale, out).Shape("out", out, x.dims());
    if (zero) checks.Beside("zero", *zero, out).SameDType("zero", *zero, stored_name, stored);
    if (zero) checks.Shape("zero", *zero, scale.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckF32(real_name, real); !s.ok()) return s;
    if (Status s = CheckF32("scale", scale); !s.ok()) return s;
    IntegerType type{};
    if (Status s = TypeOf(stored_name, stored, &type); !s.ok()) return s;
    cpu::ScaleChannels channels;
    if (Status s = channels.Resolve("scale", scale, x, axis, block_size); !s.ok()) return s;
    Call call(out, Program::kQuantization, Form::kF32, code);
    call.Tensor(x).Tensor(scale).Optional(zero, scale).Tensor(out).Value(ChannelsOf(channels));
    call.Int(type).Int(zero ? 1 : 0).Int(out.size());
    return call.Each(out.size());
  }
};

struct QuantizeLinear {
  static constexpr const char* kName = names::kOnDevice<names::kQuantizeLinear>;
  Linear linear;
  static Status Make(Attributes& attributes, QuantizeLinear* quantize) {
    contract::QuantizeAttributes given;
    given.Read(attributes);  // floats of 8 bits, which may saturate, are not quantized here
    quantize->linear = {given};
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> zero, TensorView out) const {
    return linear.Run("quantize", "out", out, "x", x, scale, zero, out);
  }
};

struct DequantizeLinear {
  static constexpr const char* kName = names::kOnDevice<names::kDequantizeLinear>;
  Linear linear;
  static Status Make(Attributes& attributes, DequantizeLinear* dequantize) {
    dequantize->linear.Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> zero, TensorView out) const {
    return linear.Run("dequantize", "x", x, "out", x, scale, zero, out);
  }
};

struct DynamicQuantizeLinear {
  static constexpr const char* kName = names::kOnDevice<names::kDynamicQuantizeLinear>;
  Status operator()(TensorView x, TensorView out, TensorView out_scale, TensorView out_zero) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Shape("out", out, x.dims());
    checks.Beside("out_scale", out_scale, out).Shape("out_scale", out_scale, ShapeView());
    checks.Beside("out_zero", out_zero, out).Shape("out_zero", out_zero, ShapeView());
    checks.SameDType("out_zero", out_zero, "out", out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckF32("x", x); !s.ok()) return s;
    if (Status s = CheckF32("out_scale", out_scale); !s.ok()) return s;
    if (!out.Is<std::uint8_t>()) return TypeError("out is ", DTypeName(out.dtype()), ", expected u8");
    constexpr std::uint32_t kLanes = 256;
    Call range(out, Program::kQuantization, Form::kF32, "covering_scale");
    range.Tensor(x).Tensor(out_scale).Tensor(out_zero).Int(x.size());
    if (Status s = range.Groups(1, 1, 1, kLanes, 1); !s.ok()) return s;
    return Linear().Run("quantize", "out", out, "x", x, out_scale, out_zero, out);
  }
};

struct Requantize : contract::RequantizeAttributes {
  static constexpr const char* kName = names::kOnDevice<names::kRequantize>;
  static Status Make(Attributes& attributes, Requantize* requantize) {
    requantize->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView x_scale, TensorView w_scale, TensorView y_scale, TensorView zero,
                    TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Shape("out", out, x.dims());
    checks.Beside("w_scale", w_scale, out).Beside("zero", zero, out).SameDType("zero", zero, "out", out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<std::int32_t>()) return TypeError("x is ", DTypeName(x.dtype()), ", expected i32");
    if (Status s = CheckF32("w_scale", w_scale); !s.ok()) return s;
    const std::pair<const char*, TensorView> numbers[] = {{"x_scale", x_scale}, {"y_scale", y_scale}};
    for (const auto& [name, number] : numbers) {
      if (Status s = DeviceChecks().Beside(name, number, out).Take(); !s.ok()) return s;
      if (Status s = CheckF32(name, number); !s.ok()) return s;
      if (Status s = CheckOne(name, number); !s.ok()) return s;
    }
    if (Status s = CheckOne("zero", zero); !s.ok()) return s;
    IntegerType type{};
    if (Status s = TypeOf("out", out, &type); !s.ok()) return s;
    cpu::ScaleChannels channels;
    if (Status s = channels.Resolve("w_scale", w_scale, x, axis); !s.ok()) return s;
    Call call(out, Program::kQuantization, Form::kF32, "requantize");
    call.Tensor(x).Tensor(x_scale).Tensor(w_scale).Tensor(y_scale).Tensor(zero).Tensor(out);
    call.Value(ChannelsOf(channels)).Int(type).Int(out.size());
    return call.Each(out.size());
  }

 private:
  static Status CheckOne(const char* what, TensorView tensor) {
    if (tensor.size() == 1) return Status();
    return ValueError(what, " has shape ", tensor.dims(), ", expected one element");
  }
};

struct AddQuantized {
  static constexpr const char* kName = names::kOnDevice<names::kAddQuantized>;
  cpu::QuantizedSum terms;
  static Status Make(Attributes& attributes, AddQuantized* add) {
    add->terms.Read(attributes);
    return Status();
  }
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("a", a, out).Beside("b", b, out).SameDType("b", b, "a", a);
    checks.SameDType("out", out, "a", a).Shape("b", b, a.dims()).Shape("out", out, a.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{};
    if (Status s = ElementTypeOf("a", a, kBytes, &type); !s.ok()) return s;
    const cpu::Quantization sum =
        terms.SumWithin(static_cast<std::int32_t>(LeastOf(type)), static_cast<std::int32_t>(MostOf(type)));
    const QuantizedSum arguments = {terms.a.scale, terms.b.scale, sum.scale, terms.a.zero,
                                    terms.b.zero,  sum.zero,      sum.least, sum.most};
    Call call(out, Program::kQuantization, Form::kF32, "add_quantized");
    call.Tensor(a).Tensor(b).Tensor(out).Value(arguments).Int(type).Int(out.size());
    return call.Each(out.size());
  }
};

struct MapStored {
  static constexpr const char* kName = names::kOnDevice<names::kMapBytes>;
  Status operator()(TensorView x, TensorView table, TensorView out) const {
    constexpr std::int64_t kEntries = 256;
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Beside("table", table, out).Shape("out", out, x.dims());
    checks.Shape("table", table, ShapeView(&kEntries, 1)).SameDType("table", table, "out", out);
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{};
    if (Status s = ElementTypeOf("x", x, kBytes, &type); !s.ok()) return s;
    if (Status s = ElementTypeOf("out", out, kBytes, &type); !s.ok()) return s;
    Call call(out, Program::kQuantization, Form::kF32, "map_bytes");
    call.Tensor(x).Tensor(table).Tensor(out).Int(out.size());
    return call.Each(out.size());
  }
};

}  // namespace

std::span<const Kernel> QuantizationKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<QuantizeLinear>(
          "x, scale, zero? -> out", "x, scale f32; zero, out u8 i8 u16 i16",
          "axis = 1, block_size = 0, saturate = 1",
          "round(x / scale) + zero, held in out's range; scale and zero have one element or "
          "one for each position along the axis; with a block_size x's shape with one element for "
          "each block of so many positions along the axis"),
      Describe<DequantizeLinear>("x, scale, zero? -> out", "x, zero u8 i8 u16 i16 i32; scale, out f32",
                                 "axis = 1, block_size = 0",
                                 "(x - zero) * scale; scale and zero as of rewire.device.quantize_linear"),
      Describe<DynamicQuantizeLinear>("x -> out, out_scale, out_zero", "x, out_scale f32; out, out_zero u8",
                                      "", "x quantized by a scale and zero that just cover it and 0"),
      Describe<AddQuantized>(
          "a, b -> out", "u8 i8", "a_scale, b_scale, scale; a_zero, b_zero, zero = 0; least, most",
          "a and b, of one shape, dequantized, added, quantized and held between least and most",
          cpu::kElementwise),
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

}  // namespace rewire::kernel::device
