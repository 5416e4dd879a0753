// SPDX-License-Identifier: Apache-2.0
//
// Integers and bools on the device that REWIRE_TEST_DEVICE names, beside the CPU.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/devices/stock_call.h"

namespace rewire::test {
namespace {

struct Range {
  const char* dtype;
  double low, high;
};
// Wide enough that sums and products wrap.
constexpr Range kRanges[] = {{"i64", -9e18, 9e18},   {"i32", -2147483648.0, 2147483647},
                             {"i16", -32768, 32767}, {"i8", -128, 127},
                             {"u16", 0, 65535},      {"u8", 0, 255}};

Operand Integers(const Range& range, std::vector<std::int64_t> shape) {
  return {range.dtype, std::move(shape), range.low, range.high};
}

TEST_CASE("integers are computed on a device as on the CPU") {
  for (const Range& range : kRanges) {
    const Operand a = Integers(range, {3, 1, 70}), b = Integers(range, {5, 1});
    // Small ones, with 0 and -1 among the divisors.
    const double least = range.low < 0 ? -3 : 0;
    const Operand few{range.dtype, {5, 1}, least, 3};
    const Operand out{range.dtype, {3, 5, 70}};
    for (const char* kernel : {"add", "sub", "mul", "min", "max", "bit_and", "bit_or", "bit_xor"}) {
      CheckAlike({kernel, "", {a, b}, {out}});
    }
    for (const char* kernel : {"div", "mod", "fmod", "pow", "prelu"})
      CheckAlike({kernel, "", {a, few}, {out}});
    for (const char* kernel : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
      CheckAlike({kernel, "", {{range.dtype, {3, 1, 70}, least, 3}, few}, {{"bool", {3, 5, 70}}}});
    }
    for (const char* kernel : {"abs", "sign", "bit_not"})
      CheckAlike({kernel, "", {a}, {{range.dtype, a.shape}}});
    CheckAlike({"clip", "min = -7.5, max = 1e30", {a}, {{range.dtype, a.shape}}});
    CheckAlike({"where", "", {{"bool", {5, 70}, 0, 2}, a, b}, {out}});
    if (range.low == 0 || range.dtype == std::string("u16")) continue;
    for (const char* kernel : {"neg", "relu"}) CheckAlike({kernel, "", {a}, {{range.dtype, a.shape}}});
  }
}

TEST_CASE("bools and kinds of floats are told on a device as on the CPU") {
  const Operand a{"bool", {3, 1, 70}, 0, 2}, b{"bool", {5, 1}, 0, 2}, out{"bool", {3, 5, 70}};
  for (const char* kernel : {"and", "or", "xor", "equal", "not_equal"})
    CheckAlike({kernel, "", {a, b}, {out}});
  CheckAlike({"not", "", {a}, {{"bool", a.shape}}});
  CheckAlike({"where", "", {out, a, b}, {out}});
  const Operand x{"f32", {130}, -4, 4, true};
  CheckAlike({"isnan", "", {x}, {{"bool", {130}}}});
  CheckAlike({"isinf", "", {x}, {{"bool", {130}}}});
  CheckAlike({"isinf", "detect_negative = 0", {x}, {{"bool", {130}}}});
  CheckAlike({"isinf", "detect_positive = 0", {x}, {{"bool", {130}}}});
  CheckAlike({"not_equal", "", {x, x}, {{"bool", {130}}}});
  for (const char* kernel : {"mod", "fmod"}) {
    CheckAlike({kernel, "", {{"f32", {130}, -9, 9}, {"f32", {130}, -3, 4}}, {{"f32", {130}}}});
  }
}

TEST_CASE("integers are cast on a device as on the CPU") {
  for (const Range& from : kRanges) {
    for (const Range& to : kRanges) CheckAlike({"cast", "", {Integers(from, {99})}, {{to.dtype, {99}}}});
    CheckAlike({"cast", "", {Integers(from, {99})}, {{"bool", {99}}}});
    CheckAlike({"cast", "", {{"bool", {99}, 0, 2}}, {{from.dtype, {99}}}});
    CheckAlike({"cast", "", {Integers(from, {99})}, {{"f32", {99}}}});
    CheckAlike(
        {"cast", "", {{"f32", {99}, 2 * from.low - 10, 2 * from.high + 10, true}}, {{from.dtype, {99}}}});
  }
}

TEST_CASE("integers are reduced on a device as on the CPU") {
  for (const Range& range : {kRanges[0], kRanges[1], kRanges[3], kRanges[5]}) {
    const Operand x = Integers(range, {3, 7, 90});
    for (const char* kernel : {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min",
                               "reduce_sum_square", "reduce_l1"}) {
      // A group for each row, a thread for each result, and nothing at all.
      CheckAlike({kernel, "axes = [2]", {x}, {{range.dtype, {3, 7, 1}}}});
      CheckAlike({kernel, "axes = [0, 2], keepdims = 0", {x}, {{range.dtype, {7}}}});
      CheckAlike({kernel, "axes = [1]", {{range.dtype, {2, 0, 3}}}, {{range.dtype, {2, 1, 3}}}});
    }
    for (const char* kernel : {"argmax", "argmin"}) {
      const Operand few{range.dtype, {3, 7, 90}, range.low < 0 ? -2.0 : 0.0, 4};
      CheckAlike({kernel, "axis = 1", {few}, {{"i64", {3, 1, 90}}}});
      CheckAlike({kernel, "axis = -1, keepdims = 0, select_last_index = 1", {few}, {{"i32", {3, 7}}}});
    }
  }
  CheckAlike({"argmax", "axis = 1", {{"f32", {3, 40}, -4, 4, true}}, {{"i32", {3, 1}}}});
}

}  // namespace
}  // namespace rewire::test
