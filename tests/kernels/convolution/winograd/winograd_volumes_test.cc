// SPDX-License-Identifier: Apache-2.0
// Convolution of volumes in Winograd's form against the direct one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t RoundedChannels(std::int64_t columns) { return (columns + 15) / 16 * 16; }

// x [N, planes, H, W, C] by windows of `taps` planes.
struct Volume {
  Shape x;
  std::int64_t channels, taps;
  Ints pads = {1, 1, 1, 1, 1, 1};
  std::int64_t stride = 1;
  Ints dilations = {1, 1, 1};
  const char* activation = "relu";
};

std::int64_t Outputs(const Volume& volume, std::size_t axis) {
  const std::int64_t taps = axis == 0 ? volume.taps : 3, stride = axis == 0 ? volume.stride : 1;
  const std::int64_t reach = (taps - 1) * volume.dilations[axis] + 1;
  return (volume.x[1 + axis] + volume.pads[axis] + volume.pads[3 + axis] - reach) / stride + 1;
}

// Both forms of one convolution with a bias, a residual and an activation.
void Check(const Volume& volume) {
  CAPTURE(volume.x, volume.channels, volume.taps, volume.pads, volume.stride, volume.dilations);
  const std::int64_t in = volume.x[4], depth = in * volume.taps, channels = volume.channels;
  HostTensor x = HostTensor::Random(volume.x, 1), bias = HostTensor::Random({channels}, 3);
  HostTensor w = HostTensor::Random({channels, in, volume.taps, 3, 3}, 2);
  HostTensor direct = HostTensor::Empty<float>({RoundedChannels(channels), depth * 9});
  HostTensor points = HostTensor::Empty<float>({36, RoundedChannels(channels), depth});
  REQUIRE(Run("rewire.packed.pack", {&w, &direct}, {{"order", "OI"}}) == "");
  REQUIRE(Run("rewire.packed.winograd_weights", {&w, &points}) == "");
  const Shape out_shape = {volume.x[0], Outputs(volume, 0), Outputs(volume, 1), Outputs(volume, 2), channels};
  HostTensor addend = HostTensor::Random(out_shape, 4);
  HostTensor expected = HostTensor::Empty<float>(out_shape), out = HostTensor::Empty<float>(out_shape);
  const AttributeList attributes = {
      {"channels", channels},          {"kernel_shape", Ints{volume.taps, 3, 3}},
      {"pads", volume.pads},           {"strides", Ints{volume.stride, 1, 1}},
      {"dilations", volume.dilations}, {"activation", volume.activation}};
  REQUIRE(Run("rewire.packed.conv", {&x, &direct, &bias, &addend, &expected}, attributes) == "");
  REQUIRE(Run("rewire.packed.winograd", {&x, &points, &bias, &addend, &out}, attributes) == "");
  const auto wanted = expected.values<float>();
  const auto is_close = [&](const HostTensor& given) {
    const auto values = given.values<float>();
    float largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      largest = std::max(largest, std::fabs(values[i] - wanted[i]));
    REQUIRE(largest <= 1e-5F * static_cast<float>(depth));
  };
  is_close(out);
  for (const std::int32_t threads : {1, 2, 3}) {
    CAPTURE(threads);
    const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(threads);
    HostTensor given = HostTensor::Empty<float>(out_shape);
    UseThreads(pool.get());
    const std::string error =
        Run("rewire.packed.winograd", {&x, &points, &bias, &addend, &given}, attributes);
    UseThreads(nullptr);
    REQUIRE(error == "");
    is_close(given);
  }
  // The residual may lie where the sum goes.
  REQUIRE(Run("rewire.packed.winograd", {&x, &points, &bias, &addend, &addend}, attributes) == "");
  REQUIRE(addend.values<float>() == out.values<float>());
}

TEST_CASE("winograd: volumes by windows of any number of planes") {
  for (const std::int64_t taps : {1, 2, 3, 5}) {
    Check({{1, 5, 6, 6, 16}, 16, taps});                        // one tile
    Check({{2, 6, 5, 9, 7}, 21, taps});                         // channels that are no whole vectors
    Check({{1, 5, 5, 6, 4}, 40, taps, {0, 0, 0, 0, 0, 0}});     // no borders
    Check({{2, 19, 6, 7, 3}, 8, taps, {2, 1, 1, 1, 0, 2}});     // several chunks of planes
    Check({{1, 11, 34, 37, 8}, 16, taps, {2, 1, 1, 2, 1, 1}});  // several groups of tiles
  }
}

TEST_CASE("winograd: volumes with steps, and gaps between planes") {
  for (const std::int64_t taps : {1, 2, 3}) {
    Check({{1, 20, 6, 6, 8}, 16, taps, {1, 1, 1, 1, 1, 1}, 2});
    Check({{1, 21, 6, 6, 8}, 16, taps, {1, 1, 1, 0, 1, 1}, 4});  // planes that no window reads
    Check({{2, 9, 7, 5, 8}, 16, taps, {2, 1, 1, 2, 1, 1}, 1, {2, 1, 1}});
    Check({{1, 9, 9, 12, 8}, 16, taps, {2, 1, 1, 2, 1, 1}, 2, {3, 2, 2}});
  }
}

TEST_CASE("winograd: planes outside the volume are zeros") {
  Check({{1, 1, 6, 6, 8}, 16, 3});                      // two of three taps
  Check({{2, 2, 4, 4, 8}, 16, 1, {3, 1, 1, 4, 1, 1}});  // whole windows: the bias and the residual stay
  Check({{1, 3, 4, 8, 8}, 16, 2, {5, 1, 1, 1, 1, 1}, 3});
  Check({{1, 2, 9, 4, 64}, 64, 5, {4, 1, 1, 4, 1, 1}, 1, {1, 1, 1}, "hard_swish"});
}

TEST_CASE("winograd: volumes by weights that threads share") {
  Check({{1, 8, 16, 16, 32}, 64, 3});
  Check({{1, 4, 12, 9, 64}, 48, 3, {1, 1, 1, 1, 1, 1}, 2, {1, 1, 1}, "none"});
}

TEST_CASE("winograd: volumes of other windows are refused") {
  HostTensor x = HostTensor::Random({1, 4, 8, 8, 4}, 1), out = HostTensor::Empty<float>({1, 2, 6, 6, 16});
  HostTensor points = HostTensor::Random({36, 16, 12}, 2), of_images = HostTensor::Random({36, 16, 4}, 2);
  const auto run = [&](HostTensor* w, const Ints& window, const Ints& strides = {1, 1, 1}) {
    return Run("rewire.packed.winograd", {&x, w, &out},
               {{"channels", std::int64_t{16}}, {"kernel_shape", window}, {"strides", strides}});
  };
  CHECK(run(&points, {3, 3, 3}) == "");
  CHECK(run(&points, {3, 3, 2}) ==
        "ValueError: rewire.packed.winograd: the window is [3, 3, 2], expected 3 by 3 without strides along "
        "the last two axes");
  CHECK(run(&points, {3}) != "");
  CHECK(run(&points, {3, 3, 3}, {1, 2, 1}) != "");
  CHECK(run(&of_images, {3, 3, 3}) ==
        "ValueError: rewire.packed.winograd: w has shape [36, 16, 4], expected [36, 16, 12]");
  HostTensor flat = HostTensor::Random({16, 4, 3, 3, 1}, 1);
  CHECK(Run("rewire.packed.winograd_weights", {&flat, &points}) ==
        "ValueError: rewire.packed.winograd_weights: w has shape [16, 4, 3, 3, 1], expected [M, C, 3, 3] or "
        "[M, C, planes, 3, 3]");
}

}  // namespace
}  // namespace rewire::test
