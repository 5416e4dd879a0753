// SPDX-License-Identifier: Apache-2.0
//
// Elements by index, and decision trees, on the device that REWIRE_TEST_DEVICE names, beside the CPU.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/devices/stock_call.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

Operand Whole(const char* dtype, std::vector<std::int64_t> shape, double low, double high) {
  return {dtype, std::move(shape), low, high};
}
Operand OnHost(const char* dtype, std::vector<std::int64_t> shape, double low, double high) {
  return {dtype, std::move(shape), low, high, false, true};
}

TEST_CASE("elements are gathered by index on a device as on the CPU") {
  for (const char* dtype : {"f32", "i64", "u8", "i16"}) {
    for (const char* index : {"i64", "i32"}) {
      const Operand x = Whole(dtype, {3, 5, 4}, 0, 90);
      CheckAlike({"gather", "axis = 1", {x, {index, {2, 7}, -5.9, 4.9}}, {{dtype, {3, 2, 7, 4}}}});
      CheckAlike({"gather", "axis = -1", {x, {index, {}, -2, -2}}, {{dtype, {3, 5}}}});
      CheckAlike({"gather_elements", "axis = 1", {x, {index, {2, 9, 4}, -5.9, 4.9}}, {{dtype, {2, 9, 4}}}});
      CheckAlike({"gather_elements", "", {x, {index, {6, 3, 2}, -3.9, 2.9}}, {{dtype, {6, 3, 2}}}});
      CheckAlike({"gather_nd", "", {x, {index, {7, 2}, -3.9, 2.9}}, {{dtype, {7, 4}}}});
      CheckAlike({"gather_nd", "batch_dims = 1", {x, {index, {3, 6, 1}, -5.9, 4.9}}, {{dtype, {3, 6, 4}}}});
      CheckAlike({"gather_nd", "", {x, {index, {2, 5, 3}, -3.9, 2.9}}, {{dtype, {2, 5}}}});
    }
  }
  const Operand x{"f32", {4, 0}};
  CheckAlike({"gather", "", {x, {"i64", {3}, 0, 2}}, {{"f32", {3, 0}}}});
  CheckAlike({"gather_nd", "", {x, {"i64", {3, 1}, 0, 2}}, {{"f32", {3, 0}}}});
}

TEST_CASE("indices are marked, steps reversed and triangles kept on a device as on the CPU") {
  for (const char* dtype : {"f32", "i64", "u8"}) {
    const Operand off_on = Whole(dtype, {2}, 3, 60);
    for (const char* index : {"i64", "i32", "i8"}) {
      CheckAlike({"one_hot", "axis = 1", {{index, {4, 3}, -9, 9}, off_on}, {{dtype, {4, 6, 3}}}});
      CheckAlike({"one_hot", "", {{index, {5}, -9, 9}, off_on}, {{dtype, {5, 6}}}});
    }
    CheckAlike({"one_hot", "", {{"u8", {7}, 0, 9}, off_on}, {{dtype, {7, 6}}}});
    const Operand x = Whole(dtype, {6, 5, 3}, 0, 90);
    CheckAlike({"reverse_sequence", "", {x, {"i64", {5}, 0, 6.9}}, {x}});
    CheckAlike({"reverse_sequence", "batch_axis = 0, time_axis = 1", {x, {"i64", {6}, 0, 5.9}}, {x}});
    for (const char* upper : {"upper = 1", "upper = 0"}) {
      CheckAlike({"trilu", upper, {x}, {x}});
      for (const double k : {-9, -2, 1, 2, 9})
        CheckAlike({"trilu", upper, {x, OnHost("i64", {}, k, k)}, {x}});
    }
  }
}

TEST_CASE("tensors are cut and padded by numbers of the host on a device as on the CPU") {
  const Operand x{"f32", {6, 5, 4}};
  CheckAlike(
      {"dynamic_slice", "", {x, OnHost("i64", {2}, 1, 1), OnHost("i64", {2}, 3, 3)}, {{"f32", {2, 2, 4}}}});
  CheckAlike({"dynamic_slice",
              "",
              {x, OnHost("i32", {1}, -1, -1), OnHost("i32", {1}, -9, -9), OnHost("i32", {1}, 1, 1),
               OnHost("i32", {1}, -2, -2)},
              {{"f32", {6, 3, 4}}}});
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const std::string attributes = "mode = \"" + std::string(mode) + "\"";
    CheckAlike({"dynamic_pad", attributes, {x, OnHost("i64", {6}, 2, 2)}, {{"f32", {10, 9, 8}}}});
    CheckAlike({"dynamic_pad",
                attributes,
                {x, OnHost("i64", {2}, 3, 3), {"f32", {}, 7, 7}, OnHost("i64", {1}, -2, -2)},
                {{"f32", {6, 11, 4}}}});
  }
}

TEST_CASE("updates are made by index on a device as on the CPU, several of one place in order") {
  for (const char* dtype : {"f32", "i64", "i32", "i8", "u8"}) {
    const Operand x = Whole(dtype, {5, 6, 3}, 0, 90);
    for (const char* reduction : {"none", "add", "mul", "min", "max"}) {
      const std::string attribute = "reduction = \"" + std::string(reduction) + "\"";
      const Operand lines = Whole(dtype, {4, 13, 3}, 0, 5);
      CheckAlike(
          {"scatter_elements", attribute + ", axis = 1", {x, {"i64", lines.shape, -6.9, 5.9}, lines}, {x}});
      // Few lines with many updates, which several threads share.
      const Operand line = Whole(dtype, {700}, 0, 3);
      CheckAlike({"scatter_elements",
                  attribute,
                  {Whole(dtype, {40}, 0, 9), {"i32", {700}, -40.9, 39.9}, line},
                  {{dtype, {40}}}});
      CheckAlike({"scatter_nd", attribute, {x, {"i32", {9, 2}, -5.9, 4.9}, Whole(dtype, {9, 3}, 0, 5)}, {x}});
      CheckAlike(
          {"scatter_nd", attribute, {x, {"i64", {300, 3}, -3.9, 2.9}, Whole(dtype, {300}, 0, 3)}, {x}});
      CheckAlike({"scatter_nd", attribute, {x, {"i64", {2, 1}, -4, 3}, Whole(dtype, {2, 6, 3}, 0, 5)}, {x}});
    }
  }
  const Operand special{"f32", {60}, -4, 4, true};
  for (const char* reduction : {"\"none\"", "\"min\"", "\"max\""}) {
    CheckAlike({"scatter_elements",
                "reduction = " + std::string(reduction),
                {{"f32", {9}}, {"i64", {60}, 0, 8.9}, special},
                {{"f32", {9}}}});
  }
  CheckAlike(
      {"scatter_elements", "", {{"i16", {9}, 0, 9}, {"i64", {4}, 0, 8}, {"i16", {4}, 0, 9}}, {{"i16", {9}}}});
  CheckAlike({"scatter_nd", "", {{"f32", {4, 2}}, {"i64", {0, 1}}, {"f32", {0, 2}}}, {{"f32", {4, 2}}}});
}

TEST_CASE("indices that are out of range do not leave a tensor on a device") {
  // The elements that are read are held in x; the first and the last of 4 rows are 0 and 3 of these.
  const Operand x = Whole("i64", {4}, 0, 4);
  const auto rows = ResultsOf({"gather", "", {x, Whole("i64", {4}, 0, 3.9)}, {x}}, DeviceName())[0];
  for (const double far : {-9e18, -1e9, 1e9, 9e18}) {
    const double expected = ResultsOf(
        {"gather", "", {x, {"i64", {1}, far < 0 ? -4.0 : 3.0, far < 0 ? -4.0 : 3.0}}, {{"i64", {1}}}},
        "")[0][0];
    const Operand index{"i64", {1}, far, far};
    CHECK(ResultsOf({"gather", "", {x, index}, {{"i64", {1}}}}, DeviceName())[0][0] == expected);
    CHECK(ResultsOf({"gather_elements", "", {x, index}, {{"i64", {1}}}}, DeviceName())[0][0] == expected);
    const Operand tuple{"i64", {1, 1}, far, far};
    CHECK(ResultsOf({"gather_nd", "", {x, tuple}, {{"i64", {1}}}}, DeviceName())[0][0] == expected);
    // An update is left out.
    const Operand update{"i64", {1}, 77, 77};
    const auto whole = ResultsOf({"copy", "", {x}, {x}}, "")[0];
    CHECK(ResultsOf({"scatter_elements", "", {x, index, update}, {x}}, DeviceName())[0] == whole);
    CHECK(ResultsOf({"scatter_nd", "", {x, tuple, update}, {x}}, DeviceName())[0] == whole);
    CHECK(ResultsOf({"scatter_nd", "reduction = \"add\"", {x, tuple, update}, {x}}, DeviceName())[0] ==
          whole);
  }
  const Operand steps = Whole("i64", {3, 1}, 0, 9);
  const auto reversed = [&](double length) {
    return ResultsOf({"reverse_sequence", "", {steps, {"i64", {1}, length, length}}, {steps}},
                     DeviceName())[0];
  };
  CHECK(reversed(9e18) == reversed(3));
  CHECK(reversed(-9e18) == reversed(0));
  CHECK(rows.size() == 4);
}

Operand Listed(const char* dtype, std::vector<std::int64_t> shape, std::vector<double> numbers) {
  return {dtype, std::move(shape), 0, 0, false, false, std::move(numbers)};
}

TEST_CASE("decision trees give on a device what they give on the CPU") {
  // Two trees of two nodes each, which compare in every way in turn; two leaves have several targets.
  for (int mode = 0; mode < 6; ++mode) {
    for (const int nan : {0, 8}) {
      const double m = mode + nan;
      for (const char* aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
        CheckAlike({"tree_ensemble",
                    "aggregate = \"" + std::string(aggregate) + "\"",
                    {{"f32", {90, 2}, -2, 2, true},
                     Listed("i32", {4, 4}, {0, m, 1, -1, 1, m, -2, -3, 1, m, -4, 3, 0, m, -5, -1}),
                     Listed("f32", {4}, {0, 1, -1, 0.5}),
                     Listed("i32", {3}, {0, 2, -2}),
                     Listed("i32", {6}, {0, 1, 2, 4, 6, 7}),
                     Listed("i32", {7}, {0, 2, 0, 1, 2, 2, 0}),
                     Listed("f32", {7}, {1, -2, 3, 4, -5, 6, 7.5}),
                     Listed("f32", {4}, {10, 20, 30, 40})},
                    {{"f32", {90, 4}}}});
      }
    }
  }
}

// A call of tree_ensemble whose numbers are all alike within a tensor.
StockCall Trees(double child, double feature, double root, double leaf, double target) {
  return {"tree_ensemble",
          "",
          {{"f32", {3, 2}},
           {"i32", {2, 4}, std::min(child, feature), std::max(child, feature)},
           {"f32", {2}},
           {"i32", {3}, root, root},
           {"i32", {3}, leaf, leaf},
           {"i32", {2}, target, target},
           {"f32", {2}},
           {"f32", {2}, 5, 5}},
          {{"f32", {3, 2}}}};
}

TEST_CASE("trees that name what is not there add nothing on a device") {
  const std::vector<double> nothing(6, 5);
  for (const double wrong : {-2e9, -7.0, 2.0, 2e9}) {
    CHECK(ResultsOf(Trees(0, 0, wrong, 0, 0), DeviceName())[0] == nothing);
    CHECK(ResultsOf(Trees(wrong, wrong, 0, 0, 0), DeviceName())[0] == nothing);
    CHECK(ResultsOf(Trees(0, 0, -1, wrong, 0), DeviceName())[0] == nothing);
    CHECK(ResultsOf(Trees(0, 0, -1, 0, wrong), DeviceName())[0] == nothing);
  }
  // A walk that does not go forward ends.
  CHECK(ResultsOf(Trees(0, 0, 0, 0, 0), DeviceName())[0] == nothing);
}

}  // namespace
}  // namespace rewire::test
