// SPDX-License-Identifier: Apache-2.0
// Residuals of products in bf16, and activations before a sum is rounded to bf16.
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/tests/kernels/product/bf16_tensors.h"

namespace rewire::test {
namespace {

using kernel::cpu::PairsOf;

// The same but for a step of bf16, and for functions that are computed with fewer bits before they are
// rounded.
void CheckRounded(const HostTensor& out, const HostTensor& expected) {
  const auto values = out.values<BFloat16>();
  const auto wanted = expected.values<float>();
  REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    if (!(std::fabs(value - wanted[i]) <= std::fabs(wanted[i]) / 256 + 1.0F / 16384))
      FAIL("element " << i << " is " << value << ", expected " << wanted[i]);
  }
}

TEST_CASE("a product adds a term of bf16, also where it writes") {
  // Some of these have enough work for tiles, where there are any.
  const Shape sizes[] = {{1, 2, 5}, {5, 6, 40}, {33, 64, 17}, {70, 64, 48}, {130, 32, 77}};
  for (const Shape& size : sizes) {
    const std::int64_t m = size[0], k = size[1], n = size[2];
    INFO(m << " rows of " << k << " by " << n);
    HostTensor x = HostTensor::Random({m, k}, 1), w = HostTensor::Random({k, n}, 2);
    HostTensor bias = HostTensor::Random({n}, 3), addend = Rounded(HostTensor::Random({m, n}, 4));
    HostTensor half_addend = Halves(addend);
    HostTensor pairs = PackedAs<BFloat16>(w, n, 2 * PairsOf(k), "IO"),
               floats = PackedAs<float>(w, n, k, "IO");
    for (const char* activation : {"none", "relu", "swish", "gelu", "sigmoid", "hard_swish"}) {
      for (HostTensor* weights : {&pairs, &floats}) {
        const AttributeList attributes = {{"columns", n}, {"activation", activation}, {"post_scale", 0.5}};
        HostTensor expected = HostTensor::Empty<float>({m, n}), out = HostTensor::Empty<float>({m, n});
        HostTensor half_out = HostTensor::Empty<BFloat16>({m, n}), in_place = Halves(addend);
        REQUIRE(Run("rewire.packed.matmul", {&x, weights, &bias, &addend, &expected}, attributes) == "");
        REQUIRE(Run("rewire.packed.matmul", {&x, weights, &bias, &half_addend, &out}, attributes) == "");
        CHECK(out.values<float>() == expected.values<float>());
        REQUIRE(Run("rewire.packed.matmul", {&x, weights, &bias, &half_addend, &half_out}, attributes) == "");
        CheckRounded(half_out, expected);
        REQUIRE(Run("rewire.packed.matmul", {&x, weights, &bias, &addend, &half_out}, attributes) == "");
        CheckRounded(half_out, expected);
        REQUIRE(Run("rewire.packed.matmul", {&x, weights, &bias, &in_place, &in_place}, attributes) == "");
        CheckRounded(in_place, expected);
      }
    }
  }
}

}  // namespace
}  // namespace rewire::test
