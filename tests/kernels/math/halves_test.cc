// SPDX-License-Identifier: Apache-2.0
// Conversions of rows against those of one number, for all 16-bit floats and floats around each of them, and
// elementwise kernels of float16 against those of float.
#include "rewire/kernels/cpu/math/halves.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::Float16;

std::vector<Float16> AllHalves() {
  std::vector<Float16> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  return all;
}

// Each 16-bit float, what lies next to it, and what lies halfway to its neighbor and next to that.
std::vector<float> FloatsAround() {
  std::vector<float> found;
  for (const Float16 half : AllHalves()) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(half));
    for (const std::uint32_t more : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x1FFFu})
      found.push_back(std::bit_cast<float>(bits + more));
  }
  return found;
}

TEST_CASE("rows of 16-bit floats are converted as single ones, on every instruction set") {
  const std::vector<Float16> halves = AllHalves();
  const std::vector<float> floats = FloatsAround();
  ForEachTarget([&] {
    const kernel::cpu::HalfRows rows = kernel::cpu::ChooseHalfRows();
    std::vector<float> widened(halves.size());
    std::vector<Float16> narrowed(floats.size());
    // Two parts, neither of them whole vectors.
    rows.widen(halves.data(), widened.data(), 1001);
    rows.widen(halves.data() + 1001, widened.data() + 1001, static_cast<std::int64_t>(halves.size()) - 1001);
    rows.narrow(floats.data(), narrowed.data(), 1003);
    rows.narrow(floats.data() + 1003, narrowed.data() + 1003,
                static_cast<std::int64_t>(floats.size()) - 1003);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const auto expected = static_cast<float>(halves[i]);
      // A signaling NaN stays one, or becomes quiet.
      if (std::isnan(expected) ? !std::isnan(widened[i]) : std::memcmp(&widened[i], &expected, 4) != 0)
        ++wrong;
    }
    for (std::size_t i = 0; i < floats.size(); ++i)
      wrong += narrowed[i].bits != Float16(floats[i]).bits ? 1 : 0;
    CHECK(wrong == 0);
  });
}

// The kernel on float16 is the one on float, rounded: over one block and more, in place of a number and of
// rows.
void CheckAsFloats(const std::string& kernel, const std::vector<Shape>& shapes, const Shape& out_shape) {
  CAPTURE(kernel, shapes);
  std::vector<HostTensor> wide, narrow;
  std::vector<DLTensor*> wide_arguments, narrow_arguments;
  for (const Shape& shape : shapes) {
    HostTensor halves = HostTensor::Empty<Float16>(shape), floats = HostTensor::Random(shape, 3);
    for (std::int64_t i = 0; i < halves.size(); ++i) {
      halves.elements<Float16>()[i] = Float16(4 * floats.elements<float>()[i]);
      floats.elements<float>()[i] = static_cast<float>(halves.elements<Float16>()[i]);
    }
    narrow.push_back(std::move(halves));
    wide.push_back(std::move(floats));
  }
  HostTensor out = HostTensor::Empty<Float16>(out_shape), expected = HostTensor::Empty<float>(out_shape);
  if (shapes.size() == 1) {
    REQUIRE(Run(kernel, {&narrow[0], &out}) == "");
    REQUIRE(Run(kernel, {&wide[0], &expected}) == "");
  } else {
    REQUIRE(Run(kernel, {&narrow[0], &narrow[1], &out}) == "");
    REQUIRE(Run(kernel, {&wide[0], &wide[1], &expected}) == "");
  }
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const Float16 rounded(expected.elements<float>()[i]);
    const Float16 given = out.elements<Float16>()[i];
    const bool both_nan = std::isnan(static_cast<float>(rounded)) && std::isnan(static_cast<float>(given));
    wrong += both_nan || given.bits == rounded.bits ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("whole numbers of float16 keep zeros' signs, infinities and NaN") {
  const float numbers[] = {-0.0F, 0.25F, -0.25F, 0.5F,     -0.5F,     -1.5F,
                           2.5F,  2048,  -65504, INFINITY, -INFINITY, NAN};
  HostTensor x = HostTensor::Empty<Float16>({std::ssize(numbers)}), out = x;
  for (std::int64_t i = 0; i < x.size(); ++i) x.elements<Float16>()[i] = Float16(numbers[i]);
  const auto check = [&](const char* kernel, float (*function)(float)) {
    REQUIRE(Run(kernel, {&x, &out}) == "");
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const Float16 given = out.elements<Float16>()[i], expected(function(numbers[i]));
      INFO(kernel << " of " << numbers[i]);
      CHECK((std::isnan(numbers[i]) ? std::isnan(static_cast<float>(given)) : given.bits == expected.bits));
    }
  };
  check("rewire.floor", [](float value) { return std::floor(value); });
  check("rewire.ceil", [](float value) { return std::ceil(value); });
}

TEST_CASE("elementwise kernels of float16 are those of float, rounded") {
  for (const char* kernel : {"rewire.ceil", "rewire.floor", "rewire.round", "rewire.sqrt", "rewire.tanh",
                             "rewire.neg", "rewire.celu"}) {
    for (const std::int64_t size : {1, 7, 255, 256, 257, 70000}) CheckAsFloats(kernel, {{size}}, {size});
  }
  for (const char* kernel : {"rewire.add", "rewire.div", "rewire.max"}) {
    CheckAsFloats(kernel, {{3, 300}, {3, 300}}, {3, 300});
    CheckAsFloats(kernel, {{300, 90}, {300, 90}}, {300, 90});
    CheckAsFloats(kernel, {{3, 300}, {300}}, {3, 300});
    CheckAsFloats(kernel, {{3, 300}, {3, 1}}, {3, 300});
    CheckAsFloats(kernel, {{1}, {3, 300}}, {3, 300});
    CheckAsFloats(kernel, {{3, 1}, {1, 300}}, {3, 300});
  }
}

}  // namespace
}  // namespace rewire::test
