// SPDX-License-Identifier: Apache-2.0
// Embedded pools, softmax, movement and quantization against the stock kernels.
#include "rewire/tests/kernels/embedded/cases.h"

namespace rewire::test::embedded {
namespace {

// A pool of floats or bytes, in either layout.
template <typename T, class F>
void CheckMaxPools(std::uint32_t seed, const F& pool) {
  Draw draw(seed);
  for (int i = 0; i < 150; ++i) {
    const bool pads = draw.Bool(), last = draw.Bool();
    const DrawnWindow window = DrawWindow(draw, pads);
    const int images = draw.Int(0, 2), channels = draw.Int(1, 5);
    const Shape shape = window.Of(&rewire_embedded_axis::input, images, channels, last);
    HostTensor x = draw.Filled<T>(shape, [&] {
      return draw.Int(0, 20) == 0 && std::is_floating_point_v<T> ? static_cast<T>(NAN)
                                                                 : static_cast<T>(draw.Int(1, 100));
    });
    HostTensor out = HostTensor::Empty<T>(window.Of(&rewire_embedded_axis::output, images, channels, last));
    HostTensor stock = out;
    CAPTURE(i, images, channels, last, window.rank);
    const rewire_embedded_pool p = {last ? images : images * channels, last ? channels : 1, window.rows.axis,
                                    window.columns.axis};
    pool(&p, Data<T>(x), Data<T>(out));
    REQUIRE(Run("rewire.max_pool", {&x, &stock},
                With({{"layout", last ? "NHWC" : "NCHW"}}, window.Attributes(true))) == "");
    CheckSame<T>(out, stock);
    if (pads) continue;
    // In place.
    pool(&p, Data<T>(x), Data<T>(x));
    const auto written = x.values<T>(), expected = out.values<T>();
    REQUIRE(
        (expected.empty() || std::memcmp(written.data(), expected.data(), expected.size() * sizeof(T)) == 0));
  }
}

}  // namespace

TEST_CASE("embedded max pools equal the stock kernel") {
  CheckMaxPools<float>(31, &rewire_embedded_max_pool_f32);
  CheckMaxPools<std::int8_t>(32, &rewire_embedded_max_pool_i8);
  CheckMaxPools<std::uint8_t>(33, &rewire_embedded_max_pool_u8);
}

TEST_CASE("embedded average pools equal the stock kernel") {
  Draw draw(34);
  for (int i = 0; i < 300; ++i) {
    const bool last = draw.Bool(), counts = draw.Bool();
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), channels = draw.Int(1, 5);
    HostTensor x = draw.Floats(window.Of(&rewire_embedded_axis::input, images, channels, last));
    HostTensor out =
        HostTensor::Empty<float>(window.Of(&rewire_embedded_axis::output, images, channels, last));
    HostTensor stock = out;
    CAPTURE(i, images, channels, last, counts, window.rank);
    const rewire_embedded_avg_pool p = {
        {last ? images : images * channels, last ? channels : 1, window.rows.axis, window.columns.axis},
        counts,
        window.rows.after,
        window.columns.after};
    rewire_embedded_avg_pool_f32(&p, Data<float>(x), Data<float>(out));
    REQUIRE(Run("rewire.avg_pool", {&x, &stock},
                With({{"layout", last ? "NHWC" : "NCHW"}, {"count_include_pad", counts ? 1 : 0}},
                     window.Attributes(true))) == "");
    CheckSame<float>(out, stock);
  }
}

TEST_CASE("embedded softmax equals the stock kernel, to rounding on long lines") {
  Draw draw(35);
  for (int i = 0; i < 200; ++i) {
    const int outer = draw.Of({0, 1, 2, 3, 9, 70}), count = draw.Of({1, 2, 10, 16, 17, 40, 100}),
              inner = draw.Of({1, 1, 3});
    HostTensor x = draw.Floats({outer, count, inner});
    for (float& value : x.elements<float>()) value *= 20;
    if (x.size() != 0 && draw.Int(0, 9) == 0) x.elements<float>()[0] = draw.Of({NAN, INFINITY, -INFINITY});
    CAPTURE(i, outer, count, inner);
    const rewire_embedded_along p = {outer, count, inner};
    HostTensor out = HostTensor::Empty<float>({outer, count, inner}), stock = out;
    rewire_embedded_softmax_f32(&p, Data<float>(x), Data<float>(out));
    REQUIRE(Run("rewire.softmax", {&x, &stock}, {{"axis", 1}}) == "");
    if (inner == 1 && count <= 16 && StockFuses())
      CheckSame<float>(out, stock);
    else
      CheckNear(out, stock, 16);
    rewire_embedded_log_softmax_f32(&p, Data<float>(x), Data<float>(out));
    REQUIRE(Run("rewire.log_softmax", {&x, &stock}, {{"axis", 1}}) == "");
    CheckNear(out, stock, 8, 8e-6F);
    HostTensor in_place = x;
    rewire_embedded_softmax_f32(&p, Data<float>(x), Data<float>(out));
    rewire_embedded_softmax_f32(&p, Data<float>(in_place), Data<float>(in_place));
    CheckSame<float>(in_place, out);
  }
}

namespace {

// Row-major steps of a shape.
std::vector<std::int32_t> Steps(const Shape& shape) {
  std::vector<std::int32_t> steps(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) steps[i - 1] = steps[i] * static_cast<std::int32_t>(shape[i]);
  return steps;
}

template <typename T>
void CheckMoves(std::uint32_t seed) {
  Draw draw(seed);
  for (int i = 0; i < 100; ++i) {
    const int rank = draw.Int(1, 4);
    Shape shape, turned, starts, ends, strides, sliced;
    std::vector<std::int64_t> perm, axes;
    for (int axis = 0; axis < rank; ++axis) {
      shape.push_back(draw.Int(1, 5));
      perm.insert(perm.begin() + draw.Int(0, axis), axis);
      axes.push_back(axis);
    }
    for (const std::int64_t axis : perm) turned.push_back(shape[static_cast<std::size_t>(axis)]);
    HostTensor x = draw.Bytes<T>(shape), out = HostTensor::Empty<T>(turned), stock = out;
    CAPTURE(i, rank, sizeof(T));
    const auto steps = Steps(shape), to_steps = Steps(turned);
    rewire_embedded_move p{rank, sizeof(T), {}, {}, {}};
    for (int axis = 0; axis < rank; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      p.dims[axis] = static_cast<std::int32_t>(turned[a]);
      p.from_steps[axis] = steps[static_cast<std::size_t>(perm[a])];
      p.to_steps[axis] = to_steps[a];
    }
    rewire_embedded_move_elements(&p, Data<T>(x), Data<T>(out));
    REQUIRE(Run("rewire.transpose", {&x, &stock}, {{"perm", perm}}) == "");
    CheckSame<std::uint8_t>(out, stock);

    // A slice, with steps of both signs.
    std::int64_t start = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      const int size = static_cast<int>(shape[a]), step = draw.Of({1, 1, 2, -1, -2});
      const int first = draw.Int(0, size - 1),
                count = draw.Int(1, 1 + (step > 0 ? size - 1 - first : first) / std::abs(step));
      starts.push_back(first);
      ends.push_back(first + (count - 1) * step + (step > 0 ? 1 : -1));
      if (ends.back() < 0) ends.back() = -1000;
      strides.push_back(step);
      sliced.push_back(count);
      p.dims[axis] = count;
      p.from_steps[axis] = steps[a] * step;
      start += first * steps[a];
    }
    const auto sliced_steps = Steps(sliced);
    std::copy(sliced_steps.begin(), sliced_steps.end(), p.to_steps);
    out = HostTensor::Empty<T>(sliced);
    stock = out;
    rewire_embedded_move_elements(&p, Data<T>(x) + start, Data<T>(out));
    REQUIRE(Run("rewire.slice", {&x, &stock},
                {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", strides}}) == "");
    CheckSame<std::uint8_t>(out, stock);
  }
}

}  // namespace

TEST_CASE("embedded moves equal the stock transpose and slice") {
  CheckMoves<std::int8_t>(41);
  CheckMoves<std::int16_t>(42);
  CheckMoves<std::int32_t>(43);
  CheckMoves<std::int64_t>(44);
}

namespace {

template <typename Q, class Quantize, class Dequantize>
void CheckQuantization(std::uint32_t seed, const Quantize& quantize, const Dequantize& dequantize) {
  Draw draw(seed);
  for (int i = 0; i < 150; ++i) {
    const int outer = draw.Int(0, 3), count = draw.Int(1, 4), inner = draw.Of({1, 3, 8, 20, 33});
    const bool per_axis = draw.Bool();
    const Shape shape = {outer, count, inner}, of_scale = per_axis ? Shape{count} : Shape{};
    HostTensor x = draw.Floats(shape), scale = draw.Filled<float>(of_scale, [&] {
      return draw.Of({0.01F, 0.0039F, 1.0F});
    });
    for (float& value : x.elements<float>()) {
      if (draw.Int(0, 3) == 0) value = std::round(value * 8) * 0.5F;  // halves between two integers
      if (draw.Int(0, 30) == 0) value = draw.Of({NAN, INFINITY, -INFINITY, 1e30F, -0.0F});
    }
    HostTensor zero = draw.Bool() ? draw.Bytes<Q>(of_scale) : HostTensor::Empty<Q>({0});
    const bool has_zero = zero.size() != 0;
    HostTensor out = HostTensor::Empty<Q>(shape), stock = out;
    CAPTURE(i, outer, count, inner, per_axis, has_zero);
    const rewire_embedded_along p = per_axis ? rewire_embedded_along{outer, count, inner}
                                             : rewire_embedded_along{1, 1, outer * count * inner};
    quantize(&p, Data<float>(x), Data<float>(scale), DataOrNull<Q>(zero), Data<Q>(out));
    if (!has_zero) zero = draw.Filled<Q>(of_scale, [] { return Q{0}; });
    REQUIRE(Run("rewire.quantize_linear", {&x, &scale, &zero, &stock}, {{"axis", 1}}) == "");
    CheckSame<Q>(out, stock);
    HostTensor real = HostTensor::Empty<float>(shape), stock_real = real;
    dequantize(&p, Data<Q>(out), Data<float>(scale), DataOrNull<Q>(zero), Data<float>(real));
    REQUIRE(Run("rewire.dequantize_linear", {&out, &scale, &zero, &stock_real}, {{"axis", 1}}) == "");
    CheckSame<float>(real, stock_real);
  }
}

template <typename Q, class Add>
void CheckAdd(std::uint32_t seed, const Add& add) {
  Draw draw(seed);
  const int low = std::is_signed_v<Q> ? -128 : 0;
  for (int i = 0; i < 100; ++i) {
    const int count = draw.Of({0, 1, 7, 40});
    HostTensor a = draw.Bytes<Q>({count}), b = draw.Bytes<Q>({count}), out = HostTensor::Empty<Q>({count}),
               stock = out;
    const int least = draw.Int(low, low + 100), most = draw.Int(least, low + 255);
    const float scales[] = {0.011F, 0.02F, draw.Of({0.02F, 0.005F, 1.0F})};
    const int zeros[] = {draw.Int(low, low + 255), draw.Int(low, low + 255), draw.Int(low, low + 255)};
    CAPTURE(i, count, least, most);
    const rewire_embedded_add_quantized p = {count,
                                             scales[0],
                                             scales[1],
                                             scales[2],
                                             zeros[0],
                                             zeros[1],
                                             static_cast<float>(zeros[2]),
                                             static_cast<float>(least),
                                             static_cast<float>(most)};
    add(&p, Data<Q>(a), Data<Q>(b), Data<Q>(out));
    REQUIRE(Run("rewire.add_quantized", {&a, &b, &stock},
                {{"a_scale", static_cast<double>(scales[0])},
                 {"b_scale", static_cast<double>(scales[1])},
                 {"scale", static_cast<double>(scales[2])},
                 {"a_zero", zeros[0]},
                 {"b_zero", zeros[1]},
                 {"zero", zeros[2]},
                 {"least", least},
                 {"most", most}}) == "");
    CheckSame<Q>(out, stock);
  }
}

}  // namespace

TEST_CASE("embedded quantization equals the stock kernels") {
  CheckQuantization<std::int8_t>(51, &rewire_embedded_quantize_linear_i8,
                                 &rewire_embedded_dequantize_linear_i8);
  CheckQuantization<std::uint8_t>(52, &rewire_embedded_quantize_linear_u8,
                                  &rewire_embedded_dequantize_linear_u8);
  CheckAdd<std::int8_t>(53, &rewire_embedded_add_quantized_i8);
  CheckAdd<std::uint8_t>(54, &rewire_embedded_add_quantized_u8);
  Draw draw(55);
  HostTensor x = draw.Bytes<std::int8_t>({300}), table = draw.Bytes<std::uint8_t>({256});
  HostTensor out = HostTensor::Empty<std::uint8_t>({300}), stock = out;
  rewire_embedded_map_bytes(300, Data<std::int8_t>(x), Data<std::uint8_t>(table), Data<std::uint8_t>(out));
  REQUIRE(Run("rewire.map_bytes", {&x, &table, &stock}) == "");
  CheckSame<std::uint8_t>(out, stock);
}

}  // namespace rewire::test::embedded
