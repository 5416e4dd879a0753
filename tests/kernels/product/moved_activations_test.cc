// SPDX-License-Identifier: Apache-2.0
// The factor and the term behind the activation of products and convolutions: results are those without them,
// multiplied and moved.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rewire/kernels/cpu/product/integer_panels.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::PackedColumns;
using kernel::cpu::PaddedDepth;

constexpr double kScale = -1.75, kShift = 0.625;

std::vector<double> Numbers(const HostTensor& tensor, bool halves) {
  std::vector<double> numbers;
  if (!halves) {
    for (const float value : tensor.values<float>()) numbers.push_back(double{value});
    return numbers;
  }
  for (const BFloat16 value : tensor.values<BFloat16>()) numbers.push_back(double{static_cast<float>(value)});
  return numbers;
}

HostTensor EmptyOut(const Shape& shape, bool halves) {
  return halves ? HostTensor::Empty<BFloat16>(shape) : HostTensor::Empty<float>(shape);
}

// Runs the kernel with every activation, with and without a factor and a term. bf16 is a rounding of f32.
void CheckMoved(const std::string& kernel, std::vector<HostTensor*> arguments, const Shape& shape,
                const AttributeList& attributes, bool halves = false) {
  for (const char* name : {"none", "relu", "clip", "hard_swish", "leaky_relu", "sigmoid", "swish"}) {
    for (const auto& [scale, shift] :
         {std::pair{kScale, kShift}, std::pair{kScale, 0.0}, std::pair{1.0, kShift}}) {
      INFO(kernel << " with " << name << ", " << scale << ", " << shift << (halves ? ", bf16" : ""));
      AttributeList plain = attributes;
      plain.insert(plain.end(), {{"activation", name}, {"alpha", -0.25}, {"beta", 0.5}});
      AttributeList moved = plain;
      if (scale != 1) moved.emplace_back("post_scale", scale);
      if (shift != 0) moved.emplace_back("post_shift", shift);
      HostTensor before = EmptyOut(shape, false), after = EmptyOut(shape, halves);
      arguments.push_back(&before);
      REQUIRE(Run(kernel, arguments, plain) == "");
      arguments.back() = &after;
      REQUIRE(Run(kernel, arguments, moved) == "");
      arguments.pop_back();
      const std::vector<double> numbers = Numbers(before, false), found = Numbers(after, halves);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double expected = numbers[i] * scale + shift;
        const double most = halves ? std::fabs(expected) / 256 + 1e-5 : 1e-5;
        if (!(std::fabs(found[i] - expected) <= most))
          FAIL("element " << i << " is " << found[i] << ", expected " << expected);
      }
    }
  }
}

AttributeList OfImage(std::int64_t channels) {
  return {{"channels", channels},
          {"kernel_shape", std::vector<std::int64_t>{3, 3}},
          {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
}

}  // namespace

TEST_CASE("products and convolutions multiply and move what their activation gives") {
  // Whole vectors of columns, and edges of them.
  for (const std::int64_t columns : {5, 21, 64}) {
    HostTensor x = HostTensor::Random({11, 8}, 1), w = HostTensor::Random({8, columns}, 2);
    HostTensor bias = HostTensor::Random({columns}, 3), addend = HostTensor::Random({11, columns}, 4);
    HostTensor floats = HostTensor::Empty<float>({PackedColumns(columns), 8});
    HostTensor pairs = HostTensor::Empty<BFloat16>({PackedColumns(columns), 8});
    REQUIRE(Run("rewire.packed.pack", {&w, &floats}, {{"order", "IO"}}) == "");
    REQUIRE(Run("rewire.packed.pack", {&w, &pairs}, {{"order", "IO"}}) == "");
    const AttributeList attributes = {{"columns", columns}};
    CheckMoved("rewire.packed.matmul", {&x, &floats, &bias, &addend}, {11, columns}, attributes);
    for (HostTensor* packed : {&floats, &pairs})
      CheckMoved("rewire.packed.matmul", {&x, packed, &bias}, {11, columns}, attributes, true);

    HostTensor image = HostTensor::Random({1, 7, 10, 8}, 5),
               filter = HostTensor::Random({columns, 8, 3, 3}, 6);
    HostTensor direct = HostTensor::Empty<float>({PackedColumns(columns), 72});
    HostTensor points = HostTensor::Empty<float>({36, PackedColumns(columns), 8});
    REQUIRE(Run("rewire.packed.pack", {&filter, &direct}, {{"order", "OI"}}) == "");
    REQUIRE(Run("rewire.packed.winograd_weights", {&filter, &points}) == "");
    const Shape shape = {1, 7, 10, columns};
    CheckMoved("rewire.packed.conv", {&image, &direct, &bias}, shape, OfImage(columns));
    CheckMoved("rewire.packed.conv", {&image, &direct, &bias}, shape, OfImage(columns), true);
    CheckMoved("rewire.packed.winograd", {&image, &points, &bias}, shape, OfImage(columns));

    HostTensor of_each = HostTensor::Random(shape, 7), taps = HostTensor::Random({9, columns}, 8);
    CheckMoved("rewire.packed.depthwise", {&of_each, &taps, &bias}, shape, OfImage(columns));
    CheckMoved("rewire.packed.depthwise", {&of_each, &taps, &bias}, shape, OfImage(columns), true);
  }
}

TEST_CASE("products of integers that give floats multiply and move them") {
  for (const std::int64_t columns : {5, 64}) {
    HostTensor w = HostTensor::Empty<std::int8_t>({8, columns}),
               bytes = HostTensor::Empty<std::uint8_t>({3, 8});
    std::uint8_t next = 3;
    for (std::int8_t& byte : w.elements<std::int8_t>())
      byte = static_cast<std::int8_t>((next = static_cast<std::uint8_t>(next * 37 + 11)) % 16 - 8);
    for (std::uint8_t& byte : bytes.elements<std::uint8_t>())
      byte = (next = static_cast<std::uint8_t>(next * 37 + 11)) % 16;
    HostTensor packed = HostTensor::Empty<std::int8_t>({PackedColumns(columns), PaddedDepth(8)});
    HostTensor sums = HostTensor::Empty<std::int32_t>({columns});
    REQUIRE(Run("rewire.packed.pack_integers", {&w, &packed, &sums}) == "");
    HostTensor x = HostTensor::Random({3, 8}, 1), bias = HostTensor::Random({columns}, 2);
    HostTensor scale =
        HostTensor::Of<float>({columns}, std::vector<float>(static_cast<std::size_t>(columns), 0.01F));
    HostTensor none = HostTensor::Of<float>({0}, {}), no_zero = HostTensor::Of<std::uint8_t>({0}, {});
    HostTensor no_w_zero = HostTensor::Of<std::int8_t>({0}, {});
    const AttributeList attributes = {{"columns", columns}};
    CheckMoved("rewire.packed.matmul_bytes", {&x, &packed, &scale, &bias}, {3, columns}, attributes);
    CheckMoved("rewire.packed.matmul_integer", {&bytes, &packed, &sums, &no_zero, &no_w_zero, &scale, &bias},
               {3, columns}, attributes);

    HostTensor out = HostTensor::Empty<std::uint8_t>({3, columns});
    CHECK(Run("rewire.packed.matmul_integer",
              {&bytes, &packed, &sums, &no_zero, &no_w_zero, &scale, &bias, &out},
              {{"columns", columns}, {"post_shift", 1.0}}) ==
          "ValueError: rewire.packed.matmul_integer: out has dtype u8, expected f32 for an activation");
  }
}

}  // namespace rewire::test
