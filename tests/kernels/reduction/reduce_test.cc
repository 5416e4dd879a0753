// SPDX-License-Identifier: Apache-2.0
// Reductions, places of extremes, softmax and normalization against loops in double precision.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/close.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// The elements that come together in each result, in memory order.
std::vector<std::vector<double>> Groups(const HostTensor& x, const Ints& axes) {
  const Shape& shape = x.shape();
  std::vector<bool> reduced(shape.size(), axes.empty());
  for (std::int64_t axis : axes)
    reduced[static_cast<std::size_t>(axis < 0 ? axis + std::ssize(shape) : axis)] = true;
  std::int64_t results = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) results *= reduced[i] ? 1 : shape[i];
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(results));
  const auto values = x.values<float>();
  for (std::int64_t flat = 0; flat < x.size(); ++flat) {
    std::int64_t rest = flat;
    std::int64_t to = 0;
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (!reduced[i]) {
        to += rest % shape[i] * step;
        step *= shape[i];
      }
      rest /= shape[i];
    }
    groups[static_cast<std::size_t>(to)].push_back(
        static_cast<double>(values[static_cast<std::size_t>(flat)]));
  }
  return groups;
}

Shape Reduced(const Shape& shape, const Ints& axes, bool keepdims) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    const bool gone = axes.empty() || std::count(axes.begin(), axes.end(), axis) != 0 ||
                      std::count(axes.begin(), axes.end(), axis - std::ssize(shape)) != 0;
    if (!gone) result.push_back(shape[i]);
    if (gone && keepdims) result.push_back(1);
  }
  return result;
}

using Reduction = std::function<double(const std::vector<double>&)>;

Reduction Sum(const std::function<double(double)>& of, const std::function<double(double)>& then) {
  return [=](const std::vector<double>& group) {
    double sum = 0;
    for (double value : group) sum += of(value);
    return then(sum);
  };
}

TEST_CASE("reductions over any axes") {
  const auto same = [](double v) { return v; };
  const std::pair<const char*, Reduction> reductions[] = {
      {"rewire.reduce_sum", Sum(same, same)},
      {"rewire.reduce_mean",
       [&](const auto& g) { return Sum(same, same)(g) / static_cast<double>(g.size()); }},
      {"rewire.reduce_sum_square", Sum([](double v) { return v * v; }, same)},
      {"rewire.reduce_l1", Sum([](double v) { return std::fabs(v); }, same)},
      {"rewire.reduce_l2", Sum([](double v) { return v * v; }, [](double v) { return std::sqrt(v); })},
      {"rewire.reduce_log_sum_exp",
       Sum([](double v) { return std::exp(v); }, [](double v) { return std::log(v); })},
      {"rewire.reduce_max", [](const auto& g) { return *std::max_element(g.begin(), g.end()); }},
      {"rewire.reduce_min", [](const auto& g) { return *std::min_element(g.begin(), g.end()); }},
      {"rewire.reduce_prod",
       [](const auto& g) {
         double product = 1;
         for (double value : g) product *= value;
         return product;
       }},
  };
  const std::pair<Shape, std::vector<Ints>> cases[] = {
      {{5}, {{}, {0}}},
      {{3, 4}, {{}, {0}, {1}, {-1}}},
      {{2, 3, 4, 5}, {{}, {1, 3}, {0, 2}, {2}, {-1, 0}, {1, 2}, {0, 1, 2}}},
      {{7, 1, 33}, {{1}, {2}, {0, 2}}},
      {{300, 70}, {{0}, {1}}},
      {{2, 20000}, {{1}, {0}}},
      {{60, 1100}, {{0}}},
      {{30, 40, 50}, {{0, 2}}},
      {{9000, 2}, {{1}, {0}}},
      {{5, 7, 2}, {{2}, {1}, {1, 2}, {0, 2}}},
      {{3, 16}, {{1}}},
      {{3, 17}, {{1}}},
      {{}, {{}}},
  };
  for (const auto& [name, reduce] : reductions) {
    for (const auto& [shape, all_axes] : cases) {
      for (const Ints& axes : all_axes) {
        for (bool keepdims : {true, false}) {
          CAPTURE(name, shape, axes, keepdims);
          HostTensor x = HostTensor::Random(shape, 7);
          HostTensor out = HostTensor::Empty<float>(Reduced(shape, axes, keepdims));
          AttributeList attributes = {{"keepdims", keepdims ? 1 : 0}};
          HostTensor list = HostTensor::Of<std::int64_t>({std::ssize(axes)}, axes);
          REQUIRE(Run(name, {&x, &list, &out}, attributes) == "");
          std::vector<double> expected;
          for (const auto& group : Groups(x, axes)) expected.push_back(reduce(group));
          CheckClose(out, expected);
          HostTensor again = HostTensor::Empty<float>(out.shape());
          attributes.emplace_back("axes", axes);
          REQUIRE(Run(name, {&x, &again}, attributes) == "");
          CHECK(again.values<float>() == out.values<float>());
        }
      }
    }
  }
}

// Small integers, whose sums are exact in every dtype.
std::vector<double> SmallIntegers(std::int64_t count) {
  std::vector<double> values;
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    values.push_back(static_cast<double>((state >> 16) % 7) - 3);
  }
  return values;
}

template <typename T>
void CheckLengths(std::int64_t outer, std::int64_t rows, std::int64_t columns, const Ints& axes) {
  const auto same = [](double v) { return v; };
  const std::pair<const char*, Reduction> reductions[] = {
      {"rewire.reduce_sum", Sum(same, same)},
      {"rewire.reduce_sum_square", Sum([](double v) { return v * v; }, same)},
      {"rewire.reduce_l1", Sum([](double v) { return std::fabs(v); }, same)},
      {"rewire.reduce_max", [](const auto& g) { return *std::max_element(g.begin(), g.end()); }},
      {"rewire.reduce_min", [](const auto& g) { return *std::min_element(g.begin(), g.end()); }},
  };
  const Shape shape = {outer, rows, columns};
  const auto values = SmallIntegers(outer * rows * columns);
  HostTensor plain = HostTensor::Of<float>(shape, {values.begin(), values.end()});
  HostTensor x = HostTensor::Of<T>(shape, {values.begin(), values.end()});
  const auto groups = Groups(plain, axes);
  for (const auto& [name, reduce] : reductions) {
    CAPTURE(name, shape, axes);
    HostTensor out = HostTensor::Empty<T>(Reduced(shape, axes, true));
    REQUIRE(Run(name, {&x, &out}, {{"axes", axes}}) == "");
    std::vector<T> expected;
    for (const auto& group : groups)
      expected.push_back(static_cast<T>(static_cast<std::int64_t>(reduce(group))));
    CHECK(out.values<T>() == expected);
  }
}

TEST_CASE("reductions of any number of lanes, short rows and short runs") {
  for (const std::int64_t rows : {1, 7, 24, 65, 300}) {
    for (const std::int64_t columns : {1, 3, 16, 33, 130}) {
      for (const Ints& axes : {Ints{1}, Ints{2}, Ints{0, 1}, Ints{0, 2}}) {
        CheckLengths<float>(3, rows, columns, axes);
        CheckLengths<std::int64_t>(3, rows, columns, axes);
        CheckLengths<std::int8_t>(1, rows, columns, axes == Ints{1} ? axes : Ints{2});
      }
    }
  }
}

TEST_CASE("a product leaves the range of its floats on the way and comes back") {
  // Lanes of a run take every sixteenth or thirty-second element.
  const std::int64_t count = 32 * 200;
  HostTensor x = HostTensor::Empty<float>({count}), out = HostTensor::Empty<float>({1});
  for (std::int64_t i = 0; i < count; ++i) x.elements<float>()[i] = i < count / 2 ? 0.25F : 4.0F;
  REQUIRE(Run("rewire.reduce_prod", {&x, &out}) == "");
  CHECK(out.elements<float>()[0] == 1);
}

TEST_CASE("the logarithm of sums of powers over short rows") {
  for (const std::int64_t columns : {1, 2, 10, 63, 64, 65}) {
    CAPTURE(columns);
    const std::int64_t rows = 43;
    HostTensor x = HostTensor::Random({2, rows, columns}, 5), out = HostTensor::Empty<float>({2, 1, columns});
    x.elements<float>()[0] = -std::numeric_limits<float>::infinity();
    REQUIRE(Run("rewire.reduce_log_sum_exp", {&x, &out}, {{"axes", Ints{1}}}) == "");
    for (std::int64_t i = 0; i < out.size(); ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t at = (i / columns * rows + r) * columns + i % columns;
        sum += std::exp(static_cast<double>(x.elements<float>()[at]));
      }
      CHECK(std::fabs(static_cast<double>(out.elements<float>()[i]) - std::log(sum)) < 1e-5);
    }
  }
}

TEST_CASE("an extreme of a line with NaN is NaN, wherever it lies") {
  for (const std::int64_t rows : {2, 31, 100, 300}) {
    for (const std::int64_t columns : {1, 5, 16, 40, 200}) {
      for (const Ints& axes : {Ints{0}, Ints{1}}) {
        const std::int64_t at = (rows * 7 + columns * 3) % (rows * columns);
        HostTensor x = HostTensor::Random({rows, columns}, 3);
        x.elements<float>()[at] = kNaN;
        for (const char* name : {"rewire.reduce_max", "rewire.reduce_min"}) {
          CAPTURE(name, rows, columns, axes);
          HostTensor out = HostTensor::Empty<float>(Reduced({rows, columns}, axes, true));
          REQUIRE(Run(name, {&x, &out}, {{"axes", axes}}) == "");
          const std::int64_t hit = axes == Ints{0} ? at % columns : at / columns;
          for (std::int64_t i = 0; i < out.size(); ++i)
            CHECK(std::isnan(out.elements<float>()[i]) == (i == hit));
        }
      }
    }
  }
}

TEST_CASE("means of bf16 are those of the same floats, in f32") {
  using kernel::cpu::BFloat16;
  for (const Ints& axes : {Ints{1, 2}, Ints{3}, Ints{1}, Ints{0, 1, 2, 3}}) {
    CAPTURE(axes);
    HostTensor x = HostTensor::Random({2, 5, 7, 19}, 1), half = HostTensor::Empty<BFloat16>({2, 5, 7, 19});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      half.elements<BFloat16>()[i] = BFloat16(x.elements<float>()[i]);
      x.elements<float>()[i] = static_cast<float>(half.elements<BFloat16>()[i]);
    }
    Shape shape = x.shape();
    for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
    HostTensor expected = HostTensor::Empty<float>(shape), out = HostTensor::Empty<float>(shape);
    REQUIRE(Run("rewire.reduce_mean", {&x, &expected}, {{"axes", axes}}) == "");
    REQUIRE(Run("rewire.reduce_mean", {&half, &out}, {{"axes", axes}}) == "");
    CHECK(out.values<float>() == expected.values<float>());
    CHECK(Run("rewire.reduce_sum", {&half, &out}, {{"axes", axes}}) != "");
  }
}

TEST_CASE("reductions of nothing, of NaN, of integers") {
  HostTensor none = HostTensor::Empty<float>({2, 0});
  HostTensor out = HostTensor::Empty<float>({2, 1});
  const std::pair<const char*, float> cases[] = {
      {"rewire.reduce_sum", 0.0f}, {"rewire.reduce_prod", 1.0f},         {"rewire.reduce_max", -kInf},
      {"rewire.reduce_min", kInf}, {"rewire.reduce_log_sum_exp", -kInf},
  };
  for (const auto& [name, value] : cases) {
    INFO(name);
    REQUIRE(Run(name, {&none, &out}, {{"axes", Ints{1}}}) == "");
    CHECK(out.values<float>() == std::vector<float>{value, value});
  }
  HostTensor x = HostTensor::Of<float>({2, 3}, {1, kNaN, 2, 3, -kInf, 4});
  REQUIRE(Run("rewire.reduce_max", {&x, &out}, {{"axes", Ints{1}}}) == "");
  CHECK(std::isnan(out.values<float>()[0]));
  CHECK(out.values<float>()[1] == 4);
  HostTensor huge = HostTensor::Of<float>({1, 2}, {1000, 1000});
  HostTensor one = HostTensor::Empty<float>({1, 1});
  REQUIRE(Run("rewire.reduce_log_sum_exp", {&huge, &one}, {{"axes", Ints{1}}}) == "");
  CHECK(one.values<float>()[0] == Approx(1000.6931f));
  HostTensor bytes = HostTensor::Of<std::uint8_t>({3}, {200, 100, 5});
  HostTensor sum = HostTensor::Empty<std::uint8_t>({1});
  REQUIRE(Run("rewire.reduce_sum", {&bytes, &sum}) == "");
  CHECK(sum.values<std::uint8_t>() == std::vector<std::uint8_t>{49});
  HostTensor keep = HostTensor::Empty<std::uint8_t>({3});
  REQUIRE(Run("rewire.reduce_sum", {&bytes, &keep}, {{"noop_with_empty_axes", 1}}) == "");
  CHECK(keep.values<std::uint8_t>() == bytes.values<std::uint8_t>());
}

TEMPLATE_TEST_CASE("the logarithm of sums of powers of integers is truncated", "", std::int64_t,
                   std::int32_t) {
  const Shape shape = {5, 37, 6};
  for (const int range : {1, 8, 3000}) {
    std::vector<TestType> values;
    std::uint32_t state = 7;
    for (int i = 0; i < 5 * 37 * 6; ++i) {
      state = state * 1664525u + 1013904223u;
      values.push_back(static_cast<TestType>(static_cast<int>(state >> 16) % range - range / 2));
    }
    values[3] = std::numeric_limits<TestType>::max() / 2;
    values[40] = std::numeric_limits<TestType>::min();
    HostTensor x = HostTensor::Of<TestType>(shape, values);
    for (const Ints& axes : {Ints{}, Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}}) {
      CAPTURE(range, axes);
      HostTensor out = HostTensor::Empty<TestType>(Reduced(shape, axes, true));
      REQUIRE(Run("rewire.reduce_log_sum_exp", {&x, &out}, {{"axes", axes}}) == "");
      HostTensor wide = HostTensor::Empty<double>(shape), expected = HostTensor::Empty<double>(out.shape());
      for (std::int64_t i = 0; i < x.size(); ++i)
        wide.elements<double>()[i] = static_cast<double>(values[static_cast<std::size_t>(i)]);
      REQUIRE(Run("rewire.reduce_log_sum_exp", {&wide, &expected}, {{"axes", axes}}) == "");
      for (std::int64_t i = 0; i < out.size(); ++i)
        CHECK(static_cast<double>(out.elements<TestType>()[i]) == std::trunc(expected.elements<double>()[i]));
    }
  }
  HostTensor none = HostTensor::Empty<TestType>({2, 0}), out = HostTensor::Empty<TestType>({2, 1});
  REQUIRE(Run("rewire.reduce_log_sum_exp", {&none, &out}, {{"axes", Ints{1}}}) == "");
  CHECK(out.values<TestType>() == std::vector<TestType>(2, std::numeric_limits<TestType>::min()));
}

TEST_CASE("wrong axes of reductions are refused with exact messages") {
  HostTensor x = HostTensor::Random({2, 3}, 1);
  HostTensor out = HostTensor::Empty<float>({2, 1});
  CHECK(Run("rewire.reduce_sum", {&x, &out}, {{"axes", Ints{2}}}) ==
        "ValueError: rewire.reduce_sum: axis is 2, expected at least -2 and less than 2");
  CHECK(Run("rewire.reduce_sum", {&x, &out}, {{"axes", Ints{1, -1}}}) ==
        "ValueError: rewire.reduce_sum: axis 1 is named twice");
  CHECK(Run("rewire.reduce_sum", {&x, &out}, {{"axes", Ints{0}}}) ==
        "ValueError: rewire.reduce_sum: out has shape [2, 1], expected [1, 3]");
  HostTensor axes = HostTensor::Of<std::int64_t>({1}, {1});
  CHECK(Run("rewire.reduce_sum", {&x, &axes, &out}, {{"axes", Ints{1}}}) ==
        "ValueError: rewire.reduce_sum: axes are given both as an attribute and as an argument");
  CHECK(Run("rewire.reduce_sum", {&x, &x}) ==
        "ValueError: rewire.reduce_sum: out shares memory with x; this kernel cannot work in place");
}

TEST_CASE("argmax and argmin name the first or the last of several") {
  HostTensor x = HostTensor::Of<float>({2, 4}, {1, 5, 5, 0, 2, kNaN, 7, kNaN});
  HostTensor out = HostTensor::Empty<std::int64_t>({2, 1});
  REQUIRE(Run("rewire.argmax", {&x, &out}, {{"axis", 1}}) == "");
  CHECK(out.values<std::int64_t>() == Ints{1, 1});
  REQUIRE(Run("rewire.argmax", {&x, &out}, {{"axis", -1}, {"select_last_index", 1}}) == "");
  CHECK(out.values<std::int64_t>() == Ints{2, 3});
  REQUIRE(Run("rewire.argmin", {&x, &out}, {{"axis", 1}}) == "");
  CHECK(out.values<std::int64_t>() == Ints{3, 1});
  HostTensor columns = HostTensor::Empty<std::int32_t>({4});
  REQUIRE(Run("rewire.argmin", {&x, &columns}, {{"keepdims", 0}}) == "");
  CHECK(columns.values<std::int32_t>() == std::vector<std::int32_t>{0, 1, 0, 1});
  HostTensor none = HostTensor::Empty<float>({2, 0});
  CHECK(Run("rewire.argmax", {&none, &out}, {{"axis", 1}}) ==
        "ValueError: rewire.argmax: x has shape [2, 0]: nothing to choose from along axis 1");
}

TEST_CASE("softmax along any axis") {
  const std::pair<Shape, std::int64_t> cases[] = {{{5}, 0},         {{3, 7}, -1},   {{3, 7}, 0},
                                                  {{2, 5, 130}, 1}, {{2, 3, 4}, 1}, {{1000, 33}, 1},
                                                  {{0, 4}, 1},      {{131, 16}, 1}, {{3, 70, 5}, -1}};
  for (const auto& [shape, axis] : cases) {
    CAPTURE(shape, axis);
    HostTensor x = HostTensor::Random(shape, 3);
    HostTensor out = HostTensor::Empty<float>(shape);
    HostTensor log = HostTensor::Empty<float>(shape);
    REQUIRE(Run("rewire.softmax", {&x, &out}, {{"axis", axis}}) == "");
    REQUIRE(Run("rewire.log_softmax", {&x, &log}, {{"axis", axis}}) == "");
    const std::int64_t along = axis < 0 ? axis + std::ssize(shape) : axis;
    std::int64_t inner = 1;
    for (auto i = static_cast<std::size_t>(along) + 1; i < shape.size(); ++i) inner *= shape[i];
    const std::int64_t count = shape[static_cast<std::size_t>(along)];
    std::vector<double> expected, logs;
    const auto xs = x.values<float>();
    for (std::int64_t flat = 0; flat < x.size(); ++flat) {
      const std::int64_t first = flat / (inner * count) * inner * count + flat % inner;
      double sum = 0;
      for (std::int64_t k = 0; k < count; ++k)
        sum += std::exp(static_cast<double>(xs[static_cast<std::size_t>(first + k * inner)]));
      const double value = static_cast<double>(xs[static_cast<std::size_t>(flat)]);
      expected.push_back(std::exp(value) / sum);
      logs.push_back(value - std::log(sum));
    }
    CheckClose(out, expected);
    CheckClose(log, logs);
    REQUIRE(Run("rewire.softmax", {&x, &x}, {{"axis", axis}}) == "");  // in place
    CHECK(x.values<float>() == out.values<float>());
  }
  HostTensor huge = HostTensor::Of<float>({2}, {10000, -10000});
  REQUIRE(Run("rewire.softmax", {&huge, &huge}) == "");
  CHECK(huge.values<float>() == std::vector<float>{1, 0});
  HostTensor tall = HostTensor::Of<float>({2, 2}, {10000, 5, -10000, 10005});
  REQUIRE(Run("rewire.softmax", {&tall, &tall}, {{"axis", 0}}) == "");
  CHECK(tall.values<float>() == std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("rms_norm divides by the root of the mean square") {
  HostTensor x = HostTensor::Of<float>({2, 2}, {3, 4, 0, 0}), out = HostTensor::Empty<float>({2, 2});
  HostTensor scale = HostTensor::Of<float>({2}, {1, 10}), whole = HostTensor::Of<float>({2, 2}, {1, 1, 1, 1});
  REQUIRE(Run("rewire.rms_norm", {&x, &scale, &out}, {{"epsilon", 0.5}}) == "");
  CHECK(out.values<float>()[0] == Approx(3 / std::sqrt(13.0)));
  CHECK(out.values<float>()[1] == Approx(40 / std::sqrt(13.0)));
  CHECK(out.values<float>()[3] == 0);
  REQUIRE(Run("rewire.rms_norm", {&x, &whole, &out}, {{"axis", 0}, {"epsilon", 0.0}}) == "");
  CHECK(out.values<float>()[1] == Approx(4 / 2.5));
  CHECK(Run("rewire.rms_norm", {&x, &whole, &out}) ==
        "ValueError: rewire.rms_norm: scale has shape [2, 2], expected [2]");
}

TEST_CASE("layer_norm, group_norm and batch_norm") {
  HostTensor x = HostTensor::Random({2, 6, 5}, 9);
  HostTensor out = HostTensor::Empty<float>({2, 6, 5});
  // Normalizes `count` elements from each multiple of count, then scales by number(i).
  const auto expected = [&](std::int64_t count, const HostTensor& scale, const HostTensor& bias,
                            const auto& number) {
    std::vector<double> values;
    const auto xs = x.values<float>();
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const auto first = xs.begin() + i / count * count;
      double mean = 0, variance = 0;
      for (auto at = first; at != first + count; ++at)
        mean += static_cast<double>(*at) / static_cast<double>(count);
      for (auto at = first; at != first + count; ++at)
        variance += std::pow(static_cast<double>(*at) - mean, 2) / static_cast<double>(count);
      const auto n = static_cast<std::size_t>(number(i));
      values.push_back((static_cast<double>(xs[static_cast<std::size_t>(i)]) - mean) /
                           std::sqrt(variance + 1e-3) * static_cast<double>(scale.values<float>()[n]) +
                       static_cast<double>(bias.values<float>()[n]));
    }
    return values;
  };
  HostTensor s5 = HostTensor::Random({5}, 1), b5 = HostTensor::Random({5}, 2);
  HostTensor mean = HostTensor::Empty<float>({2, 6, 1}), factor = HostTensor::Empty<float>({2, 6, 1});
  REQUIRE(Run("rewire.layer_norm", {&x, &s5, &b5, &out, &mean, &factor}, {{"epsilon", 1e-3}}) == "");
  CheckClose(out, expected(5, s5, b5, [](auto i) { return i % 5; }));
  const auto groups = Groups(x, {2});
  for (std::size_t i = 0; i < groups.size(); ++i) {
    double sum = 0, squares = 0;
    for (double value : groups[i]) sum += value / 5;
    for (double value : groups[i]) squares += (value - sum) * (value - sum) / 5;
    CHECK(static_cast<double>(mean.values<float>()[i]) == Approx(sum).margin(1e-5));
    CHECK(static_cast<double>(factor.values<float>()[i]) == Approx(1 / std::sqrt(squares + 1e-3)));
  }
  HostTensor s30 = HostTensor::Random({6, 5}, 1), b30 = HostTensor::Random({6, 5}, 2);
  REQUIRE(Run("rewire.layer_norm", {&x, &s30, &b30, &out}, {{"axis", 1}, {"epsilon", 1e-3}}) == "");
  CheckClose(out, expected(30, s30, b30, [](auto i) { return i % 30; }));
  HostTensor s6 = HostTensor::Random({6}, 3), b6 = HostTensor::Random({6}, 4);
  REQUIRE(Run("rewire.group_norm", {&x, &s6, &b6, &out}, {{"epsilon", 1e-3}}) == "");
  CheckClose(out, expected(5, s6, b6, [](auto i) { return i / 5 % 6; }));
  REQUIRE(Run("rewire.group_norm", {&x, &s6, &b6, &out}, {{"epsilon", 1e-3}, {"num_groups", 2}}) == "");
  CheckClose(out, expected(15, s6, b6, [](auto i) { return i / 5 % 6; }));
  HostTensor s2 = HostTensor::Random({2}, 3), b2 = HostTensor::Random({2}, 4);
  REQUIRE(Run("rewire.group_norm", {&x, &s2, &b2, &out}, {{"epsilon", 1e-3}, {"num_groups", 2}}) == "");
  CheckClose(out, expected(15, s2, b2, [](auto i) { return i / 15 % 2; }));
  CHECK(Run("rewire.group_norm", {&x, &s6, &b6, &out}, {{"num_groups", 4}}) ==
        "ValueError: rewire.group_norm: x has shape [2, 6, 5]: 6 channels are no multiple of 4 groups");
  HostTensor variance = HostTensor::Of<float>({6}, {1, 2, 3, 4, 5, 6});
  REQUIRE(Run("rewire.batch_norm", {&x, &s6, &b6, &b6, &variance, &out}, {{"epsilon", 1e-3}}) == "");
  std::vector<double> normal;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t c = i / 5 % 6;
    const auto at = [](const HostTensor& t, std::size_t k) {
      return static_cast<double>(t.values<float>()[k]);
    };
    normal.push_back((at(x, i) - at(b6, c)) / std::sqrt(at(variance, c) + 1e-3) * at(s6, c) + at(b6, c));
  }
  CheckClose(out, normal);
}

TEST_CASE("lrn divides by the squares of the channels around") {
  HostTensor x = HostTensor::Of<float>({1, 3, 1}, {1, 2, 3});
  HostTensor out = HostTensor::Empty<float>({1, 3, 1});
  REQUIRE(Run("rewire.lrn", {&x, &out}, {{"size", 3}, {"alpha", 3.0}, {"beta", 0.5}, {"bias", 0.0}}) == "");
  CheckClose(out, {1 / std::sqrt(5.0), 2 / std::sqrt(14.0), 3 / std::sqrt(13.0)});
}

TEST_CASE("negative log-likelihood") {
  HostTensor x = HostTensor::Of<float>({2, 3}, {-1, -2, -3, -4, -5, -6});
  HostTensor target = HostTensor::Of<std::int64_t>({2}, {2, 0});
  HostTensor weight = HostTensor::Of<float>({3}, {1, 10, 3});
  HostTensor each = HostTensor::Empty<float>({2});
  HostTensor one = HostTensor::Empty<float>({});
  REQUIRE(Run("rewire.nll_loss", {&x, &target, &each}, {{"reduction", "none"}}) == "");
  CHECK(each.values<float>() == std::vector<float>{3, 4});
  REQUIRE(Run("rewire.nll_loss", {&x, &target, &weight, &one}) == "");
  CHECK(one.values<float>()[0] == Approx(13.0 / 4));
  REQUIRE(Run("rewire.nll_loss", {&x, &target, &weight, &one}, {{"reduction", "sum"}, {"ignore_index", 2}}) ==
          "");
  CHECK(one.values<float>()[0] == 4);
  HostTensor wrong = HostTensor::Of<std::int64_t>({2}, {2, 3});
  CHECK(Run("rewire.nll_loss", {&x, &wrong, &one}) ==
        "ValueError: rewire.nll_loss: element 1 of target is 3, expected 0 to 2 as x has shape [2, 3]");
}

}  // namespace
}  // namespace rewire::test
