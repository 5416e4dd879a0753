// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels of a device against those of the CPU, over numbers at the edges. The functions are
// those of the device's library whose rows have the trait `elementwise`, so that a new one is tested without
// being listed here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/devices/stock_call.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLeastNormal = std::numeric_limits<float>::min();

std::vector<double> Edges() {
  std::vector<double> numbers = {0,    kInf, 1e38, std::numeric_limits<float>::max(), kLeastNormal, 1e-10,
                                 88.8, 87.3, 103.9};
  for (const double edge : {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0, 20.0, 100.0, 16777217.0})
    numbers.push_back(edge);
  const std::size_t count = numbers.size();
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(-numbers[i]);
  numbers.push_back(std::numeric_limits<double>::quiet_NaN());
  return numbers;
}

// NaN and infinities are the same, and so are the signs of all but NaN. Devices may make 0 of numbers below
// the least normal one.
bool IsAlike(double given, double expected) {
  if (std::isnan(expected) || std::isnan(given)) return std::isnan(expected) && std::isnan(given);
  if (std::signbit(given) != std::signbit(expected)) return false;
  if (std::isinf(expected) || std::isinf(given)) return given == expected;
  return std::fabs(given - expected) <=
         1e-5 * std::fabs(expected) + 3e-7 * (std::fabs(expected) < 1 ? 1 : 0) + 2 * kLeastNormal;
}

void CheckForms(const StockCall& call) {
  INFO(TextOf(call, DeviceName()));
  const std::vector<double> expected = ResultsOf(call, "")[0], given = ResultsOf(call, DeviceName())[0];
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (IsAlike(given[i], expected[i])) continue;
    CAPTURE(call.inputs[0].numbers[i], given[i], expected[i]);
    if (call.inputs.size() > 1) UNSCOPED_INFO("second operand " << call.inputs[1].numbers[i]);
    FAIL_CHECK("the device differs from the CPU");
  }
}

bool IsElementwise(const RewireKernelRow& row) {
  const auto is_plain = [&](const RewireKernelArgument& argument) {
    return (argument.dtypes & REWIRE_DTYPE_F32) != 0 && (argument.flags & REWIRE_ARGUMENT_LIST) == 0 &&
           argument.dtype_group == row.arguments[0].dtype_group;
  };
  return (row.traits & REWIRE_KERNEL_ELEMENTWISE) != 0 &&
         std::all_of(row.arguments, row.arguments + row.argument_count, is_plain);
}

TEST_CASE("elementwise functions are the same on a device as on the CPU, also at the edges") {
  const TestDevice device;
  KernelSet kernels;
  REQUIRE(kernels.AddLibrary("librewire_kernels_device.so"));
  const std::vector<double> edges = Edges();
  const auto count = static_cast<std::int64_t>(edges.size());
  std::vector<double> first, second;
  for (const double a : edges) {
    for (const double b : edges) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  std::size_t tried = 0;
  for (const std::string& name : kernels.sources()[0]->Names()) {
    const auto found = kernels.sources()[0]->Find(name);
    const std::string prefix = "rewire.device.";
    if (found.function.row == nullptr || name.rfind(prefix, 0) != 0 || !IsElementwise(*found.function.row))
      continue;
    const std::string kernel = name.substr(prefix.size());
    const Operand one{.dtype = "f32", .shape = {count}, .numbers = edges};
    if (found.function.row->argument_count == 2) {
      CheckForms({kernel, "", {one}, {{"f32", {count}}}});
      if (kernel == "clip") {
        for (const char* bounds : {"min = 4.0, max = 2.0", "min = -0.25, max = 6.0", "max = 2.0"})
          CheckForms({kernel, bounds, {one}, {{"f32", {count}}}});
      }
      if (kernel == "gelu") CheckForms({kernel, "approximate = \"tanh\"", {one}, {{"f32", {count}}}});
      ++tried;
    } else if (found.function.row->argument_count == 3) {
      const Operand a{.dtype = "f32", .shape = {count * count}, .numbers = first};
      const Operand b{.dtype = "f32", .shape = {count * count}, .numbers = second};
      CheckForms({kernel, "", {a, b}, {{"f32", {count * count}}}});
      ++tried;
    }
  }
  CHECK(tried > 30);
}

}  // namespace
}  // namespace rewire::test
