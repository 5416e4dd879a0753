// SPDX-License-Identifier: Apache-2.0
// Recurrent layers against the equations of ONNX, element by element in double precision.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

// Units are brought forward by vectors, and what is left by a part of one.
constexpr std::int64_t kSteps = 5, kBatch = 3, kInputs = 4, kHidden = 22;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The arguments of a layer and what its definition makes of them.
struct Layer {
  std::int64_t gates;
  std::int64_t directions;
  std::vector<std::int32_t> lengths;
  HostTensor x = HostTensor::Random({kSteps, kBatch, kInputs}, 1);
  HostTensor w = HostTensor::Random({directions, gates* kHidden, kInputs}, 2);
  HostTensor r = HostTensor::Random({directions, gates* kHidden, kHidden}, 3);
  HostTensor b = HostTensor::Random({directions, 2 * gates* kHidden}, 4);
  HostTensor h0 = HostTensor::Random({directions, kBatch, kHidden}, 5);
  HostTensor c0 = HostTensor::Random({directions, kBatch, kHidden}, 6);
  HostTensor p = HostTensor::Random({directions, 3 * kHidden}, 7);

  static double At(const HostTensor& tensor, std::int64_t i) {
    return static_cast<double>(tensor.values<float>()[static_cast<std::size_t>(i)]);
  }
  // Row `row` of w times x at a time, and of r times a state, with their biases.
  double FromInput(std::int64_t d, std::int64_t row, std::int64_t time, std::int64_t n) const {
    double sum = At(b, d * 2 * gates * kHidden + row);
    for (std::int64_t i = 0; i < kInputs; ++i)
      sum += At(w, (d * gates * kHidden + row) * kInputs + i) * At(x, (time * kBatch + n) * kInputs + i);
    return sum;
  }
  double FromState(std::int64_t d, std::int64_t row, const std::vector<double>& state) const {
    double sum = At(b, (d * 2 + 1) * gates * kHidden + row);
    for (std::int64_t i = 0; i < kHidden; ++i)
      sum += At(r, (d * gates * kHidden + row) * kHidden + i) * state[static_cast<std::size_t>(i)];
    return sum;
  }

  // step(d, time, n, state, cell): changes one batch's state and cell.
  using Step = std::function<void(std::int64_t, std::int64_t, std::int64_t, std::vector<double>&,
                                  std::vector<double>&)>;
  void Check(const HostTensor& y, const HostTensor& y_h, const Step& step, bool only_reversed = false) const {
    for (std::int64_t d = 0; d < directions; ++d) {
      for (std::int64_t n = 0; n < kBatch; ++n) {
        const std::int64_t length = lengths.empty() ? kSteps : lengths[static_cast<std::size_t>(n)];
        std::vector<double> state, cell;
        for (std::int64_t j = 0; j < kHidden; ++j) {
          state.push_back(At(h0, (d * kBatch + n) * kHidden + j));
          cell.push_back(At(c0, (d * kBatch + n) * kHidden + j));
        }
        for (std::int64_t t = 0; t < kSteps; ++t) {
          const bool reversed = d == 1 || only_reversed;
          const std::int64_t time = t < length && reversed ? length - 1 - t : t;
          if (t < length) step(d, time, n, state, cell);
          for (std::int64_t j = 0; j < kHidden; ++j) {
            const double expected = t < length ? state[static_cast<std::size_t>(j)] : 0;
            const double given = At(y, ((time * directions + d) * kBatch + n) * kHidden + j);
            if (!(std::fabs(given - expected) <= 1e-4))
              FAIL("y of direction " << d << " at " << time << ": " << given);
          }
        }
        for (std::int64_t j = 0; j < kHidden; ++j)
          CHECK(At(y_h, (d * kBatch + n) * kHidden + j) ==
                Approx(state[static_cast<std::size_t>(j)]).margin(1e-4));
      }
    }
  }
};

TEST_CASE("rnn in each direction, with sequences of their own lengths") {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    CAPTURE(direction);
    const bool both = direction == std::string("bidirectional");
    Layer layer{1, both ? 2 : 1, {5, 2, 0}};
    HostTensor lengths = HostTensor::Of<std::int32_t>({kBatch}, layer.lengths);
    HostTensor y = HostTensor::Empty<float>({kSteps, layer.directions, kBatch, kHidden});
    HostTensor y_h = HostTensor::Empty<float>({layer.directions, kBatch, kHidden});
    REQUIRE(Run("rewire.rnn", {&layer.x, &layer.w, &layer.r, &layer.b, &lengths, &layer.h0, &y, &y_h},
                {{"direction", direction}, {"clip", 1.5}}) == "");
    layer.Check(
        y, y_h,
        [&](auto d, auto time, auto n, auto& state, auto&) {
          const std::vector<double> before = state;
          for (std::int64_t j = 0; j < kHidden; ++j) {
            const double sum = layer.FromInput(d, j, time, n) + layer.FromState(d, j, before);
            state[static_cast<std::size_t>(j)] = std::tanh(std::fmin(1.5, std::fmax(-1.5, sum)));
          }
        },
        direction == std::string("reverse"));
  }
}

TEST_CASE("rnn by each of the functions") {
  struct Function {
    const char* name;
    std::function<double(double)> exact;
  };
  const Function functions[] = {
      {"Sigmoid", Sigmoid},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Relu", [](double x) { return std::fmax(0, x); }},
      {"Affine", [](double x) { return 0.25 * x + 0.5; }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.25 * x : x; }},
      {"ThresholdedRelu", [](double x) { return x < 0.25 ? 0 : x; }},
      {"ScaledTanh", [](double x) { return 0.25 * std::tanh(0.5 * x); }},
      {"HardSigmoid", [](double x) { return std::fmin(1, std::fmax(0, 0.25 * x + 0.5)); }},
      {"Elu", [](double x) { return x < 0 ? 0.25 * std::expm1(x) : x; }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
  };
  for (const Function& function : functions) {
    CAPTURE(function.name);
    Layer layer{1, 1, {}};
    HostTensor none = HostTensor::Empty<std::int32_t>({0});
    HostTensor y = HostTensor::Empty<float>({kSteps, 1, kBatch, kHidden});
    HostTensor y_h = HostTensor::Empty<float>({1, kBatch, kHidden});
    REQUIRE(Run("rewire.rnn", {&layer.x, &layer.w, &layer.r, &layer.b, &none, &layer.h0, &y, &y_h},
                {{"activations", function.name},
                 {"activation_alpha", std::vector<double>{0.25}},
                 {"activation_beta", std::vector<double>{0.5}},
                 {"clip", 2.0}}) == "");
    layer.Check(y, y_h, [&](auto d, auto time, auto n, auto& state, auto&) {
      const std::vector<double> before = state;
      for (std::int64_t j = 0; j < kHidden; ++j) {
        const double sum = layer.FromInput(d, j, time, n) + layer.FromState(d, j, before);
        state[static_cast<std::size_t>(j)] = function.exact(std::fmin(2, std::fmax(-2, sum)));
      }
    });
  }
}

TEST_CASE("gru before and after its reset gate") {
  for (int linear : {0, 1}) {
    Layer layer{3, 2, {3, 5, 1}};
    HostTensor lengths = HostTensor::Of<std::int32_t>({kBatch}, layer.lengths);
    HostTensor y = HostTensor::Empty<float>({kSteps, 2, kBatch, kHidden});
    HostTensor y_h = HostTensor::Empty<float>({2, kBatch, kHidden});
    REQUIRE(
        Run("rewire.gru", {&layer.x, &layer.w, &layer.r, &layer.b, &lengths, &layer.h0, &y, &y_h},
            {{"direction", "bidirectional"}, {"linear_before_reset", linear}, {"hidden_size", kHidden}}) ==
        "");
    layer.Check(y, y_h, [&](auto d, auto time, auto n, auto& state, auto&) {
      const std::vector<double> before = state;
      std::vector<double> reset(kHidden), passed(kHidden);
      for (std::int64_t j = 0; j < kHidden; ++j) {
        const auto at = static_cast<std::size_t>(j);
        reset[at] =
            Sigmoid(layer.FromInput(d, kHidden + j, time, n) + layer.FromState(d, kHidden + j, before));
        passed[at] = reset[at] * before[at];
      }
      for (std::int64_t j = 0; j < kHidden; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const double z = Sigmoid(layer.FromInput(d, j, time, n) + layer.FromState(d, j, before));
        const std::int64_t row = 2 * kHidden + j;
        const double h = std::tanh(
            layer.FromInput(d, row, time, n) +
            (linear != 0 ? reset[at] * layer.FromState(d, row, before) : layer.FromState(d, row, passed)));
        state[at] = (1 - z) * h + z * before[at];
      }
    });
  }
}

TEST_CASE("lstm with peepholes and the usual functions") {
  Layer layer{4, 2, {5, 2, 0}};
  HostTensor lengths = HostTensor::Of<std::int32_t>({kBatch}, layer.lengths);
  HostTensor y = HostTensor::Empty<float>({kSteps, 2, kBatch, kHidden});
  HostTensor y_h = HostTensor::Empty<float>({2, kBatch, kHidden}), y_c = y_h;
  REQUIRE(
      Run("rewire.lstm",
          {&layer.x, &layer.w, &layer.r, &layer.b, &lengths, &layer.h0, &layer.c0, &layer.p, &y, &y_h, &y_c},
          {{"direction", "bidirectional"}}) == "");
  layer.Check(y, y_h, [&](auto d, auto time, auto n, auto& state, auto& cell) {
    const std::vector<double> before = state;
    for (std::int64_t j = 0; j < kHidden; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const auto sum = [&](std::int64_t k) {
        return layer.FromInput(d, k * kHidden + j, time, n) + layer.FromState(d, k * kHidden + j, before);
      };
      const auto peep = [&](std::int64_t k) {
        return Layer::At(layer.p, (d * 3 + k) * kHidden + j) * cell[at];
      };
      const double in = Sigmoid(sum(0) + peep(0)), forget = Sigmoid(sum(2) + peep(2));
      cell[at] = forget * cell[at] + in * std::tanh(sum(3));
      state[at] = Sigmoid(sum(1) + peep(1)) * std::tanh(cell[at]);
    }
  });
}

TEST_CASE("lstm with peepholes, and without what it can do without") {
  Layer layer{4, 2, {}};
  HostTensor none = HostTensor::Empty<std::int32_t>({0});
  HostTensor y = HostTensor::Empty<float>({kSteps, 2, kBatch, kHidden});
  HostTensor y_h = HostTensor::Empty<float>({2, kBatch, kHidden});
  HostTensor y_c = HostTensor::Empty<float>({2, kBatch, kHidden});
  REQUIRE(Run("rewire.lstm",
              {&layer.x, &layer.w, &layer.r, &layer.b, &none, &layer.h0, &layer.c0, &layer.p, &y, &y_h, &y_c},
              {{"direction", "bidirectional"},
               {"activations", "Sigmoid,Tanh,Softsign,HardSigmoid,Relu,Tanh"},
               {"activation_alpha", std::vector<double>{0.3}}}) == "");
  layer.Check(y, y_h, [&](auto d, auto time, auto n, auto& state, auto& cell) {
    const std::vector<double> before = state;
    const auto gate = [&](double x) {
      return d == 0 ? Sigmoid(x) : std::fmin(1, std::fmax(0, 0.3 * x + 0.5));
    };
    for (std::int64_t j = 0; j < kHidden; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const auto sum = [&](std::int64_t k) {
        return layer.FromInput(d, k * kHidden + j, time, n) + layer.FromState(d, k * kHidden + j, before);
      };
      const auto peep = [&](std::int64_t k) {
        return Layer::At(layer.p, (d * 3 + k) * kHidden + j) * cell[at];
      };
      const double in = gate(sum(0) + peep(0));
      const double forget = gate(sum(2) + peep(2));
      cell[at] = forget * cell[at] + in * (d == 0 ? std::tanh(sum(3)) : std::fmax(0, sum(3)));
      const double out = gate(sum(1) + peep(1));
      state[at] = out * (d == 0 ? cell[at] / (1 + std::fabs(cell[at])) : std::tanh(cell[at]));
    }
  });

  // The same layer with the batch first gives the same states, and y is not needed.
  HostTensor turned = HostTensor::Empty<float>({kBatch, kSteps, kInputs});
  for (std::int64_t i = 0; i < turned.size(); ++i) {
    turned.elements<float>()[i] =
        layer.x.elements<float>()[(i / kInputs % kSteps * kBatch + i / (kInputs * kSteps)) * kInputs +
                                  i % kInputs];
  }
  HostTensor no_y = HostTensor::Empty<float>({0});
  HostTensor h = HostTensor::Empty<float>({kBatch, 2, kHidden}),
             c = HostTensor::Empty<float>({kBatch, 2, kHidden});
  HostTensor plain_h = HostTensor::Empty<float>({2, kBatch, kHidden}), plain_c = plain_h;
  REQUIRE(Run("rewire.lstm", {&layer.x, &layer.w, &layer.r, &no_y, &plain_h, &plain_c},
              {{"direction", "bidirectional"}}) == "");
  REQUIRE(Run("rewire.lstm", {&turned, &layer.w, &layer.r, &no_y, &h, &c},
              {{"direction", "bidirectional"}, {"layout", 1}}) == "");
  for (std::int64_t i = 0; i < h.size(); ++i) {
    const std::int64_t from = (i / kHidden % 2 * kBatch + i / (2 * kHidden)) * kHidden + i % kHidden;
    CHECK(h.elements<float>()[i] == plain_h.elements<float>()[from]);
    CHECK(c.elements<float>()[i] == plain_c.elements<float>()[from]);
  }
}

TEST_CASE("wrong recurrent layers are refused with exact messages") {
  Layer layer{1, 1, {}};
  HostTensor y = HostTensor::Empty<float>({kSteps, 1, kBatch, kHidden});
  HostTensor y_h = HostTensor::Empty<float>({1, kBatch, kHidden});
  CHECK(Run("rewire.rnn", {&layer.x, &layer.w, &layer.w, &y, &y_h}) ==
        "ValueError: rewire.rnn: w has shape [1, 22, 4], expected [1, 4, 4]");
  CHECK(Run("rewire.rnn", {&layer.x, &layer.w, &layer.r, &y, &y_h}, {{"direction", "bidirectional"}}) ==
        "ValueError: rewire.rnn: w has shape [1, 22, 4], expected [2, 22, 4]");
  CHECK(Run("rewire.rnn", {&layer.x, &layer.w, &layer.r, &y, &y_h}, {{"activations", "Tahn"}}) ==
        "ValueError: rewire.rnn: attribute 'activations' names 'Tahn', which is no function");
  CHECK(Run("rewire.rnn", {&layer.x, nullptr, &layer.r, &y, &y_h}) ==
        "ValueError: rewire.rnn: x has 4 elements a step for 1 directions, expected 22 for one without w");
  CHECK(Run("rewire.lstm", {&layer.x, &layer.w, &layer.r, &y, &y_h, &y_h}, {{"activations", "Tanh"}}) ==
        "ValueError: rewire.lstm: attribute 'activations' names 1 functions, expected 3");
  HostTensor lengths = HostTensor::Of<std::int32_t>({kBatch}, {1, 6, 2});
  CHECK(Run("rewire.rnn", {&layer.x, &layer.w, &layer.r, &layer.b, &lengths, &y, &y_h}) ==
        "ValueError: rewire.rnn: element 1 of sequence_lens is 6, expected 0 to 5");
}

// The definition, for batch 1.
TEST_CASE("linear attention: the state decays, forgets and answers") {
  const std::int64_t steps = 5, kv = 2, group = 2, key = 3, value = 4;
  for (const bool delta : {false, true}) {
    CAPTURE(delta);
    HostTensor q = HostTensor::Random({1, steps, kv * group * key}, 1);
    HostTensor k = HostTensor::Random({1, steps, kv * key}, 2),
               v = HostTensor::Random({1, steps, kv * value}, 3);
    HostTensor decay = HostTensor::Random({1, steps, delta ? kv : kv * key}, 4);
    HostTensor beta = HostTensor::Random({1, steps, 1}, 5), none = HostTensor::Empty<float>({0});
    HostTensor state = HostTensor::Random({1, kv, key, value}, 6),
               now = HostTensor::Empty<float>(state.shape());
    HostTensor out = HostTensor::Empty<float>({1, steps, kv * group * value});
    REQUIRE(Run("rewire.linear_attention", {&q, &k, &v, &state, &decay, delta ? &beta : &none, &out, &now},
                {{"q_heads", static_cast<int>(kv * group)},
                 {"kv_heads", static_cast<int>(kv)},
                 {"scale", 0.5}}) == "");
    for (std::int64_t h = 0; h < kv; ++h) {
      std::vector<double> s;
      for (std::int64_t i = 0; i < key * value; ++i)
        s.push_back(static_cast<double>(state.elements<float>()[h * key * value + i]));
      const auto at = [](HostTensor& tensor, std::int64_t i) {
        return static_cast<double>(tensor.elements<float>()[i]);
      };
      for (std::int64_t t = 0; t < steps; ++t) {
        for (std::int64_t i = 0; i < key * value; ++i)
          s[static_cast<std::size_t>(i)] *=
              std::exp(at(decay, delta ? t * kv + h : (t * kv + h) * key + i / value));
        for (std::int64_t m = 0; m < value; ++m) {
          double seen = 0, given = at(v, (t * kv + h) * value + m);
          for (std::int64_t d = 0; d < key; ++d)
            seen += s[static_cast<std::size_t>(d * value + m)] * at(k, (t * kv + h) * key + d);
          if (delta) given = at(beta, t) * (given - seen);
          for (std::int64_t d = 0; d < key; ++d)
            s[static_cast<std::size_t>(d * value + m)] += given * at(k, (t * kv + h) * key + d);
        }
        for (std::int64_t g = 0; g < group; ++g) {
          const std::int64_t head = t * kv * group + h * group + g;
          for (std::int64_t m = 0; m < value; ++m) {
            double expected = 0;
            for (std::int64_t d = 0; d < key; ++d)
              expected += 0.5 * at(q, head * key + d) * s[static_cast<std::size_t>(d * value + m)];
            CHECK(at(out, head * value + m) == Approx(expected).margin(1e-5));
          }
        }
      }
      for (std::int64_t i = 0; i < key * value; ++i)
        CHECK(at(now, h * key * value + i) == Approx(s[static_cast<std::size_t>(i)]).margin(1e-5));
    }
  }
}

TEST_CASE("linear attention refuses heads and shapes that do not fit") {
  HostTensor q = HostTensor::Random({1, 2, 4}, 1), k = HostTensor::Random({1, 2, 6}, 2), out = q;
  HostTensor state = HostTensor::Empty<float>({1, 2, 2, 2});
  CHECK(Run("rewire.linear_attention", {&q, &k, &q, &out, &state}, {{"q_heads", 2}, {"kv_heads", 2}}) ==
        "ValueError: rewire.linear_attention: k has shape [1, 2, 6], expected [1, 2, 4]");
  CHECK(
      Run("rewire.linear_attention", {&q, &q, &q, &out, &state}, {{"q_heads", 3}, {"kv_heads", 2}}) ==
      "ValueError: rewire.linear_attention: attribute 'q_heads' is 3, expected a multiple of the 2 kv_heads");
}

}  // namespace
}  // namespace rewire::test
