// SPDX-License-Identifier: Apache-2.0
// Embedded integer products equal the stock kernels to the bit.
#include "rewire/tests/kernels/embedded/cases.h"

namespace rewire::test::embedded {
namespace {

enum class Result { kSums, kFloats, kUnsigned, kSigned };

// All operands of an integer product but x and w, as both kernels take them.
struct Operands {
  bool is_signed, relu;
  Result result;
  int columns;
  HostTensor x_zero, w_zero, scale, bias;
  bool whole_bias;
  int zero = 0, least = 0, most = 0;
  AttributeList attributes;
  rewire_embedded_activation activation{};

  Operands(Draw& draw, int of_columns) : columns(of_columns) {
    is_signed = draw.Bool();
    result = draw.Of({Result::kSums, Result::kFloats, Result::kUnsigned, Result::kSigned});
    x_zero = None<std::int8_t>();
    if (draw.Bool())
      x_zero = is_signed ? draw.Bytes<std::int8_t>({}) : draw.Bytes<std::uint8_t>({});
    else if (!is_signed)
      x_zero = None<std::uint8_t>();
    w_zero = draw.Bool() ? draw.Bytes<std::int8_t>(Shape(draw.Bool() ? Shape{columns} : Shape{1}))
                         : None<std::int8_t>();
    scale = None<float>();
    if (result != Result::kSums) {
      scale = draw.Floats(draw.Bool() ? Shape{columns} : Shape{1});
      const float small = draw.Of({1e-4F, 1e-2F, 1.0F});
      for (float& value : scale.elements<float>()) value *= small;
    }
    whole_bias = draw.Bool();
    bias = None<std::int32_t>();
    const int kind = draw.Int(0, 2);
    if (kind == 1 || (kind == 2 && result == Result::kSums)) {
      bias =
          draw.Filled<std::int32_t>({columns}, [&] { return static_cast<std::int32_t>(draw.Bits() << 8); });
    } else if (kind == 2) {
      bias = draw.Filled<float>({columns}, [&] { return draw.Float() * 20; });
    }
    whole_bias = kind == 1 || result == Result::kSums;
    relu = result == Result::kFloats && draw.Bool();
    if (relu) attributes.push_back({"activation", "relu"});
    activation = {&rewire_embedded_activate_relu, 0, 0, nullptr};
    if (result == Result::kUnsigned || result == Result::kSigned) {
      const int low = result == Result::kUnsigned ? 0 : -128;
      zero = draw.Int(low, low + 255);
      least = draw.Bool() ? low : draw.Int(low, low + 100);
      most = draw.Bool() ? low + 255 : draw.Int(least, low + 255);
      attributes.push_back({"zero", zero});
      attributes.push_back({"least", least});
      attributes.push_back({"most", most});
    }
  }

  template <typename T>
  static HostTensor None() {
    return HostTensor::Empty<T>({0});
  }
  HostTensor X(Draw& draw, const Shape& shape) const {
    return is_signed ? draw.Bytes<std::int8_t>(shape) : draw.Bytes<std::uint8_t>(shape);
  }
  HostTensor Out(const Shape& shape) const {
    switch (result) {
      case Result::kSums:
        return HostTensor::Empty<std::int32_t>(shape);
      case Result::kFloats:
        return HostTensor::Empty<float>(shape);
      case Result::kUnsigned:
        return HostTensor::Empty<std::uint8_t>(shape);
      case Result::kSigned:
        return HostTensor::Empty<std::int8_t>(shape);
    }
    return {};
  }
  rewire_embedded_integer_finish Finish() const {
    rewire_embedded_integer_finish finish{};
    finish.store = result == Result::kSums       ? &rewire_embedded_store_i32
                   : result == Result::kFloats   ? &rewire_embedded_store_f32
                   : result == Result::kUnsigned ? &rewire_embedded_store_u8
                                                 : &rewire_embedded_store_i8;
    finish.x_is_signed = is_signed;
    finish.w_zero_step = w_zero.size() > 1;
    finish.scale_step = scale.size() > 1;
    finish.activation = relu ? &activation : nullptr;
    finish.zero = static_cast<float>(zero);
    finish.least = static_cast<float>(least);
    finish.most = static_cast<float>(most);
    return finish;
  }
  const void* XZero() { return DataOrNull<std::uint8_t>(x_zero); }
  const std::int8_t* WZero() { return DataOrNull<std::int8_t>(w_zero); }
  const float* Scale() { return DataOrNull<float>(scale); }
  const std::int32_t* WholeBias() { return whole_bias ? DataOrNull<std::int32_t>(bias) : nullptr; }
  const float* Bias() { return whole_bias ? nullptr : DataOrNull<float>(bias); }

  void Check(const std::string& name, AttributeList list, HostTensor& x, HostTensor& w, HostTensor& sums,
             HostTensor& out) {
    HostTensor stock = Out(out.shape());
    REQUIRE(Run(name, {&x, &w, &sums, &x_zero, &w_zero, &scale, &bias, &stock}, With(list, attributes)) ==
            "");
    if (StockFuses()) CheckSame<std::uint8_t>(out, stock);
  }
};

struct PackedBytes {
  HostTensor packed, sums;
  PackedBytes(HostTensor w, int columns, int depth, int segments, const char* order)
      : packed(HostTensor::Empty<std::int8_t>(
            {(columns + 15) / 16 * 16, segments * ((depth / segments + 3) / 4 * 4)})),
        sums(HostTensor::Empty<std::int32_t>({columns})) {
    REQUIRE(Run("rewire.packed.pack_integers", {&w, &packed, &sums},
                {{"order", order}, {"segments", segments}}) == "");
  }
  std::vector<std::int16_t> Workspace() const {
    return std::vector<std::int16_t>(
        REWIRE_EMBEDDED_INTEGER_WORKSPACE(static_cast<std::size_t>(packed.shape()[1])) / 2);
  }
};

int DrawIntegerColumns(Draw& draw) { return draw.Of({1, 3, 4, 5, 16, 17, 31, 32, 33, 48, 49}); }

}  // namespace

TEST_CASE("embedded integer matmul equals the stock kernel") {
  Draw draw(11);
  for (int i = 0; i < 400; ++i) {
    const int rows = draw.Int(0, 5), depth = draw.Int(1, 40), columns = DrawIntegerColumns(draw);
    Operands operands(draw, columns);
    HostTensor x = operands.X(draw, {rows, depth}), out = operands.Out({rows, columns});
    PackedBytes w(draw.Bytes<std::int8_t>({depth, columns}), columns, depth, 1, "IO");
    CAPTURE(i, rows, depth, columns, operands.is_signed, static_cast<int>(operands.result));
    const rewire_embedded_packed_matmul_integer p = {rows, depth, columns, operands.Finish()};
    rewire_embedded_packed_matmul_integer_bytes(&p, Data<std::uint8_t>(x), Data<std::int8_t>(w.packed),
                                                operands.XZero(), operands.WZero(), operands.Scale(),
                                                operands.WholeBias(), operands.Bias(), w.Workspace().data(),
                                                Data<std::uint8_t>(out));
    operands.Check("rewire.packed.matmul_integer", {{"columns", columns}}, x, w.packed, w.sums, out);
  }
}

TEST_CASE("embedded integer convolution equals the stock kernel") {
  Draw draw(12);
  for (int i = 0; i < 400; ++i) {
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), in = draw.Int(1, 6), columns = DrawIntegerColumns(draw);
    Operands operands(draw, columns);
    HostTensor x = operands.X(draw, window.Of(&rewire_embedded_axis::input, images, in, true));
    HostTensor out = operands.Out(window.Of(&rewire_embedded_axis::output, images, columns, true));
    const bool apart = window.columns.axis.dilation != 1;
    const int segments = window.rows.axis.kernel * (apart ? window.columns.axis.kernel : 1);
    PackedBytes w(draw.Bytes<std::int8_t>(window.Of(&rewire_embedded_axis::kernel, columns, in, false)),
                  columns, in * window.taps(), segments, "OI");
    CAPTURE(i, images, in, columns, window.rank, static_cast<int>(operands.result));
    const rewire_embedded_packed_conv_integer p = {
        images, in, columns, window.rows.axis, window.columns.axis, operands.Finish()};
    rewire_embedded_packed_conv_integer_bytes(&p, Data<std::uint8_t>(x), Data<std::int8_t>(w.packed),
                                              operands.XZero(), operands.WZero(), operands.Scale(),
                                              operands.WholeBias(), operands.Bias(), w.Workspace().data(),
                                              Data<std::uint8_t>(out));
    operands.Check("rewire.packed.conv_integer", With({{"channels", columns}}, window.Attributes(true)), x,
                   w.packed, w.sums, out);
  }
}

TEST_CASE("embedded integer depthwise convolution equals the stock kernel") {
  Draw draw(13);
  for (int i = 0; i < 400; ++i) {
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), channels = DrawIntegerColumns(draw);
    Operands operands(draw, channels);
    HostTensor x = operands.X(draw, window.Of(&rewire_embedded_axis::input, images, channels, true));
    HostTensor out = operands.Out(window.Of(&rewire_embedded_axis::output, images, channels, true));
    // [channels, rows of the window, positions of a row]
    const int rows = window.rows.axis.kernel, positions = window.columns.axis.kernel;
    PackedBytes w(draw.Bytes<std::int8_t>({channels, rows, positions}), channels, rows * positions,
                  rows == 1 ? 1 : positions, "OI");
    CAPTURE(i, images, channels, rows, positions, window.rank, static_cast<int>(operands.result));
    const rewire_embedded_packed_conv_integer p = {
        images, channels, channels, window.rows.axis, window.columns.axis, operands.Finish()};
    rewire_embedded_packed_depthwise_integer_bytes(
        &p, Data<std::uint8_t>(x), Data<std::int8_t>(w.packed), operands.XZero(), operands.WZero(),
        operands.Scale(), operands.WholeBias(), operands.Bias(), Data<std::uint8_t>(out));
    operands.Check("rewire.packed.depthwise_integer", With({{"channels", channels}}, window.Attributes(true)),
                   x, w.packed, w.sums, out);
  }
}

}  // namespace rewire::test::embedded
