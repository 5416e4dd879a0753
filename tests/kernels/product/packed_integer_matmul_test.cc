// SPDX-License-Identifier: Apache-2.0
// Integer products by packed weights against the kernels that multiply one by one: both are exact.
#include <catch2/catch.hpp>
#include <optional>

#include "rewire/kernels/cpu/product/integer_panels.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/product/packed_bytes.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ChooseIntegerPanelKernel;
using kernel::cpu::IntegerFinish;
using kernel::cpu::IntegerPanelKernel;
using kernel::cpu::IntegerTile;
using kernel::cpu::PaddedDepth;

// A tile of rows in segments of these bytes.
struct TileCase {
  int rows;
  std::int64_t segments, depth, columns;
  bool w_zero;
};

void CheckTile(const IntegerPanelKernel& kernel, const TileCase& c) {
  INFO(c.rows << " rows, " << c.segments << " segments, depth " << c.depth << ", " << c.columns << " columns"
              << (c.w_zero ? ", zeros" : ""));
  const std::int64_t width = c.columns > 16 ? 32 : 16;
  const std::int64_t padded = PaddedDepth(c.depth);
  const HostTensor x = RandomBytes<std::uint8_t>({c.segments * c.rows, padded}, 1);
  const HostTensor panel = RandomBytes<std::int8_t>({c.segments * padded * width}, 2);
  const auto xs = x.values<std::uint8_t>();
  auto ws = panel.values<std::int8_t>();
  std::vector<const std::uint8_t*> pointers;
  for (std::int64_t i = 0; i < c.segments * c.rows; ++i) pointers.push_back(xs.data() + i * padded);
  const auto byte = [&](std::int64_t k, std::int64_t j) -> std::int8_t& {
    return ws[At((k / 4 * width + j) * 4 + k % 4)];
  };
  for (std::int64_t k = 0; k < c.segments * padded; ++k) {
    for (std::int64_t j = 0; j < width && k % padded >= c.depth; ++j) byte(k, j) = 0;
  }
  std::vector<std::int32_t> start, w_zero, out(At(c.rows * (c.columns + 3)), -77);
  for (std::int64_t j = 0; j < c.columns; ++j) start.push_back(static_cast<std::int32_t>(j * 1000 - 5));
  for (std::int64_t j = 0; j < c.columns; ++j)
    w_zero.push_back(static_cast<std::int32_t>(j * 37 % 256 - 128));
  IntegerTile tile{pointers.data(), c.rows,       c.segments,
                   c.depth,         ws.data(),    width,
                   c.columns,       start.data(), c.w_zero ? w_zero.data() : nullptr,
                   IntegerFinish{}, out.data(),   c.columns + 3};
  kernel.run(tile);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns + 3; ++j) {
      std::int32_t sum = j < c.columns ? start[At(j)] : -77;
      for (std::int64_t k = 0; j < c.columns && k < c.segments * padded; ++k) {
        if (k % padded >= c.depth) continue;
        sum +=
            pointers[At(k / padded * c.rows + i)][k % padded] * (byte(k, j) - (c.w_zero ? w_zero[At(j)] : 0));
      }
      INFO("row " << i << ", column " << j);
      REQUIRE(out[At(i * (c.columns + 3) + j)] == sum);
    }
  }
  const std::vector<std::int32_t> computed = out;
  std::vector<std::int32_t> row_sums(At(c.rows), -77);
  kernel.sum_rows(tile, row_sums.data());
  std::fill(out.begin(), out.end(), -77);
  tile.row_sums = row_sums.data();
  kernel.run(tile);
  REQUIRE(out == computed);
}

// The products of two kinds of bytes, with the zeros that there may be.
template <typename X, typename W>
void CheckMatMul(std::int64_t m, std::int64_t k, std::int64_t n, bool x_zeros, int w_zeros) {
  INFO(m << " x " << k << " x " << n << ", zeros of x: " << x_zeros << ", of w: " << w_zeros);
  HostTensor none = HostTensor::Empty<float>({0});
  HostTensor x = RandomBytes<X>({2, m, k}, 3);
  HostTensor w = RandomBytes<W>({k, n}, 4);
  HostTensor x_zero = RandomBytes<X>({}, static_cast<std::uint32_t>(n));
  HostTensor w_zero = w_zeros == 1 ? RandomBytes<W>({}, 6) : RandomBytes<W>({n}, 7);
  HostTensor expected = HostTensor::Empty<std::int32_t>({2, m, n});
  HostTensor out = HostTensor::Empty<std::int32_t>({2, m, n});
  std::vector<HostTensor*> arguments = {&x, &w};
  // A zero of w needs one of x before it.
  HostTensor no_x_zero = HostTensor::Of<X>({}, {X{0}});
  if (x_zeros || w_zeros != 0) arguments.push_back(x_zeros ? &x_zero : &no_x_zero);
  if (w_zeros != 0) arguments.push_back(&w_zero);
  arguments.push_back(&expected);
  REQUIRE(Run("rewire.matmul_integer", arguments) == "");
  Packed packed = Pack(w, n, k, "IO");
  HostTensor lowered = w_zeros != 0 ? Lowered<W>(w_zero) : Lowered<W>(HostTensor::Of<W>({}, {W{0}}));
  const bool needs_zero = w_zeros != 0 || !std::is_signed_v<W>;
  REQUIRE(Run("rewire.packed.matmul_integer",
              {&x, &packed.w, &packed.sums, x_zeros ? &x_zero : &none, needs_zero ? &lowered : &none, &out},
              {{"columns", n}}) == "");
  REQUIRE(out.values<std::int32_t>() == expected.values<std::int32_t>());
}

}  // namespace

TEST_CASE("the integer panel kernels of every instruction set are exact") {
  ForEachTarget([] {
    for (const bool any_instruction : {false, true}) {
      const IntegerPanelKernel kernel = ChooseIntegerPanelKernel(any_instruction);
      for (int rows = 1; rows <= kernel.rows; ++rows) {
        for (std::int64_t depth : {1, 4, 7, 12, 70, 601}) {
          for (std::int64_t columns : {1, 5, 16, 17, 24, 32}) {
            CheckTile(kernel, {rows, 1, depth, columns, depth % 2 == 0});
            CheckTile(kernel, {rows, 2, depth, columns, false});
            CheckTile(kernel, {rows, 2, depth, columns, true});
          }
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("integer products by packed weights are those of matmul_integer", "",
                   (std::pair<std::uint8_t, std::int8_t>), (std::pair<std::int8_t, std::int8_t>),
                   (std::pair<std::uint8_t, std::uint8_t>), (std::pair<std::int8_t, std::uint8_t>)) {
  using X = typename TestType::first_type;
  using W = typename TestType::second_type;
  for (const Shape& size : {Shape{1, 1, 1}, Shape{3, 5, 40}, Shape{20, 17, 33}, Shape{70, 64, 16},
                            Shape{5, 300, 70}, Shape{600, 9, 40}}) {
    for (const bool x_zero : {false, true}) {
      for (const int w_zero : {0, 1, 2}) CheckMatMul<X, W>(size[0], size[1], size[2], x_zero, w_zero);
    }
  }
}

template <typename X, typename W>
void CheckConv(const LastChannels& c, bool w_zeros) {
  INFO("x of " << c.x[1] << " by " << c.x[2] << ", kernel " << c.kernel[0] << " by " << c.kernel[1]);
  HostTensor x = RandomBytes<X>(c.x, 1);
  HostTensor w = RandomBytes<W>({c.channels, c.x[3], c.kernel[0], c.kernel[1]}, 2);
  HostTensor x_zero = RandomBytes<X>({}, 3);
  HostTensor w_zero = RandomBytes<W>({c.channels}, 4);
  if (!w_zeros) std::fill(w_zero.elements<W>().begin(), w_zero.elements<W>().end(), W{0});
  AttributeList attributes = {{"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}};
  const Shape last = OutShape(c);
  HostTensor x_first = ChannelsFirst<X>(x);
  HostTensor expected = HostTensor::Empty<std::int32_t>({last[0], last[3], last[1], last[2]});
  REQUIRE(Run("rewire.conv_integer", {&x_first, &w, &x_zero, &w_zero, &expected}, attributes) == "");

  const std::int64_t depth = c.x[3] * c.kernel[0] * c.kernel[1];
  Packed packed = Pack(w, c.channels, depth, "OI", c.kernel[0] * (c.dilations[1] == 1 ? 1 : c.kernel[1]));
  HostTensor none = HostTensor::Empty<float>({0});
  HostTensor lowered = Lowered<W>(w_zero);
  HostTensor out = HostTensor::Empty<std::int32_t>(last);
  attributes.emplace_back("channels", c.channels);
  attributes.emplace_back("kernel_shape", c.kernel);
  const bool needs_zero = w_zeros || !std::is_signed_v<W>;
  REQUIRE(Run("rewire.packed.conv_integer",
              {&x, &packed.w, &packed.sums, &x_zero, needs_zero ? &lowered : &none, &out}, attributes) == "");
  REQUIRE(ChannelsFirst<std::int32_t>(out).template values<std::int32_t>() ==
          expected.values<std::int32_t>());
}

TEST_CASE("integer convolutions by packed weights are those of conv_integer") {
  const LastChannels cases[] = {
      {{1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{2, 5, 7, 3}, 18, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{2, 5, 7, 8}, 18, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {{2, 9, 21, 5}, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{2, 9, 21, 4}, 33, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{1, 9, 21, 4}, 20, {3, 5}, {2, 2}, {1, 1}, {1, 2, 1, 2}},
      {{1, 12, 13, 2}, 8, {3, 2}, {1, 3}, {2, 3}, {0, 1, 4, 0}},
      {{1, 3, 4, 6}, 6, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {{1, 30, 1, 6}, 40, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}},
      {{1, 1, 900, 1}, 40, {1, 9}, {1, 2}, {1, 1}, {0, 4, 0, 4}},  // a line, which the threads share
      // These have enough work for tiles, where there are any.
      {{2, 17, 40, 32}, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{2, 17, 41, 23}, 40, {3, 3}, {2, 2}, {1, 1}, {1, 0, 2, 1}},
      {{1, 30, 40, 3}, 32, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
      {{1, 30, 40, 33}, 16, {3, 2}, {3, 1}, {2, 2}, {1, 1, 1, 1}},
      {{2, 1, 9000, 64}, 16, {1, 9}, {1, 2}, {1, 1}, {0, 4, 0, 4}},  // lines in parts
      {{3, 40, 30, 64}, 64, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
  };
  for (const LastChannels& c : cases) {
    for (const bool w_zeros : {false, true}) {
      CheckConv<std::uint8_t, std::int8_t>(c, w_zeros);
      CheckConv<std::int8_t, std::uint8_t>(c, w_zeros);
    }
  }
}

TEMPLATE_TEST_CASE("packed integer products end as requantize does", "", std::uint8_t, std::int8_t) {
  const std::int64_t m = 19, k = 37, n = 35;
  HostTensor x = RandomBytes<std::uint8_t>({m, k}, 1);
  HostTensor w = RandomBytes<std::int8_t>({k, n}, 2);
  HostTensor x_zero = HostTensor::Of<std::uint8_t>({}, {131});
  HostTensor none = HostTensor::Empty<float>({0});
  std::vector<std::int32_t> terms;
  std::vector<float> w_scales, factors;
  for (std::int64_t j = 0; j < n; ++j) {
    terms.push_back(static_cast<std::int32_t>(j * 5000 - 60000));
    w_scales.push_back(0.5F / static_cast<float>(1 + j));  // many results lie between two integers
    factors.push_back(0.25F * w_scales.back() / 16.0F);
  }
  HostTensor bias = HostTensor::Of<std::int32_t>({n}, terms);
  HostTensor sums = HostTensor::Empty<std::int32_t>({m, n});
  HostTensor biased = HostTensor::Empty<std::int32_t>({m, n});
  HostTensor x_scale = HostTensor::Of<float>({}, {0.25F}), y_scale = HostTensor::Of<float>({}, {16.0F});
  HostTensor w_scale = HostTensor::Of<float>({n}, w_scales), factor = HostTensor::Of<float>({n}, factors);
  HostTensor zero = HostTensor::Of<TestType>({}, {TestType{7}});
  HostTensor expected = HostTensor::Empty<TestType>({m, n}), out = HostTensor::Empty<TestType>({m, n});
  REQUIRE(Run("rewire.matmul_integer", {&x, &w, &x_zero, &sums}) == "");
  REQUIRE(Run("rewire.add", {&sums, &bias, &biased}) == "");
  REQUIRE(Run("rewire.requantize", {&biased, &x_scale, &w_scale, &y_scale, &zero, &expected}) == "");
  Packed packed = Pack(w, n, k, "IO");
  const std::vector<HostTensor*> arguments = {&x,    &packed.w, &packed.sums, &x_zero,
                                              &none, &factor,   &bias,        &out};
  REQUIRE(Run("rewire.packed.matmul_integer", arguments, {{"columns", n}, {"zero", std::int64_t{7}}}) == "");
  CHECK(out.template values<TestType>() == expected.template values<TestType>());
  // Held in a range, as an activation leaves it.
  REQUIRE(Run("rewire.packed.matmul_integer", arguments,
              {{"columns", n},
               {"zero", std::int64_t{7}},
               {"least", std::int64_t{7}},
               {"most", std::int64_t{90}}}) == "");
  std::vector<TestType> held = expected.template values<TestType>();
  for (TestType& value : held) value = std::clamp<TestType>(value, 7, 90);
  CHECK(out.template values<TestType>() == held);
}

TEST_CASE("packed integer products end as floats, with a bias and an activation") {
  const std::int64_t m = 5, k = 8, n = 20;
  HostTensor x = RandomBytes<std::uint8_t>({m, k}, 1);
  HostTensor w = RandomBytes<std::int8_t>({k, n}, 2);
  HostTensor none = HostTensor::Empty<float>({0});
  HostTensor sums = HostTensor::Empty<std::int32_t>({m, n});
  HostTensor scale = HostTensor::Of<float>({1}, {0.25F});
  HostTensor bias = HostTensor::Random({n}, 3);
  HostTensor out = HostTensor::Empty<float>({m, n});
  REQUIRE(Run("rewire.matmul_integer", {&x, &w, &sums}) == "");
  Packed packed = Pack(w, n, k, "IO");
  REQUIRE(Run("rewire.packed.matmul_integer",
              {&x, &packed.w, &packed.sums, &none, &none, &scale, &bias, &out},
              {{"columns", n}, {"activation", "relu"}}) == "");
  for (std::int64_t i = 0; i < m * n; ++i) {
    const float sum = static_cast<float>(sums.elements<std::int32_t>()[i]) * 0.25F;
    CHECK(out.elements<float>()[i] ==
          Approx(std::max(0.0F, sum + bias.elements<float>()[i % n])).margin(1e-3));
  }
}

TEST_CASE("packed integer kernels refuse what does not fit") {
  HostTensor x = RandomBytes<std::uint8_t>({2, 5}, 1);
  HostTensor w = RandomBytes<std::int8_t>({5, 7}, 2);
  HostTensor none = HostTensor::Empty<float>({0});
  Packed packed = Pack(w, 7, 5, "IO");
  HostTensor sums = HostTensor::Empty<std::int32_t>({2, 7});
  HostTensor bytes = HostTensor::Empty<std::uint8_t>({2, 7});
  HostTensor scale = HostTensor::Of<float>({}, {1.0F});
  const AttributeList columns = {{"columns", std::int64_t{7}}};
  const auto call = [&](std::vector<HostTensor*> tensors, const AttributeList& attributes) {
    tensors.insert(tensors.begin(), &x);
    return Run("rewire.packed.matmul_integer", tensors, attributes);
  };
  CHECK(call({&w, &packed.sums, &sums}, columns) ==
        "ValueError: rewire.packed.matmul_integer: w has shape [5, 7], expected [16, 8]");
  CHECK(call({&packed.w, &packed.sums, &bytes}, columns) ==
        "ValueError: rewire.packed.matmul_integer: out has dtype u8 without scale, expected scale for all "
        "but "
        "i32");
  CHECK(call({&packed.w, &packed.sums, &none, &none, &scale, &sums}, columns) ==
        "ValueError: rewire.packed.matmul_integer: out has dtype i32 and scale is given, expected scale "
        "for all "
        "but i32");
  AttributeList activated = columns;
  activated.emplace_back("activation", "relu");
  CHECK(call({&packed.w, &packed.sums, &none, &none, &scale, &bytes}, activated) ==
        "ValueError: rewire.packed.matmul_integer: out has dtype u8, expected f32 for an activation");
  HostTensor out = HostTensor::Empty<std::int8_t>({16, 8}), of_columns = HostTensor::Empty<std::int32_t>({7});
  CHECK(
      Run("rewire.packed.pack_integers", {&w, &out, &of_columns}, {{"segments", std::int64_t{2}}}) ==
      "ValueError: rewire.packed.pack_integers: w has shape [5, 7], expected a depth that is a multiple of 2 "
      "segments");
}

}  // namespace rewire::test
