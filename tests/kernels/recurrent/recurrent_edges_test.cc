// SPDX-License-Identifier: Apache-2.0
// Recurrent layers where NaN, infinities and large numbers meet: NaN shows where the equations have it, and
// only there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "rewire/kernels/cpu/math/scalar_forms.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/recurrent/unit_cells.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

namespace functions = kernel::cpu::functions;
using kernel::cpu::RecurrentCells;
using kernel::cpu::RecurrentUnits;

// Both NaN, the same infinity, or near.
bool IsAlike(double given, double expected, double tolerance) {
  if (std::isnan(expected) || std::isnan(given)) return std::isnan(expected) && std::isnan(given);
  if (std::isinf(expected) || std::isinf(given)) return given == expected;
  return std::fabs(given - expected) <= tolerance * (1 + std::fabs(expected));
}

// The operands of a cell: sigmoid is 0 and 1 in floats at the outer ones, tanh also between.
constexpr float kEdges[] = {0,      1.5F,   -1.5F,   61,   -61,   88.5F, -88.5F,
                            -89.0F, 104.5F, -104.5F, kInf, -kInf, kNaN};
constexpr std::size_t kOperands = 5;

// Operand `which` of every combination: a unit has one combination.
std::vector<float> Operand(std::size_t which) {
  std::size_t count = 1, period = 1;
  for (std::size_t i = 0; i < kOperands; ++i) count *= std::size(kEdges);
  for (std::size_t i = 0; i < which; ++i) period *= std::size(kEdges);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = kEdges[i / period % std::size(kEdges)];
  return values;
}

void RequireAlike(const char* name, const std::vector<float>& given, const std::vector<float>& expected,
                  const std::vector<float> (&operands)[kOperands]) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (IsAlike(static_cast<double>(given[i]), static_cast<double>(expected[i]), 1e-6)) continue;
    FAIL(name << " of " << operands[0][i] << ", " << operands[1][i] << ", " << operands[2][i] << ", "
              << operands[3][i] << ", " << operands[4][i] << " is " << given[i] << ", expected "
              << expected[i]);
  }
}

TEST_CASE("the cell of an lstm is its equations at all edges, on every instruction set") {
  // Input, output, forget and candidate, and the cell before.
  const std::vector<float> operands[] = {Operand(0), Operand(1), Operand(2), Operand(3), Operand(4)};
  const std::size_t count = operands[0].size();
  std::vector<float> sums;
  for (std::size_t gate = 0; gate < 4; ++gate)
    sums.insert(sums.end(), operands[gate].begin(), operands[gate].end());
  const std::vector<float> nothing(sums.size());
  for (const std::vector<float>& seen :
       {std::vector<float>{}, {0, 0, 0}, {0.5F, -1, 2}, {kInf, 0, -kInf}, {0, kNaN, 0}}) {
    CAPTURE(seen);
    std::vector<float> peepholes, cells(count), states(count);
    for (const float one : seen) peepholes.insert(peepholes.end(), count, one);
    for (std::size_t i = 0; i < count; ++i) {
      const float before = operands[4][i];
      const auto gate = [&](std::size_t which, std::size_t peephole, float cell) {
        return functions::Sigmoid(operands[which][i] + (seen.empty() ? 0 : seen[peephole] * cell));
      };
      cells[i] = gate(2, 2, before) * before + gate(0, 0, before) * std::tanh(operands[3][i]);
      states[i] = gate(1, 1, cells[i]) * std::tanh(cells[i]);
    }
    ForEachTarget([&] {
      const RecurrentCells best = kernel::cpu::ChooseRecurrentCells();
      std::vector<float> cell = operands[4], next(count);
      const auto units = static_cast<std::int64_t>(count);
      best.lstm({sums.data(), nothing.data(), units, units, cell.data(), nullptr, next.data(),
                 seen.empty() ? nullptr : peepholes.data()});
      RequireAlike("the cell", cell, cells, operands);
      RequireAlike("the state", next, states, operands);
    });
  }
}

TEST_CASE("the cell of a gru is its equations at all edges, on every instruction set") {
  // Update and reset, the candidate's two sums, and the state before.
  const std::vector<float> operands[] = {Operand(0), Operand(1), Operand(2), Operand(3), Operand(4)};
  const std::size_t count = operands[0].size();
  std::vector<float> more(2 * count), products, states(count);
  for (const std::size_t gate : {0, 1, 2})
    products.insert(products.end(), operands[gate].begin(), operands[gate].end());
  more.insert(more.end(), operands[3].begin(), operands[3].end());
  for (std::size_t i = 0; i < count; ++i) {
    const float update = functions::Sigmoid(operands[0][i]), reset = functions::Sigmoid(operands[1][i]);
    const float h = std::tanh(operands[3][i] + reset * operands[2][i]);
    states[i] = (1 - update) * h + update * operands[4][i];
  }
  ForEachTarget([&] {
    const RecurrentCells best = kernel::cpu::ChooseRecurrentCells();
    std::vector<float> next(count);
    const auto units = static_cast<std::int64_t>(count);
    best.gru({products.data(), more.data(), units, units, nullptr, operands[4].data(), next.data()});
    RequireAlike("the state", next, states, operands);
  });
}

// Layers of all kinds. Units are brought forward by vectors, and what is left by a part of one.
constexpr std::int64_t kEdgeSteps = 3, kEdgeBatch = 2, kEdgeInputs = 3, kEdgeHidden = 19;
constexpr std::int32_t kLengths[] = {3, 2};

struct Kind {
  const char* kernel;
  std::int64_t gates;
  bool linear_before_reset;
};

enum Argument { kX, kW, kR, kB, kH, kC, kPeepholes, kArguments };

struct EdgeLayer {
  Kind kind;
  std::int64_t directions;
  double clip;
  std::vector<float> arguments[kArguments];
  Shape shapes[kArguments];

  EdgeLayer(const Kind& of_kind, std::int64_t of_directions, double of_clip)
      : kind(of_kind), directions(of_directions), clip(of_clip), shapes{{kEdgeSteps, kEdgeBatch, kEdgeInputs},
                                                                        {directions, Width(), kEdgeInputs},
                                                                        {directions, Width(), kEdgeHidden},
                                                                        {directions, 2 * Width()},
                                                                        {directions, kEdgeBatch, kEdgeHidden},
                                                                        {directions, kEdgeBatch, kEdgeHidden},
                                                                        {directions, 3 * kEdgeHidden}} {
    for (std::size_t i = 0; i < kArguments; ++i)
      arguments[i] = HostTensor::Random(shapes[i], static_cast<std::uint32_t>(i) + 1).values<float>();
  }
  std::int64_t Width() const { return kind.gates * kEdgeHidden; }
  bool IsLstm() const { return kind.gates == 4; }

  template <typename T>
  T At(Argument which, std::int64_t i) const {
    return static_cast<T>(arguments[which][static_cast<std::size_t>(i)]);
  }
  // Row `row` of w times x at a time, and of r times a state, with their biases.
  template <typename T>
  T FromInput(std::int64_t d, std::int64_t row, std::int64_t time, std::int64_t n) const {
    double sum = At<double>(kB, d * 2 * Width() + row);
    for (std::int64_t i = 0; i < kEdgeInputs; ++i)
      sum += At<double>(kW, (d * Width() + row) * kEdgeInputs + i) *
             At<double>(kX, (time * kEdgeBatch + n) * kEdgeInputs + i);
    return static_cast<T>(sum);
  }
  template <typename T>
  T FromState(std::int64_t d, std::int64_t row, const std::vector<T>& state) const {
    double sum = At<double>(kB, (d * 2 + 1) * Width() + row);
    for (std::int64_t i = 0; i < kEdgeHidden; ++i)
      sum += At<double>(kR, (d * Width() + row) * kEdgeHidden + i) *
             static_cast<double>(state[static_cast<std::size_t>(i)]);
    return static_cast<T>(sum);
  }
  template <typename T>
  T Clipped(T x) const {
    return clip == 0 ? x : functions::Clip(x, static_cast<T>(-clip), static_cast<T>(clip));
  }

  // The equations of ONNX for one step of one sequence.
  template <typename T>
  void Step(std::int64_t d, std::int64_t time, std::int64_t n, std::vector<T>& state,
            std::vector<T>& cell) const {
    const std::vector<T> before = state;
    std::vector<T> reset(kEdgeHidden), passed(kEdgeHidden);
    const auto sum = [&](std::int64_t gate, std::int64_t j) {
      return FromInput<T>(d, gate * kEdgeHidden + j, time, n) +
             FromState<T>(d, gate * kEdgeHidden + j, before);
    };
    for (std::int64_t j = 0; kind.gates == 3 && j < kEdgeHidden; ++j) {
      const auto at = static_cast<std::size_t>(j);
      reset[at] = functions::Sigmoid(Clipped(sum(1, j)));
      passed[at] = reset[at] * before[at];
    }
    for (std::int64_t j = 0; j < kEdgeHidden; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (kind.gates == 1) {
        state[at] = std::tanh(Clipped(sum(0, j)));
      } else if (kind.gates == 3) {
        const std::int64_t row = 2 * kEdgeHidden + j;
        const T update = functions::Sigmoid(Clipped(sum(0, j)));
        const T let_through = kind.linear_before_reset ? reset[at] * FromState<T>(d, row, before)
                                                       : FromState<T>(d, row, passed);
        const T h = std::tanh(Clipped(FromInput<T>(d, row, time, n) + let_through));
        state[at] = (1 - update) * h + update * before[at];
      } else {
        const auto gate = [&](std::int64_t which, std::int64_t peephole) {
          const T seen = At<T>(kPeepholes, (d * 3 + peephole) * kEdgeHidden + j) * cell[at];
          return functions::Sigmoid(Clipped(sum(which, j) + seen));
        };
        const T in = gate(0, 0), forget = gate(2, 2);
        cell[at] = forget * cell[at] + in * std::tanh(Clipped(sum(3, j)));
        state[at] = gate(1, 1) * std::tanh(cell[at]);
      }
    }
  }

  // y [steps, directions, batch, hidden].
  template <typename T>
  std::vector<T> Expected() const {
    std::vector<T> y(static_cast<std::size_t>(kEdgeSteps * directions * kEdgeBatch * kEdgeHidden));
    for (std::int64_t d = 0; d < directions; ++d) {
      for (std::int64_t n = 0; n < kEdgeBatch; ++n) {
        std::vector<T> state, cell;
        for (std::int64_t j = 0; j < kEdgeHidden; ++j) {
          state.push_back(At<T>(kH, (d * kEdgeBatch + n) * kEdgeHidden + j));
          cell.push_back(At<T>(kC, (d * kEdgeBatch + n) * kEdgeHidden + j));
        }
        for (std::int64_t t = 0; t < kLengths[n]; ++t) {
          const std::int64_t time = d == 1 ? kLengths[n] - 1 - t : t;
          Step<T>(d, time, n, state, cell);
          std::copy(state.begin(), state.end(),
                    y.begin() + ((time * directions + d) * kEdgeBatch + n) * kEdgeHidden);
        }
      }
    }
    return y;
  }

  template <typename T>
  HostTensor Tensor(Argument which) const {
    HostTensor tensor = HostTensor::Empty<T>(shapes[which]);
    std::copy(arguments[which].begin(), arguments[which].end(), tensor.elements<T>().begin());
    return tensor;
  }
  // w or r as `packed` has them: each direction by itself, one behind the other.
  HostTensor PackedTensor(Argument which) const {
    const std::int64_t depth = shapes[which][2];
    std::vector<float> all;
    for (std::int64_t d = 0; d < directions; ++d) {
      const auto from = arguments[which].begin() + d * Width() * depth;
      HostTensor one = HostTensor::Of<float>({Width(), depth}, {from, from + Width() * depth});
      HostTensor packed = HostTensor::Empty<float>({kernel::cpu::PackedColumns(Width()), depth});
      REQUIRE(Run("rewire.packed.pack", {&one, &packed}, {{"order", "OI"}}) == "");
      const std::vector<float> values = packed.values<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return HostTensor::Of<float>({directions * kernel::cpu::PackedColumns(Width()), depth}, all);
  }

  template <typename T>
  void Check(bool packed) const {
    HostTensor x = Tensor<T>(kX), b = Tensor<T>(kB), h = Tensor<T>(kH), c = Tensor<T>(kC),
               p = Tensor<T>(kPeepholes);
    HostTensor w = packed ? PackedTensor(kW) : Tensor<T>(kW), r = packed ? PackedTensor(kR) : Tensor<T>(kR);
    HostTensor lengths = HostTensor::Of<std::int32_t>({kEdgeBatch}, {kLengths[0], kLengths[1]});
    HostTensor y = HostTensor::Empty<T>({kEdgeSteps, directions, kEdgeBatch, kEdgeHidden});
    HostTensor y_h = HostTensor::Empty<T>(shapes[kH]), y_c = y_h;
    std::vector<HostTensor*> tensors = {&x, &w, &r, &b, &lengths, &h};
    if (IsLstm()) tensors.insert(tensors.end(), {&c, &p});
    tensors.insert(tensors.end(), {&y, &y_h});
    if (IsLstm()) tensors.push_back(&y_c);
    AttributeList attributes = {{"direction", directions == 2 ? "bidirectional" : "forward"},
                                {"hidden_size", kEdgeHidden},
                                {"packed", packed ? 1 : 0},
                                {"clip", clip}};
    if (kind.linear_before_reset) attributes.emplace_back("linear_before_reset", 1);
    REQUIRE(Run(kind.kernel, tensors, attributes) == "");
    const std::vector<T> given = y.values<T>(), expected = Expected<T>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!IsAlike(static_cast<double>(given[i]), static_cast<double>(expected[i]), 1e-3))
        FAIL("element " << i << " of y is " << given[i] << ", expected " << expected[i]);
    }
  }
};

TEST_CASE("recurrent layers have NaN where their equations have it, in all forms") {
  const Kind kind = GENERATE(Kind{"rewire.rnn", 1, false}, Kind{"rewire.gru", 3, false},
                             Kind{"rewire.gru", 3, true}, Kind{"rewire.lstm", 4, false});
  const std::int64_t directions = GENERATE(1, 2);
  const double clip = GENERATE(0.0, 2.5);  // cells with one have a form of their own
  CAPTURE(kind.kernel, kind.linear_before_reset, directions, clip);
  const EdgeLayer plain(kind, directions, clip);
  for (int argument = kX; argument < kArguments; ++argument) {
    if (argument >= kC && !plain.IsLstm()) continue;
    for (const float value : {kNaN, kInf, -kInf, 200.0F, -200.0F}) {
      // A closed gate holds back an infinity, or all other numbers are moderate.
      for (const float held : {0.5F, -kInf}) {
        for (const double place : {0.4, 0.999}) {
          CAPTURE(argument, value, held, place);
          EdgeLayer layer = plain;
          std::vector<float>& state = layer.arguments[layer.IsLstm() ? kC : kH];
          state[2] = state.back() = held;
          std::vector<float>& changed = layer.arguments[argument];
          changed[static_cast<std::size_t>(place * static_cast<double>(changed.size()))] = value;
          layer.Check<float>(false);
          layer.Check<double>(false);
          // A candidate that is multiplied by itself would not begin a panel with these sizes.
          if (kind.gates != 3 || kind.linear_before_reset) layer.Check<float>(true);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rewire::test
