// SPDX-License-Identifier: Apache-2.0
//
// Stock kernels of the device that REWIRE_TEST_DEVICE names give what those of the CPU give.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/devices/stock_call.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// Scales are powers of 2 where a result is rounded, so that all devices round the same number.
TEST_CASE("integers are products and sums on a device as on the CPU") {
  // More than a tile of 64 x 64 and more than a step of 16; zeros for each row and column; batches.
  CheckAlike(
      {"matmul_integer",
       "",
       {{"u8", {70, 37}, 0, 255}, {"i8", {37, 90}, -128, 127}, {"u8", {70}, 0, 255}, {"i8", {90}, -9, 9}},
       {{"i32", {70, 90}}}});
  CheckAlike({"matmul_integer",
              "",
              {{"i8", {2, 3, 5, 20}, -128, 127}, {"u8", {20, 7}, 0, 255}, {"i8", {5}, -9, 9}},
              {{"i32", {2, 3, 5, 7}}}});
  CheckAlike({"matmul_integer",
              "",
              {{"u8", {2, 1, 3, 4}, 0, 255}, {"u8", {5, 4, 2}, 0, 255}, {"u8", {1}, 7, 8}},
              {{"i32", {2, 5, 3, 2}}}});
  CheckAlike({"conv_integer",
              "group = 2, strides = [2, 1], pads = [1, 0, 0, 2], dilations = [1, 2]",
              {{"u8", {2, 6, 9, 17}, 0, 255},
               {"i8", {140, 3, 3, 2}, -128, 127},
               {"u8", {}, 128, 129},
               {"i8", {140}, -9, 9}},
              {{"i32", {2, 140, 4, 17}}}});
}

TEST_CASE("numbers are quantized on a device as on the CPU") {
  const Operand x{"f32", {3, 5, 7}, -300, 300};
  for (const char* dtype : {"u8", "i8", "u16", "i16"}) {
    const Operand zero{dtype, {5}, 0, 9};
    CheckAlike({"quantize_linear", "axis = 1", {x, {"f32", {5}, 0.5, 0.5}, zero}, {{dtype, x.shape}}});
    CheckAlike({"dequantize_linear",
                "axis = -2",
                {{dtype, x.shape, 0, 99}, {"f32", {5}, 1, 2}, zero},
                {{"f32", x.shape}}});
  }
  CheckAlike({"quantize_linear", "", {x, {"f32", {}, 4, 4}}, {{"i8", x.shape}}});
  CheckAlike({"dequantize_linear",
              "",
              {{"i32", {40}, -1e9, 1e9}, {"f32", {1}, 3, 3}, {"i32", {1}, -2e9, -2e9}},
              {{"f32", {40}}}});
  const Operand blocks{"f32", {3, 2, 7}, 0.25, 0.25};
  CheckAlike({"quantize_linear",
              "axis = 1, block_size = 3",
              {x, blocks, {"u8", blocks.shape, 0, 200}},
              {{"u8", x.shape}}});
  CheckAlike(
      {"dynamic_quantize_linear", "", {{"f32", {900}, -100, 155}}, {{"u8", {900}}, {"f32", {}}, {"u8", {}}}});
  CheckAlike({"requantize",
              "axis = 1",
              {{"i32", {2, 5, 9}, -9999, 9999},
               {"f32", {}, 0.5, 0.5},
               {"f32", {5}, 0.25, 0.25},
               {"f32", {1}, 8, 8},
               {"i8", {}, 3, 3}},
              {{"i8", {2, 5, 9}}}});
}

TEST_CASE("borders are put around tensors on a device as on the CPU") {
  const Operand x{"f32", {3, 4, 5}};
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const std::string attributes = "pads = [1, -1, 3, 2, 2, -1], mode = \"" + std::string(mode) + "\"";
    CheckAlike({"pad", attributes, {x}, {{"f32", {6, 5, 7}}}});
  }
  CheckAlike({"pad", "pads = [0, 2, 1, 0]", {{"i64", {2, 3}, -9, 9}, {"i64", {}, 7, 7}}, {{"i64", {3, 5}}}});
  CheckAlike({"pad", "pads = [2, 9]", {{"u8", {5}, 0, 99}, {"u8", {1}, 7, 7}}, {{"u8", {16}}}});
}

TEST_CASE("transposed convolutions run on a device as on the CPU") {
  CheckAlike({"conv_transpose",
              "group = 2, strides = [2, 3], dilations = [2, 1], pads = [1, 0, 2, 1], output_padding = [1, 0]",
              {{"f32", {2, 4, 5, 3}}, {"f32", {4, 3, 3, 2}}, {"f32", {6}}},
              {{"f32", {2, 6, 11, 7}}}});
  CheckAlike({"conv_transpose",
              "strides = [3], output_shape = [10]",
              {{"f32", {1, 2, 3}}, {"f32", {2, 3, 2}}},
              {{"f32", {1, 3, 10}}}});
}

TEST_CASE("tensors are resized on a device as on the CPU") {
  const Operand x{"f32", {2, 3, 7, 5}};
  const Operand out{"f32", {2, 3, 11, 12}};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                    "half_pixel_symmetric", "tf_half_pixel_for_nn"}) {
      const std::string attributes =
          "mode = \"" + std::string(mode) + "\", coordinate_transformation_mode = \"" + coordinates + "\"";
      CheckAlike({"resize", attributes, {x}, {out}});
      CheckAlike({"resize", attributes, {out}, {x}});
    }
  }
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    const std::string attributes = "nearest_mode = \"" + std::string(rounding) + "\"";
    CheckAlike({"resize", attributes, {{"f32", {8, 6}}}, {{"f32", {4, 9}}}});
  }
  // The second input is the region that only tf_crop_and_resize reads.
  CheckAlike({"resize",
              "mode = \"cubic\", cubic_coeff_a = -0.5, exclude_outside = 1, axes = [-1, 0]",
              {{"f32", {4, 2, 5}}, {"f32", {0}}, {"f32", {2}, 1.7, 1.7}},
              {{"f32", {6, 2, 8}}}});
}

TEST_CASE("a device's kernel takes tensors of its device, of at most 8 dimensions") {
  const auto message_of = [](std::vector<std::int64_t> shape, bool on_host) {
    Operand x{"f32", std::move(shape)};
    const Operand out = x;
    x.on_host = on_host;
    return DeviceErrorOf({"softmax", "", {x}, {out}});
  };
  CHECK(message_of({1, 2, 1, 1, 1, 1, 1, 2}, false) == "");
  CHECK_THAT(message_of({1, 2, 1, 1, 1, 1, 1, 1, 2}, false),
             Catch::Contains("out has rank 9, expected at most 8"));
  CHECK_THAT(message_of({2, 2}, true), Catch::Contains("expected memory of a device"));
}

TEST_CASE("what a device's kernel does not do is left to the CPU") {
  const Operand x{"f32", {4}};
  for (const char* attribute : {"antialias = 1", "coordinate_transformation_mode = \"tf_crop_and_resize\""}) {
    LinkOptions options;
    REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
    const Executable executable = ExecutableOf(TextOf({"resize", attribute, {x}, {x}}, DeviceName()));
    const std::string message = MessageOf(Program::Link(executable, std::move(options)));
    CHECK(message.find(" is left to the CPU") != std::string::npos);
  }
}

}  // namespace
}  // namespace rewire::test
