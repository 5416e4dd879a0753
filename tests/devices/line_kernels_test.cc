// SPDX-License-Identifier: Apache-2.0
//
// Work along an axis on the device that REWIRE_TEST_DEVICE names, beside the CPU.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/devices/stock_call.h"

namespace rewire::test {
namespace {

void CheckTop(const Operand& x, std::vector<std::int64_t> out, const std::string& attributes) {
  CheckAlike({"top_k", attributes, {x}, {{x.dtype, out}, {"i64", out}}});
}

TEST_CASE("the largest elements are found on a device as on the CPU") {
  // Longer than a group, with many that are equal; along the last axis and another.
  for (const char* dtype : {"f32", "i64", "i32", "i16", "i8"}) {
    const Operand x{dtype, {3, 200, 5}, -20, 20};
    CheckTop(x, {3, 17, 5}, "axis = 1");
    CheckTop(x, {3, 200, 2}, "largest = 0");
    CheckTop(x, {3, 200, 5}, "axis = 1, largest = 0");
    CheckTop({dtype, {1000}, -100, 100}, {300}, "");
  }
  for (const char* dtype : {"u8", "u16"}) CheckTop({dtype, {2, 300}, 0, 255}, {2, 70}, "");
  // Numbers at the ends of their range.
  CheckTop({"i64", {400}, -9e18, 9e18}, {30}, "");
  CheckTop({"i32", {400}, -2147483648.0, 2147483647}, {30}, "largest = 0");
  CheckTop({"u16", {400}, 0, 65535}, {399}, "");
  // NaN is above all, infinities and both zeros are told apart or not.
  for (const char* largest : {"0", "1"}) {
    for (const std::int64_t k : {1, 40, 90, 150}) {
      CheckTop({"f32", {150}, -4, 4, true}, {k}, "largest = " + std::string(largest));
    }
  }
  CheckTop({"f32", {4, 0, 3}}, {4, 0, 3}, "axis = 1");
  CheckTop({"f32", {4, 9}}, {4, 0}, "");
}

TEST_CASE("running sums and products are made on a device as on the CPU") {
  for (const char* dtype : {"f32", "i64", "i32"}) {
    const Operand x{dtype, {3, 130, 2}, 1, 3};
    for (const char* attributes : {"", "exclusive = 1", "reverse = 1", "exclusive = 1, reverse = 1"}) {
      for (const double axis : {0, 1, -1}) {
        const Operand along{axis < 0 ? "i32" : "i64", {}, axis, axis};
        CheckAlike({"cumsum", attributes, {x, along}, {{dtype, x.shape}}});
      }
      CheckAlike({"cumprod", attributes, {{dtype, {2, 9}, 1, 3}, {"i64", {1}, 1, 1}}, {{dtype, {2, 9}}}});
    }
  }
  // They wrap.
  CheckAlike({"cumsum", "", {{"i32", {70}, 1e9, 2e9}, {"i64", {}, 0, 0}}, {{"i32", {70}}}});
}

TEST_CASE("a bias without elements is left out on a device as on the CPU") {
  for (const std::int64_t elements : {0, 5}) {
    CheckAlike({"layer_norm", "", {{"f32", {3, 5}}, {"f32", {5}}, {"f32", {elements}}}, {{"f32", {3, 5}}}});
  }
}

}  // namespace
}  // namespace rewire::test
