// SPDX-License-Identifier: Apache-2.0
// Programs that compute shapes, and where blocks of such sizes lie.
#include <catch2/catch.hpp>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/vm/kernel/size_rules.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;
using enum SizeCodes::Code;

HostTensor Scalar() { return HostTensor::Empty<std::int64_t>({}); }
std::int64_t SizeAt(const HostTensor& tensor, std::size_t i = 0) { return tensor.values<std::int64_t>()[i]; }

TEST_CASE("a program may go on with what it has stored") {
  HostTensor x = HostTensor::Of<std::int64_t>({2}, {7, 3});
  HostTensor out = HostTensor::Empty<std::int64_t>({2}), bytes = Scalar();
  const Ints half = {kDim, 0, 0, kPush, 2, kFloorDivide, kStore, kDim, -1, 0, kDim, 0, 1, kMultiply, kStore};
  REQUIRE(Run("rewire.shape.eval", {&x, &out, &bytes}, {{"program", half}, {"element_bytes", 4}}) == "");
  CHECK(SizeAt(out, 0) == 3);
  CHECK(SizeAt(out, 1) == 9);
  CHECK(SizeAt(bytes) == 108);
  CHECK(StockKernel("rewire.shape.eval", {{"program", Ints{kDim, -1, 0, kStore}}}).error() != "");
}

TEST_CASE("a program broadcasts sizes as kernels do") {
  const StockKernel sizes(
      "rewire.shape.sizes",
      {{"program", Ints{kDim, 0, 0, kDim, 0, 1, kBroadcast, kStore}}, {"outputs", Ints{1}}});
  HostTensor out = HostTensor::Empty<std::int64_t>({1}), by_kernel = HostTensor::Empty<std::int64_t>({1});
  for (const std::int64_t a : {0, 1, 2, 5}) {
    for (const std::int64_t b : {0, 1, 2, 5}) {
      HostTensor both = HostTensor::Of<std::int64_t>({2}, {a, b});
      HostTensor left = HostTensor::Of<std::int64_t>({1}, {a}),
                 right = HostTensor::Of<std::int64_t>({1}, {b});
      if (Run("rewire.shape.broadcast", {&left, &right, &by_kernel}) != "") continue;  // they differ
      INFO(a << " and " << b);
      REQUIRE(sizes({&both, &out}) == "");
      CHECK(SizeAt(out) == SizeAt(by_kernel));
    }
  }
}

TEST_CASE("one program computes several shapes and sizes") {
  HostTensor x = HostTensor::Of<std::int64_t>({2}, {7, 3}), y = HostTensor::Of<std::int64_t>({1}, {5});
  HostTensor shape = HostTensor::Empty<std::int64_t>({2}), bytes = Scalar();
  HostTensor none = HostTensor::Empty<std::int64_t>({0}), line = HostTensor::Empty<std::int64_t>({1});
  // [2 * x0, x1], 4 bytes for each element, [], [y0 - 5].
  const Ints program = {kPush,     2,      kDim, 0,    0,  kMultiply, kStore,    kDim, 0,     1,
                        kStore,    kPush,  4,    kDim, -1, 0,         kMultiply, kDim, -1,    1,
                        kMultiply, kStore, kDim, 1,    0,  kPush,     -5,        kAdd, kStore};
  const Ints outputs = {2, -1, 0, 1};
  const StockKernel sizes("rewire.shape.sizes", {{"program", program}, {"outputs", outputs}});
  REQUIRE(sizes({&x, &y, &shape, &bytes, &none, &line}) == "");
  CHECK(shape.values<std::int64_t>() == Ints{14, 3});
  CHECK(SizeAt(bytes) == 168);
  CHECK(SizeAt(line) == 0);
  y = HostTensor::Of<std::int64_t>({1}, {4});
  CHECK(sizes({&x, &y, &shape, &bytes, &none, &line}) ==
        "ValueError: rewire.shape.sizes: number 0 of output 3 comes out as -1");
  y = HostTensor::Of<std::int64_t>({1}, {5});
  x = HostTensor::Of<std::int64_t>({2}, {std::int64_t{1} << 60, 3});
  CHECK(sizes({&x, &y, &shape, &bytes, &none, &line}) ==
        "ValueError: rewire.shape.sizes: a shape has too many elements");
  x = HostTensor::Of<std::int64_t>({2}, {7, 3});
  CHECK(sizes({&x, &y, &line, &bytes, &none, &line}) ==
        "ValueError: rewire.shape.sizes: output 0 has 1 elements, expected 2");
  CHECK(sizes({&x, &y, &shape, &line, &none, &line}) ==
        "TypeError: rewire.shape.sizes: an output is i64[1], expected a scalar of i64");
  CHECK(sizes({&x, &y, &shape, &bytes, &none}) ==
        "ValueError: rewire.shape.sizes: expected 2 shapes and 4 outputs, got 5 tensors");
  CHECK(sizes({&x, &bytes, &shape, &bytes, &none, &line}) ==
        "TypeError: rewire.shape.sizes: a shape is i64[], expected i64 of rank 1");
}

TEST_CASE("outputs that do not fit what a program stores are refused") {
  const auto error = [](const Ints& outputs, const Ints& program = {kPush, 3, kStore}) {
    return StockKernel("rewire.shape.sizes", {{"program", program}, {"outputs", outputs}}).error();
  };
  const std::string at = "ValueError: rewire.shape.sizes: ";
  CHECK(error({1}) == "");
  CHECK(error({-1, 0}) == "");
  CHECK(error({2}) == at + "attribute 'outputs' has room for 2 numbers, and the program stores 1");
  CHECK(error({}) == at + "attribute 'outputs' has room for 0 numbers, and the program stores 1");
  CHECK(error({-2}) == at + "attribute 'outputs': -2 is no length");
  CHECK(error({17}) == at + "attribute 'outputs': 17 is no length");
  Ints many;
  for (int i = 0; i < 1025; ++i) many.insert(many.end(), {kPush, 3, kStore});
  CHECK(error(Ints(1025, 1), many) == at + "attribute 'program' stores more than 1024 numbers");
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
    CHECK(SizeAt(second) == 320);
    CHECK(SizeAt(fourth) == 448);
    CHECK(SizeAt(total) == 768);
  }
  SECTION("nothing is as large as it is") {
    x = HostTensor::Of<std::int64_t>({1}, {0});
    REQUIRE(Run("rewire.shape.layout", {&x, &total}, {{"program", program}, {"blocks", Ints{1, 0}}}) == "");
    CHECK(SizeAt(total) == 0);
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
