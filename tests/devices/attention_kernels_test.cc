// SPDX-License-Identifier: Apache-2.0
//
// Attention on the device that REWIRE_TEST_DEVICE names, beside the CPU.
#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "rewire/tests/devices/stock_call.h"
#include "rewire/tests/devices/test_device.h"

namespace rewire::test {
namespace {

// How many heads of queries and of keys, queries, keys, and elements of keys and of values.
struct Sizes {
  std::int64_t batch, heads, groups, length, keys, size, value_size;
};

StockCall Call(const Sizes& of, const std::string& attributes, bool joined = false) {
  const std::vector<std::int64_t> q = {of.batch, of.heads, of.length, of.size},
                                  joined_q = {of.batch, of.length, of.heads * of.size},
                                  out = {of.batch, of.heads, of.length, of.value_size},
                                  joined_out = {of.batch, of.length, of.heads * of.value_size};
  return {"attention",
          attributes,
          {{"f32", joined ? joined_q : q, -1, 1},
           {"f32", {of.batch, of.groups, of.keys, of.size}, -1, 1},
           {"f32", {of.batch, of.groups, of.keys, of.value_size}}},
          {{"f32", joined ? joined_out : out}}};
}

StockCall With(StockCall call, const Operand& begin, const Operand& lengths, const Operand& bias) {
  for (const Operand& each : {begin, lengths, bias}) call.inputs.push_back(each);
  return call;
}

const Operand kNone{"i64", {0}};
const Operand kNoBias{"f32", {0}};

TEST_CASE("attention on a device gives what it gives on the CPU") {
  // A query that is alone, few, less and more than a tile; grouped heads; odd sizes beyond a tile.
  for (const Sizes& sizes :
       {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{2, 4, 2, 1, 300, 40, 70}, Sizes{1, 2, 2, 7, 65, 16, 300},
        Sizes{2, 6, 2, 9, 70, 33, 5}, Sizes{1, 2, 1, 70, 130, 64, 80}}) {
    for (const bool joined : {false, true}) {
      CheckAlike(Call(sizes, "", joined));
      CheckAlike(Call(sizes, "right = 0", joined));
      CheckAlike(Call(sizes, "scale = 0.7, softcap = 2.0, left = 3, right = 20", joined));
    }
  }
}

TEST_CASE("attention on a device begins anywhere, ends at a length and adds a bias") {
  for (const Sizes& sizes : {Sizes{2, 4, 2, 2, 300, 8, 8}, Sizes{2, 4, 2, 40, 150, 8, 8}}) {
    const std::int64_t keys = sizes.keys;
    const Operand begin{"i64", {2}, 20, 120}, lengths{"i64", {2}, 0, 200};
    const Operand bias{"f32", {sizes.batch, sizes.heads, sizes.length, keys}};
    CheckAlike(With(Call(sizes, "right = 0"), begin, kNone, kNoBias));
    CheckAlike(With(Call(sizes, "left = 9, right = 2"), {"i64", {}, 70, 70}, kNone, kNoBias));
    CheckAlike(With(Call(sizes, ""), kNone, lengths, kNoBias));
    CheckAlike(With(Call(sizes, "right = 0"), begin, {"i64", {1}, 90, 90}, bias));
    CheckAlike(With(Call(sizes, "", true), kNone, kNone, {"f32", {sizes.length, keys - 30}}));
    CheckAlike(With(Call(sizes, ""), kNone, kNone, {"f32", {sizes.batch, 1, 1, 1}}));
    CheckAlike(With(Call(sizes, ""), kNone, kNone, {"f32", {sizes.heads, sizes.length, keys}}));
    // A query that sees no key gives 0.
    CheckAlike(With(Call(sizes, ""), kNone, {"i64", {2}, 0, 0}, bias));
    CheckAlike(With(Call(sizes, "right = 0"), {"i64", {}, -20, -20}, kNone, kNoBias));
    // Numbers that no tensor reaches.
    for (const double far : {-9e18, 9e18}) {
      CheckAlike(
          With(Call(sizes, "left = 5, right = 5"), {"i64", {}, far, far}, {"i64", {}, far, far}, kNoBias));
    }
    Operand special = bias;
    special.special = true;
    CheckAlike(With(Call(sizes, ""), kNone, kNone, special));
    special.numbers.assign(static_cast<std::size_t>(keys), -std::numeric_limits<double>::infinity());
    special.numbers[7] = 1;
    special.numbers[9] = 2;
    special.shape = {keys};
    special.special = false;
    CheckAlike(With(Call(sizes, ""), kNone, kNone, special));
    special.numbers.assign(static_cast<std::size_t>(keys), -std::numeric_limits<double>::infinity());
    CheckAlike(With(Call(sizes, ""), kNone, kNone, special));
  }
}

}  // namespace
}  // namespace rewire::test
