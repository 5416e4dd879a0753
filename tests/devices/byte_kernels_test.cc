// SPDX-License-Identifier: Apache-2.0
//
// Sums and pools of 8-bit integers on the device that REWIRE_TEST_DEVICE names, beside the CPU, to the bit;
// and pools of floats, which find their windows by the same code.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/devices/stock_call.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

struct Bytes {
  const char* dtype;
  double low, high;
};
constexpr Bytes kBytes[] = {{"u8", 0, 255}, {"i8", -128, 127}};

// Each number of the type in each line, and in each column.
Operand EveryPair(const Bytes& bytes, bool rows) {
  Operand operand{bytes.dtype, {256, 256}};
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < 256; ++j) operand.numbers.push_back(bytes.low + (rows ? i : j));
  }
  return operand;
}

TEST_CASE("sums of quantized bytes are rounded on a device as on the CPU, whatever is added") {
  const char* const attributes[] = {
      // Half of the sums lie between two integers, if each step is rounded.
      "a_scale = 0.1, b_scale = 0.1, scale = 0.2",
      "a_scale = 0.3, b_scale = 0.7, scale = 0.017, a_zero = 100, b_zero = -3, zero = 77",
      "a_scale = 0.037, b_scale = 0.0123, scale = 0.081, a_zero = -128, b_zero = 255, zero = -5",
      "a_scale = 1, b_scale = 1e-3, scale = 2, a_zero = 3, zero = 127, least = -20, most = 90",
      // Infinite ones, and those that are no numbers.
      "a_scale = 1, b_scale = 1, scale = 0, a_zero = 5, b_zero = 5",
      "a_scale = 3e38, b_scale = 3e38, scale = 1e-30, b_zero = 9",
  };
  for (const Bytes& bytes : kBytes) {
    const Operand a = EveryPair(bytes, true), b = EveryPair(bytes, false), out{bytes.dtype, {256, 256}};
    for (const char* each : attributes) CheckAlike({"add_quantized", each, {a, b}, {out}});
    for (const std::int64_t size : {0, 1, 3, 65}) {
      const Operand x{bytes.dtype, {size}, bytes.low, bytes.high}, sum{bytes.dtype, {size}};
      CheckAlike({"add_quantized", attributes[1], {x, x}, {sum}});
    }
  }
}

TEST_CASE("sums of quantized bytes give what is known") {
  const auto sums = [](const char* dtype, std::vector<double> a, std::vector<double> b,
                       const std::string& attributes) {
    const Operand x{dtype, {4}, 0, 0, false, false, std::move(a)};
    const Operand y{dtype, {4}, 0, 0, false, false, std::move(b)};
    return ResultsOf({"add_quantized", attributes, {x, y}, {{dtype, {4}}}}, DeviceName())[0];
  };
  // (a - 2) / 2 + (b + 1) / 4: 0.5, 1.5, 300, -300.
  const std::string scales = "a_scale = 0.5, b_scale = 0.25, a_zero = 2, b_zero = -1, ";
  CHECK(sums("i8", {3, 2, 127, -128}, {-1, 5, 127, -128}, scales + "scale = 1") ==
        std::vector<double>{0, 2, 94, -97});
  CHECK(sums("i8", {3, 2, 127, -128}, {-1, 5, 127, -128}, scales + "scale = 0.5, zero = -10") ==
        std::vector<double>{-9, -7, 127, -128});
  CHECK(sums("u8", {0, 9, 250, 100}, {0, 1, 250, 3}, "a_scale = 1, b_scale = 1, scale = 1, a_zero = 5") ==
        std::vector<double>{0, 5, 255, 98});
  CHECK(sums("u8", {0, 9, 250, 100}, {0, 1, 250, 3},
             "a_scale = 1, b_scale = 1, scale = 1, least = 7, most = 99") ==
        std::vector<double>{7, 10, 99, 99});
}

TEST_CASE("bytes are looked up on a device as on the CPU") {
  for (const Bytes& from : kBytes) {
    for (const Bytes& to : kBytes) {
      const Operand table{to.dtype, {256}, to.low, to.high};
      CheckAlike({"map_bytes", "", {EveryPair(from, true), table}, {{to.dtype, {256, 256}}}});
      CheckAlike({"map_bytes",
                  "",
                  {{from.dtype, {3, 1, 67}, from.low, from.high}, table},
                  {{to.dtype, {3, 1, 67}}}});
      CheckAlike({"map_bytes", "", {{from.dtype, {0}}, table}, {{to.dtype, {0}}}});
    }
  }
  const Operand x{"i8", {3}, 0, 0, false, false, {0, -1, 127}};
  Operand table{"u8", {256}, 0, 0, false, false, {}};
  for (int i = 0; i < 256; ++i) table.numbers.push_back(255 - i);
  CHECK(ResultsOf({"map_bytes", "", {x, table}, {{"u8", {3}}}}, DeviceName())[0] ==
        std::vector<double>{255, 0, 128});
}

struct Pool {
  const char* attributes;
  std::vector<std::int64_t> x, out;
};
const Pool kPools[] = {
    {"kernel_shape = [3]", {2, 3, 11}, {2, 3, 9}},
    {"kernel_shape = [2, 3], strides = [2, 1]", {1, 3, 7, 9}, {1, 3, 3, 7}},
    {"kernel_shape = [3, 2], strides = [2, 3], pads = [1, 0, 2, 1]", {2, 2, 9, 8}, {2, 2, 5, 3}},
    {"kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1", {1, 2, 8, 10}, {1, 2, 4, 5}},
    {"kernel_shape = [3, 3], strides = [2, 3], pads = [1, 1, 1, 1], ceil_mode = 1",
     {1, 2, 8, 11},
     {1, 2, 5, 4}},
    {"kernel_shape = [2, 3], dilations = [3, 2], pads = [2, 1, 1, 3]", {1, 2, 7, 6}, {1, 2, 7, 6}},
    {"kernel_shape = [3, 2], strides = [2, 2], auto_pad = \"SAME_UPPER\"", {1, 3, 8, 7}, {1, 3, 4, 4}},
    {"kernel_shape = [3, 2], strides = [2, 2], auto_pad = \"SAME_LOWER\"", {1, 3, 8, 7}, {1, 3, 4, 4}},
    {"kernel_shape = [2, 3, 2], strides = [1, 2, 2], dilations = [2, 1, 1], pads = [1, 0, 1, 0, 1, 0]",
     {2, 2, 5, 6, 7},
     {2, 2, 4, 3, 4}},
    // Windows that lie beside the image, and between its elements.
    {"kernel_shape = [2], pads = [4, 3]", {1, 2, 3}, {1, 2, 9}},
    {"kernel_shape = [2, 2], dilations = [5, 4], pads = [4, 3, 4, 3]", {1, 2, 2, 1}, {1, 2, 5, 3}},
    {"kernel_shape = [4, 4]", {0, 2, 5, 5}, {0, 2, 2, 2}},
};

TEST_CASE("pools of bytes are those of the CPU on a device") {
  for (const Pool& pool : kPools) {
    for (const Bytes& bytes : kBytes) {
      const Operand x{bytes.dtype, pool.x, bytes.low, bytes.high}, out{bytes.dtype, pool.out};
      CheckAlike({"max_pool", pool.attributes, {x}, {out}});
      CheckAlike({"max_pool", std::string(pool.attributes) + ", storage_order = 1", {x}, {out}});
    }
  }
}

TEST_CASE("bytes are resized on a device as on the CPU") {
  for (const Bytes& bytes : kBytes) {
    const Operand x{bytes.dtype, {2, 3, 7, 5}, bytes.low, bytes.high}, out{bytes.dtype, {2, 3, 11, 12}};
    for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"}) {
      for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        const std::string attributes = "mode = \"nearest\", coordinate_transformation_mode = \"" +
                                       std::string(coordinates) + "\", nearest_mode = \"" + rounding + "\"";
        CheckAlike({"resize", attributes, {x}, {out}});
        CheckAlike({"resize", attributes, {out}, {x}});
      }
    }
    // Weights are sums of powers of 2, so halves are met. Cubic ones go beyond the type's range on both
    // sides.
    const Operand twice{bytes.dtype, {2, 3, 14, 10}};
    for (const char* mode : {"linear", "cubic"}) {
      CheckAlike({"resize", "mode = \"" + std::string(mode) + "\"", {x}, {twice}});
      CheckAlike({"resize",
                  "mode = \"" + std::string(mode) + "\", axes = [2, 3]",
                  {x, {"f32", {0}}, {"f32", {2}, 2, 2}},
                  {twice}});
    }
    Operand edges{bytes.dtype, {1, 8}, 0, 0, false, false, {}};
    for (int i = 0; i < 8; ++i) edges.numbers.push_back(i / 2 % 2 == 0 ? bytes.low : bytes.high);
    CheckAlike({"resize", "mode = \"cubic\"", {edges}, {{bytes.dtype, {1, 16}}}});
  }
}

TEST_CASE("pools of floats are those of the CPU on a device") {
  for (const Pool& pool : kPools) {
    const Operand x{"f32", pool.x}, out{"f32", pool.out};
    CheckAlike({"max_pool", pool.attributes, {x}, {out}});
    CheckAlike({"max_pool", pool.attributes, {{"f32", pool.x, -4, 4, true}}, {out}});
    CheckAlike({"avg_pool", pool.attributes, {x}, {out}});
    CheckAlike({"avg_pool", std::string(pool.attributes) + ", count_include_pad = 1", {x}, {out}});
  }
}

TEST_CASE("pools of bytes give what is known") {
  const Operand u8{"u8", {1, 1, 5}, 0, 0, false, false, {200, 3, 128, 127, 255}};
  const Operand i8{"i8", {1, 1, 5}, 0, 0, false, false, {-1, -128, 127, -5, -7}};
  const std::string attributes = "kernel_shape = [2], strides = [2], pads = [2, 1]";
  const auto pooled = [&](const Operand& x) {
    return ResultsOf({"max_pool", attributes, {x}, {{x.dtype, {1, 1, 4}}}}, DeviceName())[0];
  };
  CHECK(pooled(u8) == std::vector<double>{0, 200, 128, 255});
  CHECK(pooled(i8) == std::vector<double>{-128, -1, 127, -7});
}

TEST_CASE("a device refuses sums, pools and resizes of what it has no code for") {
  const auto refuses = [&](const StockCall& call, const char* words) {
    const std::string text = DeviceErrorOf(call);
    INFO(text);
    CHECK(text.find(words) != std::string::npos);
  };
  const std::string scales = "a_scale = 1, b_scale = 1, scale = 1";
  const Operand u8{"u8", {1, 1, 4}, 0, 9}, i8{"i8", {1, 1, 4}, 0, 9}, i16{"i16", {1, 1, 4}, 0, 9};
  refuses({"add_quantized", scales, {u8, i8}, {u8}}, "b has dtype i8, expected u8 as a");
  refuses({"add_quantized", scales, {u8, u8}, {i8}}, "out has dtype i8, expected u8 as a");
  refuses({"add_quantized", scales, {u8, {"u8", {1, 1, 1}}}, {u8}}, "b has shape [1, 1, 1]");
  refuses({"add_quantized", scales, {i16, i16}, {i16}}, "a is i16, expected one of i8, u8");
  const Operand table{"u8", {256}}, shorter{"u8", {255}};
  refuses({"map_bytes", "", {u8, shorter}, {u8}}, "table has shape [255], expected [256]");
  refuses({"map_bytes", "", {u8, table}, {i8}}, "table has dtype u8, expected i8 as out");
  refuses({"map_bytes", "", {i16, table}, {u8}}, "x is i16, expected one of i8, u8");
  refuses({"map_bytes", "", {u8, {"i16", {256}}}, {i16}}, "out is i16, expected one of i8, u8");
  const std::string window = "kernel_shape = [1]";
  refuses({"max_pool", window, {i16}, {i16}}, "x is i16, expected one of f32, f16, i8, u8");
  refuses({"max_pool", window, {u8}, {i8}}, "out has dtype i8, expected u8 as x");
  refuses({"resize", "", {i16}, {i16}}, "x is i16, expected one of f32, f16, i8, u8");
  refuses({"avg_pool", window, {u8}, {u8}}, "x is u8, expected f32 or f16");
}

}  // namespace
}  // namespace rewire::test
