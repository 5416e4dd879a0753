// SPDX-License-Identifier: Apache-2.0
// Quotients and remainders of integers against the language's own, on every instruction set.
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

// By floor or by truncation; 0 where the divisor is 0. The least integer by -1 wraps.
template <typename T>
T Expected(const std::string& name, T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return name == "rewire.div" ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : T{0};
  if (name == "rewire.div") return static_cast<T>(a / b);
  const auto rest = static_cast<T>(a % b);
  const bool turns = name == "rewire.mod" && rest != 0 && (rest < 0) != (b < 0);
  return turns ? static_cast<T>(rest + b) : rest;
}

// Numbers of every size, and what lies at the ends of a type and of what a float holds exactly.
template <typename T>
std::vector<T> Numbers(std::size_t count, std::uint32_t seed) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(seed);
  std::vector<T> numbers = {0,  1, static_cast<T>(-1), 2, Limits::min(), Limits::max(), Limits::max() - 1,
                            100};
  for (int bit = 3; bit < Limits::digits; ++bit) {
    numbers.push_back(static_cast<T>((T{1} << bit) - 1));
    numbers.push_back(static_cast<T>(T{1} << bit));
    numbers.push_back(static_cast<T>(0 - (T{1} << bit)));
  }
  while (numbers.size() < count)
    numbers.push_back(static_cast<T>(random() >> (64 - 8 * sizeof(T)) >> random() % (8 * sizeof(T))));
  std::shuffle(numbers.begin(), numbers.end(), random);
  numbers.resize(count);
  return numbers;
}

template <typename T>
void Check(const std::string& name, std::size_t rows, std::size_t columns, bool repeats_a, bool repeats_b,
           std::uint32_t seed, T most) {
  std::vector<T> a = Numbers<T>(repeats_a ? rows : rows * columns, seed);
  std::vector<T> b = Numbers<T>(repeats_b ? rows : rows * columns, seed + 1);
  if (most != 0) {
    for (auto* numbers : {&a, &b}) {
      for (T& number : *numbers) number = static_cast<T>(number % most);
    }
  }
  const auto shape = [&](bool repeats) {
    return Shape{static_cast<std::int64_t>(rows), repeats ? 1 : static_cast<std::int64_t>(columns)};
  };
  HostTensor x = HostTensor::Of<T>(shape(repeats_a), a), y = HostTensor::Of<T>(shape(repeats_b), b);
  HostTensor out = HostTensor::Empty<T>(shape(false));
  REQUIRE(Run(name, {&x, &y, &out}) == "");
  const std::vector<T> values = out.values<T>();
  for (std::size_t i = 0; i < rows * columns; ++i) {
    const T dividend = a[repeats_a ? i / columns : i], divisor = b[repeats_b ? i / columns : i];
    if (values[i] == Expected(name, dividend, divisor)) continue;
    FAIL(name << " of " << +dividend << " and " << +divisor << " gives " << +values[i] << ", expected "
              << +Expected(name, dividend, divisor));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("integers are divided exactly on every instruction set", "", std::int8_t, std::uint8_t,
                   std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t) {
  ForEachTarget([] {
    std::uint32_t seed = 0;
    for (const char* name : {"rewire.div", "rewire.mod", "rewire.fmod"}) {
      // Numbers of all sizes, those that f64 holds, and those that f32 holds and nearly does not.
      std::vector<TestType> limits = {0, 100};
      if constexpr (sizeof(TestType) >= 4) limits = {0, 100, (1 << 23) + 1, 1 << 25, 2'000'000'000};
      for (const TestType most : limits) {
        for (const std::size_t columns : {1U, 7U, 33U, 1300U}) {
          Check<TestType>(name, 3, columns, false, false, seed += 2, most);
          Check<TestType>(name, 3, columns, true, false, seed += 2, most);
          Check<TestType>(name, 3, columns, false, true, seed += 2, most);
        }
      }
    }
  });
}

// Every pair of bytes, since quotients are computed in floats.
TEMPLATE_TEST_CASE("all pairs of bytes are divided exactly", "", std::int8_t, std::uint8_t) {
  std::vector<TestType> a, b;
  for (int i = 0; i < 65536; ++i) {
    a.push_back(static_cast<TestType>(i / 256));
    b.push_back(static_cast<TestType>(i % 256));
  }
  HostTensor x = HostTensor::Of<TestType>({65536}, a), y = HostTensor::Of<TestType>({65536}, b);
  for (const char* name : {"rewire.div", "rewire.mod", "rewire.fmod"}) {
    HostTensor out = HostTensor::Empty<TestType>({65536});
    REQUIRE(Run(name, {&x, &y, &out}) == "");
    std::vector<TestType> expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(Expected(name, a[i], b[i]));
    CHECK(out.values<TestType>() == expected);
  }
}

}  // namespace rewire::test
