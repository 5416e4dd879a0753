// SPDX-License-Identifier: Apache-2.0
// Conversion from and to floats of 8 and 4 bits and integers of 4 and 2, and of bits as they are.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

using F = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr DLDataType kE4M3Fn{10, 8, 1}, kE4M3FnUz{11, 8, 1}, kE5M2{12, 8, 1}, kE5M2FnUz{13, 8, 1},
    kE8M0{14, 8, 1}, kE2M1{17, 4, 1}, kI4{kDLInt, 4, 1}, kU4{kDLUInt, 4, 1}, kI2{kDLInt, 2, 1},
    kU2{kDLUInt, 2, 1};

HostTensor Narrow(DLDataType dtype, const Bytes& bytes) {
  HostTensor tensor = HostTensor::Of<std::uint8_t>({static_cast<std::int64_t>(bytes.size())}, bytes);
  tensor.SetDType(dtype);
  return tensor;
}

F Decoded(DLDataType dtype, const Bytes& bytes) {
  HostTensor x = Narrow(dtype, bytes), out = HostTensor::Empty<float>(x.shape());
  REQUIRE(Run("rewire.cast_narrow", {&x, &out}) == "");
  return out.values<float>();
}

Bytes Encoded(DLDataType dtype, const F& values, bool saturate = true, const char* round_mode = "up") {
  HostTensor x = HostTensor::Of<float>({static_cast<std::int64_t>(values.size())}, values);
  HostTensor out = Narrow(dtype, Bytes(values.size(), 0xA5));
  REQUIRE(Run("rewire.cast_narrow", {&x, &out},
              {{"saturate", static_cast<int>(saturate)}, {"round_mode", round_mode}}) == "");
  return out.values<std::uint8_t>();
}

TEST_CASE("cast_narrow: the values of each format") {
  CHECK(Decoded(kE4M3Fn, {0x00, 0x01, 0x08, 0x38, 0x7E, 0xFE}) == F{0, 0x1p-9f, 0x1p-6f, 1, 448, -448});
  CHECK(std::isnan(Decoded(kE4M3Fn, {0x7F})[0]));
  CHECK(Decoded(kE4M3FnUz, {0x01, 0x40, 0x7F}) == F{0x1p-10f, 1, 240});
  CHECK(std::isnan(Decoded(kE4M3FnUz, {0x80})[0]));
  CHECK(Decoded(kE5M2, {0x01, 0x3C, 0x7B, 0x7C, 0xFC}) == F{0x1p-16f, 1, 57344, kInfinity, -kInfinity});
  for (const std::uint8_t code : {0x7D, 0x7E, 0x7F, 0xFF}) CHECK(std::isnan(Decoded(kE5M2, {code})[0]));
  CHECK(Decoded(kE5M2FnUz, {0x01, 0x40, 0x7F}) == F{0x1p-17f, 1, 57344});
  CHECK(std::isnan(Decoded(kE5M2FnUz, {0x80})[0]));
  CHECK(Decoded(kE8M0, {0, 127, 254}) == F{0x1p-127f, 1, 0x1p127f});
  CHECK(std::isnan(Decoded(kE8M0, {255})[0]));
  CHECK(Decoded(kE2M1, {0, 1, 2, 3, 4, 5, 6, 7, 9}) == F{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.5f});
  CHECK(Decoded(kI4, {7, 8, 15, 0xF8}) == F{7, -8, -1, -8});
  CHECK(Decoded(kU4, {7, 8, 15, 0xF8}) == F{7, 8, 15, 8});
  CHECK(Decoded(kI2, {1, 2, 3}) == F{1, -2, -1});
  CHECK(Decoded(kU2, {1, 2, 3}) == F{1, 2, 3});
}

TEST_CASE("cast_narrow: every value becomes itself again") {
  for (const DLDataType dtype : {kE4M3Fn, kE4M3FnUz, kE5M2, kE5M2FnUz, kE8M0, kE2M1, kI4, kU4, kI2, kU2}) {
    CAPTURE(int{dtype.code}, int{dtype.bits});
    Bytes codes;
    for (int i = 0; i < 1 << dtype.bits; ++i) codes.push_back(static_cast<std::uint8_t>(i));
    const F values = Decoded(dtype, codes);
    const F again = Decoded(dtype, Encoded(dtype, values, false));
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(i);
      CHECK((values[i] == again[i] || (std::isnan(values[i]) && std::isnan(again[i]))));
    }
  }
}

TEST_CASE("cast_narrow: rounding and what is too large") {
  // Halfway between two values: to the even one.
  CHECK(Decoded(kE4M3Fn, Encoded(kE4M3Fn, {17, 19, 0x1p-10f, 0x1.8p-9f})) == F{16, 20, 0, 0x1p-8f});
  CHECK(Encoded(kE4M3Fn, {464, 465, kInfinity, -kInfinity}) == Bytes{0x7E, 0x7E, 0x7E, 0xFE});
  CHECK(Encoded(kE4M3Fn, {464, 465, kInfinity, kNaN}, false) == Bytes{0x7E, 0x7F, 0x7F, 0x7F});
  CHECK(Encoded(kE5M2, {61440, kInfinity}) == Bytes{0x7B, 0x7B});
  CHECK(Encoded(kE5M2, {61440, -kInfinity}, false) == Bytes{0x7C, 0xFC});
  CHECK(Encoded(kE4M3FnUz, {-0.0f, 300}, false) == Bytes{0x00, 0x80});
  CHECK(Encoded(kE2M1, {5, 7, -100}) == Bytes{0x06, 0x07, 0x0F});
  CHECK(Encoded(kE8M0, {1.5f, 1, 0x1.8p127f}) == Bytes{128, 127, 254});
  CHECK(Encoded(kE8M0, {1.5f, 1.9f}, true, "down") == Bytes{127, 127});
  CHECK(Encoded(kE8M0, {1.25f, 1.75f}, true, "nearest") == Bytes{127, 128});
  CHECK(Encoded(kI4, {7.9f, -8.9f, 9}) == Bytes{7, 0xF8, 0xF9});
  CHECK(Encoded(kU2, {3.5f, 4, -1}) == Bytes{3, 0, 3});
}

TEST_CASE("cast_narrow: between other types") {
  HostTensor x = HostTensor::Of<std::int64_t>({4}, {-9, 7, 16, 3});
  HostTensor four = Narrow(kI4, Bytes(4, 0)), eight = Narrow(kE5M2, Bytes(4, 0));
  REQUIRE(Run("rewire.cast_narrow", {&x, &four}) == "");
  CHECK(four.values<std::uint8_t>() == Bytes{7, 7, 0, 3});
  REQUIRE(Run("rewire.cast_narrow", {&four, &eight}) == "");
  CHECK(Decoded(kE5M2, eight.values<std::uint8_t>()) == F{7, 7, 0, 3});
  HostTensor truth = HostTensor::Empty<bool>({4}), whole = HostTensor::Empty<std::int32_t>({4});
  REQUIRE(Run("rewire.cast_narrow", {&four, &truth}) == "");
  CHECK(truth.values<std::uint8_t>() == Bytes{1, 1, 0, 1});
  REQUIRE(Run("rewire.cast_narrow", {&four, &whole}) == "");
  CHECK(whole.values<std::int32_t>() == std::vector<std::int32_t>{7, 7, 0, 3});
  CHECK(Run("rewire.cast_narrow", {&x, &whole}) ==
        "TypeError: rewire.cast_narrow: x has dtype i64 and out i32, expected a float of 8 or 4 bits or an "
        "integer of 4 or 2 in one of them");
}

// The results of quantize_linear, each value by its own scale, and what dequantize_linear makes of them
// again.
struct Quantized {
  Bytes codes;
  F values;
};

Quantized Quantize(DLDataType dtype, const F& values, const F& scales, const Bytes& zeros,
                   bool saturate = true) {
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  HostTensor x = HostTensor::Of<float>({count}, values), scale = HostTensor::Of<float>({count}, scales);
  HostTensor zero = Narrow(dtype, zeros), out = Narrow(dtype, Bytes(values.size(), 0xA5));
  HostTensor back = HostTensor::Empty<float>({count});
  REQUIRE(Run("rewire.quantize_linear", {&x, &scale, &zero, &out},
              {{"axis", 0}, {"saturate", static_cast<int>(saturate)}}) == "");
  REQUIRE(Run("rewire.dequantize_linear", {&out, &scale, &zero, &back}, {{"axis", 0}}) == "");
  return {out.values<std::uint8_t>(), back.values<float>()};
}

TEST_CASE("quantization to integers of 4 and 2 bits rounds, shifts and stays in range") {
  const Quantized i4 = Quantize(kI4, {3, 5, 100, -100, kNaN}, {2, 2, 1, 1, 1}, {1, 0xF, 0, 3, 0});
  CHECK(i4.codes == Bytes{3, 1, 7, 0xF8, 0xF8});  // 1.5 and 2.5 go to 2, the even one
  CHECK(i4.values == F{4, 4, 7, -11, -8});
  const Quantized u4 = Quantize(kU4, {3, -3, 100}, {1, 1, 4}, {8, 8, 15});
  CHECK(u4.codes == Bytes{11, 5, 15});
  CHECK(u4.values == F{3, -3, 0});
  CHECK(Quantize(kI2, {1, 2, -2, -3}, {1, 1, 1, 1}, {0, 0, 0, 0}).codes == Bytes{1, 1, 0xFE, 0xFE});
  CHECK(Quantize(kU2, {3, 4, -1, 1}, {1, 1, 1, 1}, {0, 0, 0, 2}).codes == Bytes{3, 3, 0, 3});
}

TEST_CASE("quantization to floats of 8 and 4 bits rounds as a cast does") {
  const Bytes none(3, 0);
  CHECK(Quantize(kE4M3Fn, {34, 1000, -1000}, {2, 2, 2}, none).codes == Bytes{0x58, 0x7E, 0xFE});
  CHECK(Quantize(kE4M3Fn, {34, 1000, -1000}, {2, 2, 2}, none).values == F{32, 896, -896});
  CHECK(Quantize(kE4M3Fn, {34, 1000, -1000}, {2, 2, 2}, none, false).codes == Bytes{0x58, 0x7F, 0xFF});
  CHECK(Quantize(kE5M2, {1, 70000, -70000}, {1, 1, 1}, none, false).codes == Bytes{0x3C, 0x7C, 0xFC});
  CHECK(Quantize(kE2M1, {5, 14, -0.25f}, {2, 2, 0.5f}, none).codes == Bytes{0x04, 0x07, 0x09});
}

TEST_CASE("bit_cast keeps the bits") {
  HostTensor x = HostTensor::Of<float>({2}, {1, -0.0f});
  HostTensor out = HostTensor::Empty<std::uint32_t>({2}), small = HostTensor::Empty<std::int16_t>({2});
  REQUIRE(Run("rewire.bit_cast", {&x, &out}) == "");
  CHECK(out.values<std::uint32_t>() == std::vector<std::uint32_t>{0x3F800000, 0x80000000});
  CHECK(Run("rewire.bit_cast", {&x, &small}) ==
        "TypeError: rewire.bit_cast: out has dtype i16, expected elements as large as those of x, f32");
}

}  // namespace
}  // namespace rewire::test
