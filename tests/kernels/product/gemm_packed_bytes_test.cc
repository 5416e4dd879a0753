// SPDX-License-Identifier: Apache-2.0
// Products of floats by packed weights of bytes: near to those of the weights as floats, and the same where a
// row has no numbers that serve.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "rewire/kernels/cpu/product/pack_bytes.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ByteRowKernels;
using kernel::cpu::ChooseByteRowKernels;
using kernel::cpu::kSplitGroup;
using kernel::cpu::PackedColumns;
using kernel::cpu::PaddedDepth;
using kernel::cpu::SplitGroups;

std::size_t ByteIndex(std::int64_t i) { return static_cast<std::size_t>(i); }

HostTensor SomeBytes(Shape shape) {
  HostTensor bytes = HostTensor::Empty<std::int8_t>(std::move(shape));
  int value = 3;
  for (std::int8_t& byte : bytes.elements<std::int8_t>()) {
    value = (value * 37 + 11) % 256;
    byte = static_cast<std::int8_t>(value - 128);
  }
  return bytes;
}

// The operands of a product of `rows` rows, and what it is in f64.
struct BytesCase {
  std::int64_t rows, depth, columns;
  HostTensor x, w, packed, sums, scale, bias, addend;

  BytesCase(std::int64_t of_rows, std::int64_t of_depth, std::int64_t of_columns)
      : rows(of_rows),
        depth(of_depth),
        columns(of_columns),
        x(HostTensor::Random({rows, depth}, 1)),
        w(SomeBytes({depth, columns})),
        packed(HostTensor::Empty<std::int8_t>({PackedColumns(columns), PaddedDepth(depth)})),
        sums(HostTensor::Empty<std::int32_t>({columns})),
        scale(HostTensor::Random({columns}, 2)),
        bias(HostTensor::Random({columns}, 3)),
        addend(HostTensor::Random({rows, columns}, 4)) {
    REQUIRE(Run("rewire.packed.pack_integers", {&w, &packed, &sums}) == "");
  }

  double Expected(std::int64_t i, std::int64_t j, bool added) const {
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      sum += double{x.values<float>()[ByteIndex(i * depth + k)]} *
             w.values<std::int8_t>()[ByteIndex(k * columns + j)];
    }
    sum *= double{scale.values<float>()[ByteIndex(j)]};
    if (!added) return sum;
    sum += bias.values<float>()[ByteIndex(j)] + addend.values<float>()[ByteIndex(i * columns + j)];
    return sum < 0 ? 0 : sum;
  }

  // With numbers of so many bits. `part`: the most that a sum may be off, in parts of the largest product of
  // its row, for each product.
  void Check(int bits, bool added, double part) {
    INFO(rows << " x " << depth << " x " << columns << (added ? ", added, " : ", ") << bits << " bits");
    HostTensor out = HostTensor::Empty<float>({rows, columns});
    std::vector<HostTensor*> arguments = {&x, &packed, &scale};
    AttributeList attributes = {{"columns", columns}, {"bits", bits}};
    if (added) arguments.insert(arguments.end(), {&bias, &addend});
    if (added) attributes.emplace_back("activation", "relu");
    arguments.push_back(&out);
    REQUIRE(Run("rewire.packed.matmul_bytes", arguments, attributes) == "");
    const std::vector<float> found = out.values<float>(), left = x.values<float>();
    for (std::int64_t i = 0; i < rows; ++i) {
      double largest = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        largest = std::max(largest, std::fabs(double{left[ByteIndex(i * depth + k)]}));
      for (std::int64_t j = 0; j < columns; ++j) {
        const double most = part * largest * 128 * static_cast<double>(depth) + 1e-6;
        const double off = std::fabs(found[ByteIndex(i * columns + j)] - Expected(i, j, added));
        if (!(off <= most)) FAIL("row " << i << ", column " << j << " is off by " << off << " of " << most);
      }
    }
  }
};

// Half of a step; floats of 24 bits themselves round as much.
constexpr double kPartOf16 = 0.5 / 32639, kPartOf24 = 2.0 / 8355584;

}  // namespace

TEST_CASE("rows as numbers, their sums, and weights as floats are right on every instruction set") {
  ForEachTarget([] {
    const ByteRowKernels kernels = ChooseByteRowKernels();
    for (const std::int64_t depth : {1, 3, 16, 21, 64, 150}) {
      for (const int limbs : {2, 3}) {
        HostTensor x = HostTensor::Random({depth}, static_cast<std::uint32_t>(depth));
        const std::int64_t padded = PaddedDepth(depth), groups = SplitGroups(depth);
        std::vector<std::int8_t> bytes(ByteIndex(limbs * padded));
        std::vector<float> scales(ByteIndex(groups)), values = x.values<float>();
        std::vector<std::int32_t> starts(ByteIndex(limbs * groups));
        for (float& value : values) value *= 3;
        REQUIRE(
            kernels.split(values.data(), depth, limbs, padded, bytes.data(), scales.data(), starts.data()));
        std::int32_t sums = 0;
        for (const std::int32_t start : starts) sums += start;
        for (std::int64_t k = 0; k < depth; ++k) {
          std::int32_t number = 0;
          for (int limb = 0; limb < limbs; ++limb) {
            const std::int32_t byte = bytes[ByteIndex(limb * padded + k)];
            number = 256 * number + byte;
            sums += 128 * byte;
          }
          const double scale = scales[ByteIndex(k / kSplitGroup)];
          CHECK(std::fabs(number * scale - values[ByteIndex(k)]) <= scale * (limbs == 2 ? 0.51 : 1.51));
        }
        CHECK(sums == 0);
      }
    }
    const std::vector<std::int8_t> panel = SomeBytes({20, 16}).values<std::int8_t>();
    const std::vector<float> factors(16, 0.5F);
    std::vector<float> floats(8 * 16);
    kernels.expand(panel.data(), 16, 4, 7, factors.data(), floats.data());
    for (std::int64_t k = 4; k < 11; ++k) {
      for (std::int64_t j = 0; j < 16; ++j) {
        CHECK(floats[ByteIndex((k - 4) * 16 + j)] ==
              0.5F * static_cast<float>(panel[ByteIndex((k / 4 * 16 + j) * 4 + k % 4)]));
      }
    }
  });
}

TEST_CASE("products by bytes are as near as their numbers are") {
  for (const Shape& size :
       {Shape{1, 1, 1}, Shape{3, 5, 40}, Shape{9, 300, 33}, Shape{70, 64, 16}, Shape{5, 17, 70}}) {
    BytesCase of(size[0], size[1], size[2]);
    for (const bool added : {false, true}) {
      of.Check(16, added, kPartOf16);
      of.Check(24, added, kPartOf24);
    }
  }
}

TEST_CASE("products by bytes of rows that have no such numbers are those of floats") {
  BytesCase of(6, 300, 40);
  const auto x = of.x.elements<float>();
  for (std::int64_t k = 0; k < of.depth; ++k) x[of.depth + k] *= 1e-34F;  // row 1 is too small
  for (std::int64_t k = 0; k < of.depth; ++k) x[3 * of.depth + k] = 0;
  of.Check(24, false, kPartOf24);
  of.Check(16, true, kPartOf16);
  x[4 * of.depth + 7] = std::numeric_limits<float>::quiet_NaN();
  x[5 * of.depth + 9] = std::numeric_limits<float>::infinity();
  HostTensor out = HostTensor::Empty<float>({of.rows, of.columns});
  REQUIRE(Run("rewire.packed.matmul_bytes", {&of.x, &of.packed, &of.scale, &out},
              {{"columns", of.columns}}) == "");
  const std::vector<float> found = out.values<float>();
  const double small = of.Expected(1, 2, false);
  CHECK(std::fabs(found[ByteIndex(of.columns + 2)] - small) <= 1e-5 * std::fabs(small));
  for (std::int64_t j = 0; j < of.columns; ++j) {
    CHECK(found[ByteIndex(3 * of.columns + j)] == 0);
    CHECK(std::isnan(found[ByteIndex(4 * of.columns + j)]));
    CHECK_FALSE(std::isfinite(found[ByteIndex(5 * of.columns + j)]));
    CHECK(std::isfinite(found[ByteIndex(2 * of.columns + j)]));
  }
}

TEST_CASE("products by bytes refuse what does not fit") {
  BytesCase of(2, 5, 7);
  HostTensor out = HostTensor::Empty<float>({2, 7}), half = HostTensor::Empty<std::uint16_t>({2, 7});
  const auto call = [&](HostTensor* w, HostTensor* scale, HostTensor* to) {
    return Run("rewire.packed.matmul_bytes", {&of.x, w, scale, to}, {{"columns", std::int64_t{7}}});
  };
  CHECK(call(&of.packed, &of.scale, &out) == "");
  CHECK(call(&of.w, &of.scale, &out) ==
        "ValueError: rewire.packed.matmul_bytes: w has shape [5, 7], expected [16, 8]");
  CHECK(
      call(&of.scale, &of.scale, &out).starts_with("TypeError: rewire.packed.matmul_bytes: w has dtype f32"));
  CHECK(call(&of.packed, &of.sums, &out)
            .starts_with("TypeError: rewire.packed.matmul_bytes: scale has dtype i32"));
  CHECK(
      call(&of.packed, &of.bias, &half).starts_with("TypeError: rewire.packed.matmul_bytes: out has dtype"));
  HostTensor one = HostTensor::Random({1}, 5);
  CHECK(call(&of.packed, &one, &out) ==
        "ValueError: rewire.packed.matmul_bytes: scale has shape [1], expected [7]");
  HostTensor empty = HostTensor::Random({2, 0}, 6), none = HostTensor::Empty<std::int8_t>({16, 0});
  REQUIRE(Run("rewire.packed.matmul_bytes", {&empty, &none, &of.scale, &of.bias, &out},
              {{"columns", std::int64_t{7}}}) == "");
  CHECK(out.values<float>()[8] == of.bias.values<float>()[1]);
}

}  // namespace rewire::test
