// SPDX-License-Identifier: Apache-2.0
//
// Elements scaled by statistics of their row on the device that REWIRE_TEST_DEVICE names, beside the CPU.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/devices/stock_call.h"

namespace rewire::test {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST_CASE("rows are made shares of one on a device as on the CPU, along any axis") {
  for (const char* kernel : {"softmax", "log_softmax"}) {
    for (const Sizes& shape : {Sizes{7}, Sizes{3, 1}, Sizes{2, 300, 5}, Sizes{4, 0, 3}, Sizes{2, 3, 4, 5}}) {
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::string attributes = "axis = " + std::to_string(axis);
        CheckAlike({kernel, attributes, {{"f32", shape}}, {{"f32", shape}}});
      }
      CheckAlike({kernel, "", {{"f32", shape, -300, 300}}, {{"f32", shape}}});
    }
  }
}

TEST_CASE("layers and root mean squares are normalized on a device as on the CPU, from any axis on") {
  const Sizes shape = {2, 3, 5, 67};
  const Operand x{"f32", shape, -2, 5};
  for (int axis = 0; axis < 4; ++axis) {
    const Operand factor{"f32", Sizes(shape.begin() + axis, shape.end()), -1, 2};
    const std::string attributes = "axis = " + std::to_string(axis) + ", epsilon = 0.01";
    CheckAlike({"layer_norm", attributes, {x, factor, factor}, {{"f32", shape}}});
    CheckAlike({"layer_norm", attributes, {x, factor}, {{"f32", shape}}});
    CheckAlike({"rms_norm", attributes, {x, factor}, {{"f32", shape}}});
  }
}

TEST_CASE("groups of channels and batches are normalized on a device as on the CPU") {
  const Sizes shape = {3, 6, 5, 7};
  const Operand x{"f32", shape, -2, 5}, channels{"f32", {6}, -1, 2}, variance{"f32", {6}, 0.5, 3};
  CheckAlike({"group_norm", "", {x, channels, channels}, {{"f32", shape}}});
  for (const std::int64_t groups : {1, 2, 3, 6}) {
    const std::string attributes = "num_groups = " + std::to_string(groups);
    CheckAlike({"group_norm", attributes, {x, channels, channels}, {{"f32", shape}}});
    const Operand each{"f32", {groups}, -1, 2};  // a factor for each group
    CheckAlike({"group_norm", attributes, {x, each, each}, {{"f32", shape}}});
  }
  CheckAlike({"batch_norm", "epsilon = 0.01", {x, channels, channels, channels, variance}, {{"f32", shape}}});
  const Operand flat{"f32", {4, 6}};
  CheckAlike({"batch_norm", "", {flat, channels, channels, channels, variance}, {flat}});
}

}  // namespace
}  // namespace rewire::test
