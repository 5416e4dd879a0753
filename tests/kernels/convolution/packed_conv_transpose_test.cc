// SPDX-License-Identifier: Apache-2.0
// Transposed convolution by packed weights against the one that adds up windows.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "rewire/kernels/cpu/convolution/few_columns.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;
using kernel::cpu::Activation;
using kernel::cpu::ChooseFewColumns;
using kernel::cpu::FewColumns;

constexpr const char kName[] = "rewire.packed.conv_transpose";

std::int64_t RoundedColumns(std::int64_t columns) { return (columns + 15) / 16 * 16; }

// Weights [C, M, taps...] as the kernel reads them.
HostTensor Packed(HostTensor& w) {
  const Shape& dims = w.shape();
  const std::int64_t in = dims[0], out = dims[1], of_row = dims.back(), columns = of_row * out;
  const std::int64_t taps = w.size() / (in * out), rows = taps / of_row;
  HostTensor packed = HostTensor::Empty<float>({rows * RoundedColumns(columns), in});
  for (std::int64_t r = 0; r < rows; ++r) {
    HostTensor row = HostTensor::Empty<float>({columns, in});
    HostTensor part = HostTensor::Empty<float>({RoundedColumns(columns), in});
    for (std::int64_t i = 0; i < columns * in; ++i) {
      const std::int64_t column = i / in, tap = r * of_row + column / out;
      row.elements<float>()[i] = w.elements<float>()[(i % in * out + column % out) * taps + tap];
    }
    REQUIRE(Run("rewire.packed.pack", {&row, &part}, {{"order", "OI"}}) == "");
    std::copy(part.elements<float>().begin(), part.elements<float>().end(),
              packed.elements<float>().begin() + r * part.size());
  }
  return packed;
}

// The axis behind the first one last, or the last one there.
HostTensor Transposed(HostTensor& from, bool to_last) {
  const std::size_t rank = from.shape().size();
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (to_last)
    std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  else
    std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  Shape shape;
  for (const std::int64_t axis : perm) shape.push_back(from.shape()[static_cast<std::size_t>(axis)]);
  HostTensor to = HostTensor::Empty<float>(shape);
  REQUIRE(Run("rewire.transpose", {&from, &to}, {{"perm", perm}}) == "");
  return to;
}

// x [N, C, spatial...], with a bias and Relu.
void CheckAgainstWindows(const Shape& x_shape, std::int64_t channels, const Ints& kernel) {
  CAPTURE(x_shape, channels, kernel);
  Shape w_shape = {x_shape[1], channels}, out_shape = {x_shape[0], channels};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    w_shape.push_back(kernel[i]);
    out_shape.push_back(x_shape[i + 2] * kernel[i]);
  }
  HostTensor x = HostTensor::Random(x_shape, 1), w = HostTensor::Random(w_shape, 2);
  HostTensor bias = HostTensor::Random({channels}, 3), sums = HostTensor::Empty<float>(out_shape);
  HostTensor expected = HostTensor::Empty<float>(out_shape);
  REQUIRE(Run("rewire.conv_transpose", {&x, &w, &bias, &sums}, {{"strides", kernel}}) == "");
  REQUIRE(Run("rewire.relu", {&sums, &expected}) == "");
  HostTensor last = Transposed(x, true), packed = Packed(w);
  HostTensor out = HostTensor::Empty<float>(Transposed(expected, true).shape());
  REQUIRE(Run(kName, {&last, &packed, &bias, &out},
              {{"channels", channels}, {"kernel_shape", kernel}, {"activation", "relu"}}) == "");
  const auto values = Transposed(out, false).values<float>(), wanted = expected.values<float>();
  REQUIRE(values.size() == wanted.size());
  // Not one assertion for each of millions of elements.
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!(std::fabs(values[i] - wanted[i]) <= 2e-6F * static_cast<float>(x_shape[1])))
      FAIL("element " << i << " is " << values[i] << ", expected " << wanted[i]);
  }
}

TEST_CASE("packed.conv_transpose: numbers that one can follow") {
  HostTensor x = HostTensor::Of<float>({1, 1, 2, 2}, {1, 10, 2, 20});
  HostTensor w = HostTensor::Of<float>({2, 1, 2, 2}, {1, 2, 3, 4, -1, 0, 1, 0});
  HostTensor bias = HostTensor::Of<float>({1}, {100}), out = HostTensor::Empty<float>({1, 2, 4, 1});
  HostTensor packed = Packed(w);
  const AttributeList attributes = {{"channels", 1}, {"kernel_shape", Ints{2, 2}}};
  REQUIRE(Run(kName, {&x, &packed, &out}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{-9, 2, -18, 4, 13, 4, 26, 8});
  REQUIRE(Run(kName, {&x, &packed, &bias, &out}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{91, 102, 82, 104, 113, 104, 126, 108});
}

TEST_CASE("packed.conv_transpose: channels of all sizes") {
  for (const std::int64_t channels : {1, 2, 3, 4, 7, 8, 16, 24, 33}) {
    CheckAgainstWindows({2, 24, 5, 19}, channels, {2, 2});
    CheckAgainstWindows({1, 1, 3, 4}, channels, {2, 2});
  }
  for (const std::int64_t in : {2, 3, 5, 8, 13, 100}) {
    CheckAgainstWindows({1, in, 3, 17}, 1, {2, 2});
    CheckAgainstWindows({1, in, 3, 17}, 20, {2, 2});
  }
}

TEST_CASE("packed.conv_transpose: windows of all forms") {
  for (const std::int64_t channels : {1, 3, 24}) {
    CheckAgainstWindows({2, 6, 21}, channels, {1});
    CheckAgainstWindows({2, 6, 21}, channels, {3});
    CheckAgainstWindows({1, 6, 5, 7}, channels, {1, 4});
    CheckAgainstWindows({2, 6, 5, 7}, channels, {3, 1});
    CheckAgainstWindows({2, 6, 5, 7}, channels, {1, 1});
    CheckAgainstWindows({1, 6, 5, 7}, channels, {4, 5});
    CheckAgainstWindows({2, 6, 3, 4, 5}, channels, {2, 3, 2});
    CheckAgainstWindows({2, 6, 3, 4, 5}, channels, {2, 1, 2});
    CheckAgainstWindows({2, 6, 3, 4, 5}, channels, {1, 3, 2});
    CheckAgainstWindows({2, 6, 3, 4, 5}, channels, {1, 1, 2});
    CheckAgainstWindows({2, 6, 3, 4, 5}, channels, {2, 3, 1});
  }
}

TEST_CASE("packed.conv_transpose: images of one line, of long ones, and of many") {
  for (const std::int64_t channels : {1, 24}) {
    CheckAgainstWindows({1, 8, 1, 1}, channels, {2, 2});
    CheckAgainstWindows({1, 8, 1, 70}, channels, {2, 2});
    CheckAgainstWindows({1, 8, 3, 600}, channels, {2, 2});
    CheckAgainstWindows({3, 24, 80, 80}, channels, {2, 2});
    CheckAgainstWindows({1, 4, 2000}, channels, {2});
  }
}

TEST_CASE("packed.conv_transpose: images without elements") {
  HostTensor w = HostTensor::Random({4, 3, 2, 2}, 1), packed = Packed(w);
  const AttributeList attributes = {{"channels", 3}, {"kernel_shape", Ints{2, 2}}};
  for (const Shape& x_shape : {Shape{0, 5, 5, 4}, Shape{2, 0, 5, 4}, Shape{2, 5, 0, 4}}) {
    HostTensor x = HostTensor::Random(x_shape, 1);
    HostTensor out = HostTensor::Empty<float>({x_shape[0], 2 * x_shape[1], 2 * x_shape[2], 3});
    CHECK(Run(kName, {&x, &packed, &out}, attributes) == "");
  }
  // No channels to add up.
  HostTensor x = HostTensor::Random({1, 1, 1, 0}, 1), none = HostTensor::Empty<float>({32, 0});
  HostTensor bias = HostTensor::Of<float>({3}, {1, 2, 3}), out = HostTensor::Empty<float>({1, 2, 2, 3});
  REQUIRE(Run(kName, {&x, &none, &bias, &out}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
}

TEST_CASE("packed.conv_transpose: activations") {
  for (const std::int64_t channels : {1, 24}) {
    for (const char* activation : {"sigmoid", "hard_swish", "clip"}) {
      CAPTURE(channels, activation);
      HostTensor x = HostTensor::Random({1, 3, 21, 6}, 1), w = HostTensor::Random({6, channels, 2, 2}, 2);
      HostTensor sums = HostTensor::Empty<float>({1, 6, 42, channels}), packed = Packed(w);
      HostTensor out = HostTensor::Empty<float>(sums.shape()),
                 expected = HostTensor::Empty<float>(sums.shape());
      AttributeList attributes = {{"channels", channels}, {"kernel_shape", Ints{2, 2}}};
      REQUIRE(Run(kName, {&x, &packed, &sums}, attributes) == "");
      attributes.push_back({"activation", activation});
      const bool clip = std::string(activation) == "clip";
      if (clip) {
        attributes.push_back({"alpha", -0.25});
        attributes.push_back({"beta", 0.5});
      }
      const AttributeList limits = {{"min", -0.25}, {"max", 0.5}};
      REQUIRE(Run(kName, {&x, &packed, &out}, attributes) == "");
      REQUIRE(Run("rewire." + std::string(activation), {&sums, &expected}, clip ? limits : AttributeList()) ==
              "");
      const auto values = out.values<float>(), wanted = expected.values<float>();
      for (std::size_t i = 0; i < wanted.size(); ++i) REQUIRE(values[i] == Approx(wanted[i]).margin(1e-6));
    }
  }
}

TEST_CASE("packed.conv_transpose: few columns, by every instruction set") {
  ForEachTarget([] {
    for (const std::int64_t columns : {1, 2, 3, 4}) {
      for (const std::int64_t rows : {1, 2, 3}) {
        for (const std::int64_t channels : {0, 1, 3, 4, 9, 24}) {
          for (const std::int64_t positions : {1, 3, 16, 37}) {
            CAPTURE(columns, rows, channels, positions);
            const auto x = HostTensor::Random({positions * channels}, 1).values<float>();
            const auto w = HostTensor::Random({rows * channels * 16}, 2).values<float>();
            const auto bias = HostTensor::Random({columns}, 3).values<float>();
            const std::int64_t step = positions * columns + 5;
            std::vector<float> out(static_cast<std::size_t>(rows * step), -7.0F);
            Activation relu;
            relu.kind = Activation::kRelu;
            ChooseFewColumns()({x.data(), positions, channels, w.data(), bias.data(), rows, columns,
                                out.data(), step, relu});
            for (std::int64_t i = 0; i < rows * step; ++i) {
              const std::int64_t row = i / step, position = i % step / columns, column = i % step % columns;
              double expected = -7;
              if (i % step < positions * columns) {
                expected = double{bias[static_cast<std::size_t>(column)]};
                for (std::int64_t k = 0; k < channels; ++k)
                  expected += double{x[static_cast<std::size_t>(position * channels + k)]} *
                              double{w[static_cast<std::size_t>((row * channels + k) * 16 + column)]};
                expected = std::fmax(expected, 0);
              }
              CAPTURE(row, position, column);
              REQUIRE(double{out[static_cast<std::size_t>(i)]} == Approx(expected).margin(1e-5));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("packed.conv_transpose: what it refuses") {
  HostTensor x = HostTensor::Random({1, 3, 4, 5}, 1), w = HostTensor::Random({5, 6, 2, 2}, 2);
  HostTensor packed = Packed(w), out = HostTensor::Empty<float>({1, 6, 8, 6});
  const Ints two = {2, 2};
  const auto run = [&](const AttributeList& attributes) {
    return Run(kName, {&x, &packed, &out}, attributes);
  };
  const std::string prefix = "ValueError: " + std::string(kName) + ": ";
  REQUIRE(run({{"channels", 6}, {"kernel_shape", two}}) == "");
  CHECK(run({{"kernel_shape", two}}) == prefix + "attribute 'channels' is missing");
  CHECK(run({{"channels", 6}}) == prefix + "attribute 'kernel_shape' is missing");
  CHECK(run({{"channels", 6}, {"kernel_shape", Ints{}}}) ==
        prefix + "attribute 'kernel_shape' has 0 ints, expected 1 to 3");
  CHECK(run({{"channels", 6}, {"kernel_shape", Ints{2, 0}}}) ==
        prefix + "attribute 'kernel_shape' is [2, 0], expected ints of at least 1");
  CHECK(
      run({{"channels", 6}, {"kernel_shape", Ints{1 << 20, 1 << 20}}}) ==
      prefix +
          "attribute 'kernel_shape' is [1048576, 1048576], expected at most 2147483648 outputs of a window");
  CHECK(run({{"channels", 6}, {"kernel_shape", two}, {"strides", Ints{1, 1}}}) != "");
  CHECK(run({{"channels", 6}, {"kernel_shape", Ints{2}}}) ==
        prefix + "x has shape [1, 3, 4, 5], expected rank 3");
  CHECK(run({{"channels", 6}, {"kernel_shape", Ints{2, 3}}}) ==
        prefix + "out has shape [1, 6, 8, 6], expected [1, 6, 12, 6]");
  CHECK(run({{"channels", 7}, {"kernel_shape", two}}) ==
        prefix + "out has shape [1, 6, 8, 6], expected [1, 6, 8, 7]");
  const AttributeList right = {{"channels", 6}, {"kernel_shape", two}};
  HostTensor short_w = HostTensor::Random({16, 5}, 1), short_bias = HostTensor::Random({5}, 1);
  CHECK(Run(kName, {&x, &short_w, &out}, right) == prefix + "w has shape [16, 5], expected [32, 5]");
  CHECK(Run(kName, {&x, &packed, &short_bias, &out}, right) == prefix + "bias has shape [5], expected [6]");
  HostTensor doubles = HostTensor::Empty<double>({1, 3, 4, 5}),
             of_doubles = HostTensor::Empty<double>({32, 5}),
             to_doubles = HostTensor::Empty<double>({1, 6, 8, 6});
  CHECK(Run(kName, {&doubles, &of_doubles, &to_doubles}, right) ==
        "TypeError: " + std::string(kName) + ": x has dtype f64, expected f32");
}

}  // namespace
}  // namespace rewire::test
