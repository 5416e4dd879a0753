// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/random_tensor.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <vector>

#include "rewire/base/dtype.h"

namespace rewire::tools {
namespace {

template <typename T>
std::vector<T> Make(RandomTensors* random, DLDataType dtype, std::int64_t count) {
  const Result<HostTensor> tensor = random->Make(dtype, {count});
  REQUIRE(tensor.has_value());
  std::vector<T> elements(static_cast<std::size_t>(count));
  std::memcpy(elements.data(), tensor->bytes.view.data(), tensor->bytes.view.size());
  return elements;
}

TEST_CASE("a seed gives the same numbers, another one others") {
  RandomTensors first(1), again(1), other(2);
  const std::vector<float> a = Make<float>(&first, kFloat32, 100);
  CHECK(a == Make<float>(&again, kFloat32, 100));
  CHECK(a != Make<float>(&other, kFloat32, 100));
  CHECK(a != Make<float>(&first, kFloat32, 100));
}

TEST_CASE("numbers fill their ranges") {
  RandomTensors random(0);
  const std::vector<float> floats = Make<float>(&random, kFloat32, 10000);
  CHECK(*std::min_element(floats.begin(), floats.end()) >= -1);
  CHECK(*std::min_element(floats.begin(), floats.end()) < -0.99F);
  CHECK(*std::max_element(floats.begin(), floats.end()) > 0.99F);
  CHECK(*std::max_element(floats.begin(), floats.end()) <= 1);
  const std::vector<std::int64_t> integers = Make<std::int64_t>(&random, kInt64, 1000);
  CHECK(std::set<std::int64_t>(integers.begin(), integers.end()) ==
        std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::vector<std::uint8_t> booleans = Make<std::uint8_t>(&random, kBool8, 100);
  CHECK(std::set<std::uint8_t>(booleans.begin(), booleans.end()) == std::set<std::uint8_t>{0, 1});
}

TEST_CASE("ranges by dtype") {
  RandomTensors random(0);
  REQUIRE(random.SetRange("i32=-3:-2").has_value());
  REQUIRE(random.SetRange("f64=5:5").has_value());
  const std::vector<std::int32_t> integers = Make<std::int32_t>(&random, kInt32, 100);
  CHECK(std::set<std::int32_t>(integers.begin(), integers.end()) == std::set<std::int32_t>{-3, -2});
  CHECK(Make<double>(&random, kFloat64, 2) == std::vector<double>{5, 5});
  for (const char* wrong : {"", "f32", "f32=1", "f32=2:1", "f32=0:inf", "q=0:1", "f32:0=1", "f32=a:b"}) {
    INFO(wrong);
    CHECK_FALSE(random.SetRange(wrong).has_value());
  }
}

TEST_CASE("half precision is rounded from the same range") {
  RandomTensors random(0);
  const std::vector<std::uint16_t> halves = Make<std::uint16_t>(&random, kFloat16, 1000);
  // The magnitude of 1 is 0x3C00; every bit pattern below is a number below it.
  CHECK(std::all_of(halves.begin(), halves.end(),
                    [](std::uint16_t half) { return (half & 0x7FFF) <= 0x3C00; }));
  CHECK(std::set<std::uint16_t>(halves.begin(), halves.end()).size() > 500);
}

}  // namespace
}  // namespace rewire::tools
