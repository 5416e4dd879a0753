// SPDX-License-Identifier: Apache-2.0
//
// Products, convolutions and sums of floats on the device that REWIRE_TEST_DEVICE names, beside the CPU.
// Device code has several forms by size: each is taken, at sizes that its tiles and groups do not divide.
// Numbers are positive, so that sums in another order differ little.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/devices/stock_call.h"

namespace rewire::test {
namespace {

Operand Floats(std::vector<std::int64_t> shape) { return {"f32", std::move(shape), 0.5, 2}; }

TEST_CASE("products of every size run on a device as on the CPU") {
  const auto matmul = [](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                         const std::vector<std::int64_t>& out) {
    CheckAlike({"matmul", "", {Floats(a), Floats(b)}, {Floats(out)}});
  };
  matmul({7, 40}, {40, 33}, {7, 33});            // small tiles
  matmul({3, 17, 5}, {3, 5, 18}, {3, 17, 18});   // in batches
  matmul({1030, 18}, {18, 1090}, {1030, 1090});  // large ones
  matmul({70000, 2, 2}, {70000, 2, 6},
         {70000, 2, 6});                            // in more than CUDA takes along its second and third axes
  matmul({300, 3, 5}, {300, 5, 70}, {300, 3, 70});  // in batches
  for (const std::int64_t columns : {1, 3, 4, 5}) {  // up to 4 columns: a group for each element
    matmul({9, 70}, {70, columns}, {9, columns});
    matmul({2, 5, 32}, {2, 32, columns}, {2, 5, columns});
    matmul({9, 31}, {31, columns}, {9, columns});
  }
  CheckAlike({"gemm",
              "alpha = 0.5, beta = 2.0, transA = 1, transB = 1",
              {Floats({65, 20}), Floats({2, 65}), Floats({20, 1})},
              {Floats({20, 2})}});
  CheckAlike({"gemm", "transB = 1", {Floats({20, 65}), Floats({19, 65}), Floats({19})}, {Floats({20, 19})}});
}

TEST_CASE("convolutions of every size run on a device as on the CPU") {
  const auto conv = [](const std::string& attributes, const std::vector<std::int64_t>& x,
                       const std::vector<std::int64_t>& w, const std::vector<std::int64_t>& out) {
    CheckAlike({"conv", attributes, {Floats(x), Floats(w), Floats({w[0]})}, {Floats(out)}});
    CheckAlike({"conv", attributes, {Floats(x), Floats(w)}, {Floats(out)}});
  };
  // A window of one element is a product: of small and of large tiles, and of few positions.
  conv("", {2, 5, 3, 7}, {12, 5, 1, 1}, {2, 12, 3, 7});
  conv("", {300, 5, 9}, {12, 5, 1}, {300, 12, 9});
  conv("", {2, 40, 1, 1}, {12, 40, 1, 1}, {2, 12, 1, 1});
  conv("", {2, 40, 2, 2}, {12, 40, 1, 1}, {2, 12, 2, 2});
  // Not if it moves by more than one element, or has pads.
  conv("strides = [1, 2]", {2, 5, 3, 8}, {12, 5, 1, 1}, {2, 12, 3, 4});
  conv("pads = [0, 0, 1, 0]", {2, 5, 3, 7}, {12, 5, 1, 1}, {2, 12, 4, 7});
  conv("group = 2", {2, 6, 3, 7}, {20, 3, 1, 1}, {2, 20, 3, 7});
  // Small tiles, large ones, and an element for each thread.
  const char* attributes = "group = 2, strides = [2, 1], pads = [1, 0, 0, 2], dilations = [1, 2]";
  conv(attributes, {2, 6, 9, 17}, {40, 3, 3, 2}, {2, 40, 4, 17});
  conv(attributes, {70, 6, 9, 17}, {40, 3, 3, 2}, {70, 40, 4, 17});
  conv("group = 4, pads = [1, 1, 1, 1]", {2, 4, 9, 8}, {8, 1, 3, 3}, {2, 8, 9, 8});
  conv("", {2, 3, 5, 4, 6}, {9, 3, 2, 2, 3}, {2, 9, 4, 3, 4});
}

TEST_CASE("floats are reduced on a device as on the CPU") {
  for (const char* kernel : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_l2"}) {
    CheckAlike({kernel, "axes = [1]", {Floats({3, 40, 5})}, {Floats({3, 1, 5})}});
    CheckAlike({kernel, "axes = [-1], keepdims = 0", {Floats({3, 5, 40})}, {Floats({3, 5})}});
    // Few results of many elements: a group for each.
    CheckAlike({kernel, "axes = [1]", {Floats({3, 1500, 5})}, {Floats({3, 1, 5})}});
    CheckAlike({kernel, "axes = [0, 2], keepdims = 0", {Floats({30, 7, 50})}, {Floats({7})}});
    CheckAlike({kernel, "keepdims = 0", {Floats({5000})}, {Floats({})}});
    CheckAlike({kernel, "axes = [1], keepdims = 0", {Floats({4, 1024})}, {Floats({4})}});
  }
}

}  // namespace
}  // namespace rewire::test
