// SPDX-License-Identifier: Apache-2.0
// The conversions of float16 that the tvm-ffi runtime library exports for old code: as the library makes them
// here, and in the form for any processor.
#include <dlfcn.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/vm/loader/ffi_shim/half.h"

namespace {

struct Conversions {
  float (*to_float)(std::uint16_t);
  std::uint16_t (*to_half)(float);
};

Conversions OfLibrary() {
  // Stays loaded for the functions' sake.
  void* library =
      dlopen((std::string(rewire::test::BuildDir()) + "/lib/rewire/libtvm_ffi.so").c_str(), RTLD_NOW);
  REQUIRE(library != nullptr);
  return {reinterpret_cast<float (*)(std::uint16_t)>(dlsym(library, "__gnu_h2f_ieee")),
          reinterpret_cast<std::uint16_t (*)(float)>(dlsym(library, "__gnu_f2h_ieee"))};
}

Conversions OfAnyProcessor() { return {rewire::ffi_shim::HalfToFloat, rewire::ffi_shim::FloatToHalf}; }

// The value of a half of these bits, by the definition.
double Meaning(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const double fraction = (half & 0x3FF) / 1024.0;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -14)
                           : exponent == 31 ? std::numeric_limits<double>::infinity()
                                            : std::ldexp(1 + fraction, exponent - 15);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool IsNan(std::uint16_t half) { return (half & 0x7C00) == 0x7C00 && (half & 0x3FF) != 0; }

TEST_CASE("every float16 has its float32 and comes back from it") {
  const Conversions convert = GENERATE(OfLibrary(), OfAnyProcessor());
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = convert.to_float(half);
    if (IsNan(half)) {
      wrong += std::isnan(value) && IsNan(convert.to_half(value)) ? 0 : 1;
    } else {
      wrong += value == Meaning(half) && convert.to_half(value) == half ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("float32 is rounded to the nearest float16, ties to even") {
  const Conversions convert = GENERATE(OfLibrary(), OfAnyProcessor());
  const auto is_right = [&](float value) {
    const std::uint16_t half = convert.to_half(value);
    const double exact = value;
    const double limit = 65520;  // halfway between the largest half and what would follow
    if (std::abs(exact) >= limit) return std::isinf(Meaning(half)) && std::signbit(value) == (half >= 0x8000);
    if (std::signbit(value) != (half >= 0x8000)) return false;
    const std::uint16_t magnitude = half & 0x7FFF;
    const double error = std::abs(Meaning(magnitude) - std::abs(exact));
    for (int step : {-1, 1}) {
      if (magnitude + step < 0 || magnitude + step > 0x7BFF) continue;
      const double other = std::abs(Meaning(static_cast<std::uint16_t>(magnitude + step)) - std::abs(exact));
      if (other < error || (other == error && magnitude % 2 != 0)) return false;
    }
    return magnitude <= 0x7BFF;
  };
  int wrong = 0;
  // Every half, every middle between two, and the floats beside both.
  for (std::uint16_t half = 0; half < 0x7BFF; ++half) {
    const double here = Meaning(half), next = Meaning(static_cast<std::uint16_t>(half + 1));
    for (const double value : {here, (here + next) / 2}) {
      const auto single = static_cast<float>(value);
      for (const float near : {single, std::nextafter(single, 1e30F), std::nextafter(single, -1e30F)}) {
        wrong += is_right(near) && is_right(-near) ? 0 : 1;
      }
    }
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<float> exponents(-30, 20);
  for (int i = 0; i < 100000; ++i) wrong += is_right(std::exp2(exponents(random))) ? 0 : 1;
  for (const float value : {65504.F, 65519.99F, 65520.F, 65536.F, 1e30F, 1e-30F, 0.F})
    wrong += is_right(value) ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("both forms of the conversions agree in every bit") {
  const Conversions library = OfLibrary();
  const Conversions any = OfAnyProcessor();
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  int different = 0;
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const auto narrow = static_cast<std::uint16_t>(half);
    different += bits(library.to_float(narrow)) == bits(any.to_float(narrow)) ? 0 : 1;
  }
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); i += 997) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    different += library.to_half(value) == any.to_half(value) ? 0 : 1;
  }
  CHECK(different == 0);
}

}  // namespace
