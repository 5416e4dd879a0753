// SPDX-License-Identifier: Apache-2.0
// An LSTM by weights of 8 bits against one by the same weights as floats.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/product/packed_bytes.h"

namespace rewire::test {
namespace {

// Weights [directions, width, depth] as bytes and scales, and as floats.
struct Weights {
  HostTensor packed, scales, floats;

  Weights(std::int64_t directions, std::int64_t width, std::int64_t depth, std::uint32_t seed)
      : packed(HostTensor::Empty<std::int8_t>(
            {directions * kernel::cpu::PackedColumns(width), kernel::cpu::PaddedDepth(depth)})),
        scales(HostTensor::Random({directions, width}, seed)),
        floats(HostTensor::Empty<float>({directions, width, depth})) {
    for (float& scale : scales.elements<float>()) scale = (scale + 2) / 1000;
    std::int64_t to = 0;
    for (std::int64_t d = 0; d < directions; ++d) {
      HostTensor bytes = RandomBytes<std::int8_t>({width, depth}, seed + static_cast<std::uint32_t>(d));
      const Packed of_one = Pack(bytes, width, depth, "OI");
      for (const std::int8_t byte : of_one.w.values<std::int8_t>())
        packed.elements<std::int8_t>()[to++] = byte;
      for (std::int64_t i = 0; i < width * depth; ++i) {
        floats.elements<float>()[d * width * depth + i] =
            static_cast<float>(bytes.elements<std::int8_t>()[i]) *
            scales.elements<float>()[d * width + i / depth];
      }
    }
  }
};

// y, y_h and y_c.
struct Results {
  std::vector<HostTensor> tensors;

  Results(std::int64_t steps, std::int64_t directions, std::int64_t batch, std::int64_t hidden)
      : tensors{HostTensor::Empty<float>({steps, directions, batch, hidden}),
                HostTensor::Empty<float>({directions, batch, hidden}),
                HostTensor::Empty<float>({directions, batch, hidden})} {}

  // The arguments of a call.
  std::vector<HostTensor*> After(std::vector<HostTensor*> arguments) {
    for (HostTensor& tensor : tensors) arguments.push_back(&tensor);
    return arguments;
  }
};

// Inputs and states are rounded to 16 bits.
void CheckAlike(const HostTensor& given, const HostTensor& expected) {
  REQUIRE(given.size() == expected.size());
  const std::vector<float> values = given.values<float>(), right = expected.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) != std::isnan(right[i]) || std::fabs(values[i] - right[i]) > 2e-4F)
      FAIL("element " << i << " is " << values[i] << ", expected " << right[i]);
  }
}

void CheckAlike(const Results& given, const Results& expected) {
  for (std::size_t i = 0; i < 3; ++i) CheckAlike(given.tensors[i], expected.tensors[i]);
}

TEST_CASE("lstm by weights of 8 bits is that of the weights, in all sizes and directions") {
  struct Size {
    std::int64_t batch, hidden, inputs;
  };
  // Panels in full and in part, rows by tiles and by vectors, depths of no whole quad.
  const auto [batch, hidden, inputs] =
      GENERATE(Size{1, 16, 8}, Size{3, 7, 5}, Size{6, 24, 33}, Size{2, 300, 3});
  const std::string direction = GENERATE("forward", "reverse", "bidirectional");
  const std::string activations = GENERATE("", "Sigmoid,Tanh,Softsign");
  CAPTURE(batch, hidden, inputs, direction, activations);
  const std::int64_t steps = 5, directions = direction == "bidirectional" ? 2 : 1, width = 4 * hidden;
  HostTensor x = HostTensor::Random({steps, batch, inputs}, 1);
  HostTensor b = HostTensor::Random({directions, 2 * width}, 2);
  HostTensor h0 = HostTensor::Random({directions, batch, hidden}, 3), c0 = h0;
  std::vector<std::int32_t> each(static_cast<std::size_t>(batch), 5);
  each.back() = 3;
  HostTensor lengths = HostTensor::Of<std::int32_t>({batch}, each);
  Weights w(directions, width, inputs, 4), r(directions, width, hidden, 6);
  const std::string of_both = directions == 2 ? activations + "," + activations : activations;
  AttributeList attributes = {{"direction", direction.c_str()}, {"hidden_size", hidden}};
  if (!activations.empty()) attributes.emplace_back("activations", of_both.c_str());
  Results expected(steps, directions, batch, hidden), given(steps, directions, batch, hidden);
  REQUIRE(Run("rewire.lstm", expected.After({&x, &w.floats, &r.floats, &b, &lengths, &h0, &c0}),
              attributes) == "");
  REQUIRE(Run("rewire.lstm_bytes",
              given.After({&x, &w.packed, &r.packed, &b, &lengths, &h0, &c0, &w.scales, &r.scales}),
              attributes) == "");
  CheckAlike(given, expected);
}

TEST_CASE("lstm by weights of 8 bits takes inputs that are multiplied already, and large ones") {
  const std::int64_t steps = 4, batch = 2, hidden = 20, width = 4 * hidden;
  HostTensor sums = HostTensor::Random({steps, batch, width}, 1);
  // No scale serves a row with this number: it is multiplied by floats.
  sums.elements<float>()[3] = std::numeric_limits<float>::infinity();
  Weights r(1, width, hidden, 6);
  Results expected(steps, 1, batch, hidden), given(steps, 1, batch, hidden);
  HostTensor r_matrix = HostTensor::Of<float>({width, hidden}, r.floats.values<float>());
  HostTensor r_packed = HostTensor::Empty<float>({kernel::cpu::PackedColumns(width), hidden});
  REQUIRE(Run("rewire.packed.pack", {&r_matrix, &r_packed}, {{"order", "OI"}}) == "");
  REQUIRE(Run("rewire.lstm", expected.After({&sums, nullptr, &r_packed}), {{"packed", std::int64_t{1}}}) ==
          "");
  REQUIRE(
      Run("rewire.lstm_bytes",
          given.After({&sums, nullptr, &r.packed, nullptr, nullptr, nullptr, nullptr, nullptr, &r.scales}),
          {{"hidden_size", hidden}}) == "");
  CheckAlike(given, expected);

  // With the batch first, and nothing asked of y.
  HostTensor x = HostTensor::Random({batch, steps, 6}, 2), none = HostTensor::Empty<float>({0});
  HostTensor h = HostTensor::Empty<float>({batch, 1, hidden}), c = h, plain_h = h, plain_c = h;
  Weights w(1, width, 6, 4);
  REQUIRE(Run("rewire.lstm", {&x, &w.floats, &r.floats, &none, &plain_h, &plain_c},
              {{"layout", std::int64_t{1}}}) == "");
  REQUIRE(
      Run("rewire.lstm_bytes",
          {&x, &w.packed, &r.packed, nullptr, nullptr, nullptr, nullptr, &w.scales, &r.scales, &none, &h, &c},
          {{"layout", std::int64_t{1}}, {"hidden_size", hidden}}) == "");
  CheckAlike(h, plain_h);
  CheckAlike(c, plain_c);
}

TEST_CASE("lstm by weights of 8 bits has NaN and infinities where that of the weights has them") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float value = GENERATE_COPY(std::nanf(""), infinity, -infinity);
  const float held = GENERATE_COPY(0.5F, -infinity);  // a cell's, behind a gate that may be closed
  const std::size_t changed = GENERATE(0, 1, 2, 3);
  CAPTURE(value, held, changed);
  const std::int64_t steps = 4, batch = 2, hidden = 19, inputs = 5, width = 4 * hidden;
  HostTensor x = HostTensor::Random({steps, batch, inputs}, 1), b = HostTensor::Random({2, 2 * width}, 2);
  HostTensor h0 = HostTensor::Random({2, batch, hidden}, 3), c0 = h0;
  c0.elements<float>()[2] = c0.elements<float>()[4 * hidden - 1] = held;
  HostTensor* const arguments[] = {&x, &b, &h0, &c0};
  arguments[changed]->elements<float>()[arguments[changed]->size() * 2 / 5] = value;
  Weights w(2, width, inputs, 4), r(2, width, hidden, 6);
  Results expected(steps, 2, batch, hidden), given(steps, 2, batch, hidden);
  const AttributeList attributes = {{"direction", "bidirectional"}, {"hidden_size", hidden}};
  REQUIRE(Run("rewire.lstm", expected.After({&x, &w.floats, &r.floats, &b, nullptr, &h0, &c0}), attributes) ==
          "");
  REQUIRE(Run("rewire.lstm_bytes",
              given.After({&x, &w.packed, &r.packed, &b, nullptr, &h0, &c0, &w.scales, &r.scales}),
              attributes) == "");
  CheckAlike(given, expected);
}

TEST_CASE("lstm by weights of 8 bits refuses what it cannot use") {
  const std::int64_t hidden = 3, width = 12;
  HostTensor x = HostTensor::Random({2, 1, 5}, 1);
  Weights w(1, width, 5, 2), r(1, width, hidden, 3);
  Results results(2, 1, 1, hidden);
  const auto call = [&](HostTensor* given_w, HostTensor* given_r, HostTensor* w_scale, HostTensor* r_scale,
                        const AttributeList& attributes) {
    return Run("rewire.lstm_bytes",
               results.After({&x, given_w, given_r, nullptr, nullptr, nullptr, nullptr, w_scale, r_scale}),
               attributes);
  };
  const AttributeList sized = {{"hidden_size", hidden}};
  CHECK(call(&w.packed, &r.packed, &w.scales, &r.scales, sized) == "");
  CHECK(call(&w.packed, &r.packed, &w.scales, &r.scales, {}).find("hidden_size") != std::string::npos);
  CHECK(call(&w.packed, &r.packed, nullptr, &r.scales, sized) ==
        "ValueError: rewire.lstm_bytes: w is given without w_scale");
  CHECK(call(&w.floats, &r.packed, &w.scales, &r.scales, sized) ==
        "ValueError: rewire.lstm_bytes: w has shape [1, 12, 5], expected rank 2");
  CHECK(call(&w.scales, &r.packed, &w.scales, &r.scales, sized)
            .starts_with("TypeError: rewire.lstm_bytes: w has dtype f32"));
  CHECK(call(&r.packed, &r.packed, &w.scales, &r.scales, sized) ==
        "ValueError: rewire.lstm_bytes: w has shape [16, 4], expected [16, 8]");
  CHECK(call(&w.packed, &w.packed, &w.scales, &r.scales, sized) ==
        "ValueError: rewire.lstm_bytes: r has shape [16, 8], expected [16, 4]");
  HostTensor few = HostTensor::Random({1, 3}, 4);
  CHECK(call(&w.packed, &r.packed, &w.scales, &few, sized) ==
        "ValueError: rewire.lstm_bytes: r_scale has shape [1, 3], expected [1, 12]");
}

}  // namespace
}  // namespace rewire::test
