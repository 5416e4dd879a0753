// SPDX-License-Identifier: Apache-2.0
// Programs that compute shapes, and where blocks of such sizes lie.
#include <catch2/catch.hpp>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;
enum Code : std::int64_t { kPush, kDim, kAdd, kMultiply, kFloorDivide, kMaximum, kMinimum, kStore };

HostTensor Scalar() { return HostTensor::Empty<std::int64_t>({}); }
std::int64_t At(const HostTensor& tensor, std::size_t i = 0) { return tensor.values<std::int64_t>()[i]; }

TEST_CASE("a program may go on with what it has stored") {
  HostTensor x = HostTensor::Of<std::int64_t>({2}, {7, 3});
  HostTensor out = HostTensor::Empty<std::int64_t>({2}), bytes = Scalar();
  const Ints half = {kDim, 0, 0, kPush, 2, kFloorDivide, kStore, kDim, -1, 0, kDim, 0, 1, kMultiply, kStore};
  REQUIRE(Run("rewire.shape.eval", {&x, &out, &bytes}, {{"program", half}, {"element_bytes", 4}}) == "");
  CHECK(At(out, 0) == 3);
  CHECK(At(out, 1) == 9);
  CHECK(At(bytes) == 108);
  CHECK(StockKernel("rewire.shape.eval", {{"program", Ints{kDim, -1, 0, kStore}}}).error() != "");
}

TEST_CASE("a block begins where the highest of those ends that it lies on") {
  HostTensor x = HostTensor::Of<std::int64_t>({1}, {100});
  HostTensor second = Scalar(), fourth = Scalar(), total = Scalar();
  // Sizes of x and of three times x.
  const Ints program = {kDim, 0, 0, kStore, kDim, -1, 0, kPush, 3, kMultiply, kStore};
  // 0: large; 1: small, on 0; 2: small; 3: large, on 1 and 2.
  const Ints blocks = {1, 0, 0, 1, 0, 0, 0, 1, 2, 1, 2};
  SECTION("rounded up to 64") {
    REQUIRE(Run("rewire.shape.layout", {&x, &second, &fourth, &total},
                {{"program", program}, {"blocks", blocks}, {"offsets", Ints{1, 3}}}) == "");
    CHECK(At(second) == 320);
    CHECK(At(fourth) == 448);
    CHECK(At(total) == 768);
  }
  SECTION("nothing is as large as it is") {
    x = HostTensor::Of<std::int64_t>({1}, {0});
    REQUIRE(Run("rewire.shape.layout", {&x, &total}, {{"program", program}, {"blocks", Ints{1, 0}}}) == "");
    CHECK(At(total) == 0);
  }
  SECTION("too large") {
    x = HostTensor::Of<std::int64_t>({1}, {std::int64_t{1} << 62});
    CHECK(Run("rewire.shape.layout", {&x, &total}, {{"program", program}, {"blocks", Ints{1, 0}}}) ==
          "ValueError: rewire.shape.layout: the blocks are too large");
  }
}

TEST_CASE("a layout that is none is refused") {
  const Ints program = {kPush, 64, kStore};
  const auto error = [&](const Ints& blocks, const Ints& offsets = {}) {
    return StockKernel("rewire.shape.layout",
                       {{"program", program}, {"blocks", blocks}, {"offsets", offsets}})
        .error();
  };
  CHECK(error({0, 0, 0, 1, 0}) == "");
  CHECK(error({1, 0}) != "");       // no such size
  CHECK(error({0}) != "");          // no count
  CHECK(error({0, 2, 0}) != "");    // fewer blocks than counted
  CHECK(error({0, 1, 0}) != "");    // on itself
  CHECK(error({0, 0}, {1}) != "");  // no such block
  CHECK(error({0, -1}) != "");
}

}  // namespace
}  // namespace rewire::test
