// SPDX-License-Identifier: Apache-2.0
// Convolution, its transpose and pooling against loops over every tap, written from the definition.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// A window over up to three spatial axes, filled up in front with axes of size 1.
struct Geometry {
  Ints input, kernel, stride, dilation, before, output;

  Geometry(const Shape& x, Ints kernel_shape, const Ints& strides, const Ints& dilations, const Ints& pads,
           bool ceil = false)
      : kernel(std::move(kernel_shape)) {
    const std::size_t rank = kernel.size();
    for (std::size_t i = 0; i < rank; ++i) {
      input.push_back(x[i + 2]);
      stride.push_back(strides.empty() ? 1 : strides[i]);
      dilation.push_back(dilations.empty() ? 1 : dilations[i]);
      before.push_back(pads.empty() ? 0 : pads[i]);
      const std::int64_t after = pads.empty() ? 0 : pads[i + rank];
      const std::int64_t room = input[i] + before[i] + after - (kernel[i] - 1) * dilation[i] - 1;
      std::int64_t size = room / stride[i] + 1;
      if (ceil && room % stride[i] != 0 && size * stride[i] < input[i] + before[i]) ++size;
      output.push_back(size);
    }
    for (Ints* axes : {&input, &kernel, &stride, &dilation, &output})
      axes->insert(axes->begin(), 3 - rank, 1);
    before.insert(before.begin(), 3 - rank, 0);
  }
  static std::int64_t Count(const Ints& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

  // body(input position or -1 outside, tap) for every tap at output position `o`.
  template <typename Body>
  void ForTaps(std::int64_t o, const Body& body) const {
    const std::int64_t at[] = {o / (output[1] * output[2]), o / output[2] % output[1], o % output[2]};
    std::int64_t tap = 0;
    for (std::int64_t z = 0; z < kernel[0]; ++z) {
      for (std::int64_t y = 0; y < kernel[1]; ++y) {
        for (std::int64_t x = 0; x < kernel[2]; ++x) {
          const std::int64_t tap_at[] = {z, y, x};
          std::int64_t position = 0;
          bool inside = true;
          for (std::size_t i = 0; i < 3; ++i) {
            const std::int64_t p = at[i] * stride[i] - before[i] + tap_at[i] * dilation[i];
            inside = inside && p >= 0 && p < input[i];
            position = position * input[i] + p;
          }
          body(inside ? position : -1, tap++);
        }
      }
    }
  }
};

struct ConvCase {
  Shape x, w;
  Ints strides, dilations, pads;
  std::int64_t group = 1;
};

const ConvCase kConvCases[] = {
    {{1, 3, 7, 9}, {8, 3, 3, 3}, {}, {}, {}},
    {{2, 4, 9, 11}, {6, 4, 3, 2}, {2, 3}, {}, {1, 0, 2, 1}},
    {{1, 5, 10, 10}, {7, 5, 3, 3}, {}, {2, 3}, {2, 3, 2, 3}},
    {{2, 6, 8, 5}, {12, 3, 3, 3}, {1, 2}, {}, {1, 1, 1, 1}, 2},
    {{1, 6, 12, 13}, {6, 1, 3, 3}, {}, {}, {1, 1, 1, 1}, 6},  // depthwise
    {{1, 6, 12, 13}, {6, 1, 5, 3}, {2, 2}, {1, 2}, {2, 2, 2, 2}, 6},
    {{1, 4, 6, 6}, {12, 1, 2, 2}, {}, {}, {}, 4},        // depthwise with a multiplier
    {{3, 16, 20, 20}, {33, 16, 1, 1}, {}, {}, {}},       // pointwise
    {{1, 2, 3, 3}, {5, 2, 5, 5}, {}, {}, {2, 2, 2, 2}},  // a kernel larger than the image
    {{1, 1, 300, 4}, {4, 1, 7, 1}, {3, 1}, {}, {}},
    {{2, 3, 20}, {5, 3, 4}, {2}, {}, {1, 2}},  // one axis
    {{2, 3, 20}, {3, 1, 4}, {}, {3}, {4, 4}, 3},
    {{1, 2, 5, 6, 7}, {4, 2, 2, 3, 3}, {1, 2, 1}, {}, {0, 1, 1, 1, 1, 0}},  // three axes
    {{1, 2, 5, 6, 7}, {2, 1, 3, 2, 2}, {2, 1, 2}, {1, 2, 1}, {1, 1, 0, 1, 1, 0}, 2},
    {{0, 3, 4, 4}, {4, 3, 3, 3}, {}, {}, {}},  // no image
    // Few output channels of a group, with lines of several vectors.
    {{1, 4, 5, 83}, {6, 2, 2, 3}, {}, {}, {0, 1, 0, 2}, 2},
    {{2, 6, 3, 90}, {9, 2, 2, 3}, {1, 2}, {}, {1, 2, 0, 1}, 3},
    {{1, 2, 2, 140}, {2, 1, 1, 4}, {1, 3}, {1, 2}, {0, 1, 0, 1}, 2},
    {{1, 2, 70}, {2, 1, 2}, {2}, {}, {}, 2},
    {{1, 2, 3, 40}, {2, 1, 1, 50}, {}, {}, {0, 20, 0, 20}, 2},
};

AttributeList Attributes(const ConvCase& c) {
  AttributeList attributes = {{"group", c.group}};
  if (!c.strides.empty()) attributes.emplace_back("strides", c.strides);
  if (!c.dilations.empty()) attributes.emplace_back("dilations", c.dilations);
  if (!c.pads.empty()) attributes.emplace_back("pads", c.pads);
  return attributes;
}

HostTensor SizesOf(const Shape& shape) {
  return HostTensor::Of<std::int64_t>({static_cast<std::int64_t>(shape.size())}, shape);
}

std::vector<double> Doubles(const HostTensor& tensor) {
  const auto values = tensor.values<float>();
  return std::vector<double>(values.begin(), values.end());
}

void CheckNear(const HostTensor& out, const std::vector<double>& expected, double tolerance = 1e-5) {
  const auto values = Doubles(out);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::fabs(values[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i]))))
      FAIL("element " << i << " is " << values[i] << ", expected " << expected[i]);
  }
}

Shape OutputShape(std::int64_t n, std::int64_t c, const Geometry& geometry, std::size_t rank) {
  Shape shape = {n, c};
  shape.insert(shape.end(), geometry.output.end() - static_cast<std::ptrdiff_t>(rank), geometry.output.end());
  return shape;
}

TEST_CASE("convolution is a sum over taps") {
  for (const ConvCase& c : kConvCases) {
    CAPTURE(c.x, c.w, c.strides, c.dilations, c.pads, c.group);
    const Geometry geometry(c.x, Ints(c.w.begin() + 2, c.w.end()), c.strides, c.dilations, c.pads);
    HostTensor x = HostTensor::Random(c.x, 1);
    HostTensor w = HostTensor::Random(c.w, 2);
    HostTensor bias = HostTensor::Random({c.w[0]}, 3);
    const Shape shape = OutputShape(c.x[0], c.w[0], geometry, c.x.size() - 2);
    HostTensor out = HostTensor::Empty<float>(shape);
    REQUIRE(Run("rewire.conv", {&x, &w, &bias, &out}, Attributes(c)) == "");
    const auto xs = Doubles(x);
    const auto ws = Doubles(w);
    const std::int64_t inputs = Geometry::Count(geometry.input);
    const std::int64_t outputs = Geometry::Count(geometry.output);
    const std::int64_t taps = Geometry::Count(geometry.kernel);
    const std::int64_t per_group = c.w[0] / c.group;
    std::vector<double> expected;
    for (std::int64_t n = 0; n < c.x[0]; ++n) {
      for (std::int64_t m = 0; m < c.w[0]; ++m) {
        for (std::int64_t o = 0; o < outputs; ++o) {
          double sum = static_cast<double>(bias.values<float>()[static_cast<std::size_t>(m)]);
          for (std::int64_t k = 0; k < c.w[1]; ++k) {
            const std::int64_t plane = (n * c.x[1] + m / per_group * c.w[1] + k) * inputs;
            geometry.ForTaps(o, [&](std::int64_t position, std::int64_t tap) {
              if (position < 0) return;
              sum += xs[static_cast<std::size_t>(plane + position)] *
                     ws[static_cast<std::size_t>((m * c.w[1] + k) * taps + tap)];
            });
          }
          expected.push_back(sum);
        }
      }
    }
    CheckNear(out, expected);
    HostTensor shape_x = SizesOf(c.x);
    HostTensor shape_w = SizesOf(c.w);
    HostTensor result = HostTensor::Empty<std::int64_t>({static_cast<std::int64_t>(shape.size())});
    REQUIRE(Run("rewire.shape.conv", {&shape_x, &shape_w, &result}, Attributes(c)) == "");
    CHECK(result.values<std::int64_t>() == shape);
  }
}

TEST_CASE("transposed convolution spreads what convolution gathers") {
  for (const ConvCase& c : kConvCases) {
    CAPTURE(c.x, c.w, c.strides, c.dilations, c.pads, c.group);
    // The case's convolution backwards: from its output to its input, whose size the attribute names.
    const Geometry geometry(c.x, Ints(c.w.begin() + 2, c.w.end()), c.strides, c.dilations, c.pads);
    const std::size_t rank = c.x.size() - 2;
    HostTensor small = HostTensor::Random(OutputShape(c.x[0], c.w[0], geometry, rank), 4);
    HostTensor w = HostTensor::Random(c.w, 2);
    HostTensor out = HostTensor::Empty<float>(c.x);
    const std::int64_t inputs = Geometry::Count(geometry.input);
    const std::int64_t outputs = Geometry::Count(geometry.output);
    const std::int64_t taps = Geometry::Count(geometry.kernel);
    std::vector<double> expected(static_cast<std::size_t>(out.size()), 0);
    const auto xs = Doubles(small);
    const auto ws = Doubles(w);
    for (std::int64_t i = 0; i < small.size(); ++i) {
      const std::int64_t n = i / (c.w[0] * outputs);
      const std::int64_t m = i / outputs % c.w[0];
      for (std::int64_t k = 0; k < c.w[1]; ++k) {
        const std::int64_t plane = (n * c.x[1] + m / (c.w[0] / c.group) * c.w[1] + k) * inputs;
        geometry.ForTaps(i % outputs, [&](std::int64_t position, std::int64_t tap) {
          if (position < 0) return;
          expected[static_cast<std::size_t>(plane + position)] +=
              xs[static_cast<std::size_t>(i)] * ws[static_cast<std::size_t>((m * c.w[1] + k) * taps + tap)];
        });
      }
    }
    // The rest that the strides leave at the end is padding of the output.
    Ints extra;
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t at = i + 3 - rank;
      const std::int64_t after = c.pads.empty() ? 0 : c.pads[i + rank];
      const std::int64_t reach = (geometry.kernel[at] - 1) * geometry.dilation[at] + 1;
      extra.push_back((geometry.input[at] + geometry.before[at] + after - reach) % geometry.stride[at]);
    }
    AttributeList attributes = Attributes(c);
    attributes.emplace_back("output_padding", extra);
    REQUIRE(Run("rewire.conv_transpose", {&small, &w, &out}, attributes) == "");
    CheckNear(out, expected);
    HostTensor shape_x = SizesOf(small.shape());
    HostTensor shape_w = SizesOf(c.w);
    HostTensor result = HostTensor::Empty<std::int64_t>({static_cast<std::int64_t>(c.x.size())});
    REQUIRE(Run("rewire.shape.conv_transpose", {&shape_x, &shape_w, &result}, attributes) == "");
    CHECK(result.values<std::int64_t>() == c.x);
  }
}

TEST_CASE("integer convolution takes the zeros off first") {
  HostTensor x = HostTensor::Of<std::uint8_t>({1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  HostTensor w = HostTensor::Of<std::int8_t>({2, 1, 2, 2}, {1, 1, 1, 1, -1, 2, 3, 4});
  HostTensor x_zero = HostTensor::Of<std::uint8_t>({}, {1});
  HostTensor w_zero = HostTensor::Of<std::int8_t>({2}, {0, 1});
  HostTensor out = HostTensor::Empty<std::int32_t>({1, 2, 2, 2});
  REQUIRE(Run("rewire.conv_integer", {&x, &w, &x_zero, &w_zero, &out}) == "");
  CHECK(out.values<std::int32_t>() == std::vector<std::int32_t>{12, 16, 24, 28, 23, 27, 35, 39});
  // A window of more taps than one question allows.
  HostTensor line = HostTensor::Of<std::uint8_t>({1, 1, 40000}, std::vector<std::uint8_t>(40000, 3));
  HostTensor taps = HostTensor::Of<std::int8_t>({1, 1, 39990}, std::vector<std::int8_t>(39990, 2));
  HostTensor sums = HostTensor::Empty<std::int32_t>({1, 1, 11});
  REQUIRE(Run("rewire.conv_integer", {&line, &taps, &x_zero, &sums}) == "");
  CHECK(sums.values<std::int32_t>() == std::vector<std::int32_t>(11, 39990 * 4));
  HostTensor floats = HostTensor::Random({1, 2, 2, 2}, 1);
  CHECK(Run("rewire.conv_integer", {&x, &w, &x_zero, &w_zero, &floats}) ==
        "TypeError: rewire.conv_integer: out has dtype f32, expected i32");
}

struct PoolCase {
  Shape x;
  Ints kernel, strides, dilations, pads;
  bool ceil = false;
};

const PoolCase kPoolCases[] = {
    {{2, 3, 8, 9}, {2, 2}, {2, 2}, {}, {}},
    {{1, 2, 9, 7}, {3, 2}, {2, 1}, {}, {1, 0, 1, 1}},
    {{1, 1, 10, 10}, {3, 3}, {}, {2, 3}, {2, 2, 1, 2}},
    {{1, 2, 5, 5}, {2, 2}, {2, 2}, {}, {}, true},
    {{1, 1, 6, 6}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, true},
    {{2, 3, 17}, {3}, {2}, {}, {1, 1}},
    {{1, 2, 6, 5, 4}, {2, 2, 2}, {2, 1, 2}, {}, {0, 1, 0, 0, 0, 1}},
    {{0, 3, 4, 4}, {2, 2}, {}, {}, {}},
};

AttributeList Attributes(const PoolCase& c) {
  AttributeList attributes = {{"kernel_shape", c.kernel}, {"ceil_mode", c.ceil ? 1 : 0}};
  if (!c.strides.empty()) attributes.emplace_back("strides", c.strides);
  if (!c.dilations.empty()) attributes.emplace_back("dilations", c.dilations);
  if (!c.pads.empty()) attributes.emplace_back("pads", c.pads);
  return attributes;
}

// `reduce` makes one output of the elements under a window.
void CheckPool(const PoolCase& c, const std::string& name, const AttributeList& more,
               const std::function<double(const std::vector<double>&)>& reduce) {
  CAPTURE(name, c.x, c.kernel, c.strides, c.dilations, c.pads, c.ceil);
  const Geometry geometry(c.x, c.kernel, c.strides, c.dilations, c.pads, c.ceil);
  HostTensor x = HostTensor::Random(c.x, 5);
  const Shape shape = OutputShape(c.x[0], c.x[1], geometry, c.kernel.size());
  HostTensor out = HostTensor::Empty<float>(shape);
  AttributeList attributes = Attributes(c);
  attributes.insert(attributes.end(), more.begin(), more.end());
  REQUIRE(Run(name, {&x, &out}, attributes) == "");
  const auto xs = Doubles(x);
  std::vector<double> expected;
  for (std::int64_t p = 0; p < c.x[0] * c.x[1]; ++p) {
    for (std::int64_t o = 0; o < Geometry::Count(geometry.output); ++o) {
      std::vector<double> covered;
      geometry.ForTaps(o, [&](std::int64_t position, std::int64_t) {
        if (position >= 0)
          covered.push_back(xs[static_cast<std::size_t>(p * Geometry::Count(geometry.input) + position)]);
      });
      expected.push_back(reduce(covered));
    }
  }
  CheckNear(out, expected);
  HostTensor shape_x = SizesOf(c.x);
  HostTensor result = HostTensor::Empty<std::int64_t>({static_cast<std::int64_t>(shape.size())});
  REQUIRE(Run("rewire.shape.pool", {&shape_x, &result}, Attributes(c)) == "");
  CHECK(result.values<std::int64_t>() == shape);
}

TEST_CASE("pooling reduces what its window covers") {
  for (const PoolCase& c : kPoolCases) {
    CheckPool(c, "rewire.max_pool", {}, [](const std::vector<double>& covered) {
      return *std::max_element(covered.begin(), covered.end());
    });
    CheckPool(c, "rewire.avg_pool", {}, [](const std::vector<double>& covered) {
      double sum = 0;
      for (double value : covered) sum += value;
      return sum / static_cast<double>(covered.size());
    });
    CheckPool(c, "rewire.lp_pool", {{"p", 3}}, [](const std::vector<double>& covered) {
      double sum = 0;
      for (double value : covered) sum += std::pow(std::fabs(value), 3);
      return std::cbrt(sum);
    });
  }
}

// Along one axis: the size is ceil((size + pads - reach) / stride + 1), less a window that would begin behind
// the image. -1: there are less than no windows.
std::int64_t CeiledSize(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                        std::int64_t before, std::int64_t after) {
  const auto room = static_cast<double>(size + before + after - (kernel - 1) * dilation - 1);
  auto count = static_cast<std::int64_t>(std::ceil(room / static_cast<double>(stride))) + 1;
  if ((count - 1) * stride >= size + before) --count;
  return std::max<std::int64_t>(count, -1);
}

TEST_CASE("windows that are larger than the image are cut under ceil_mode") {
  std::int64_t larger = 0;
  for (const std::int64_t size : {1, 2, 3}) {
    for (const std::int64_t kernel : {1, 2, 3, 5}) {
      for (const std::int64_t stride : {1, 2, 3, 8}) {
        for (const std::int64_t dilation : {1, 2, 4}) {
          for (const std::int64_t pads : {0, 1, 2, 10, 11}) {
            const std::int64_t before = pads / 10 + pads % 10, after = pads % 10;
            const std::int64_t count = CeiledSize(size, kernel, stride, dilation, before, after);
            CAPTURE(size, kernel, stride, dilation, before, after);
            const AttributeList attributes = {{"kernel_shape", Ints{kernel}},
                                              {"strides", Ints{stride}},
                                              {"dilations", Ints{dilation}},
                                              {"pads", Ints{before, after}},
                                              {"ceil_mode", 1}};
            HostTensor x = HostTensor::Random({1, 1, size}, 3);
            HostTensor out = HostTensor::Empty<float>({1, 1, std::max<std::int64_t>(count, 0)});
            const std::string error = Run("rewire.max_pool", {&x, &out}, attributes);
            if (count < 0) {
              CHECK_THAT(error, Catch::Contains("the window covers"));
              continue;
            }
            REQUIRE(error == "");
            larger += count > 0 && (kernel - 1) * dilation + 1 > size + before + after ? 1 : 0;
            // One image is the same with its channels first or last.
            HostTensor last = HostTensor::Of<float>({1, size, 1}, x.values<float>());
            HostTensor out_last = HostTensor::Empty<float>({1, count, 1});
            AttributeList layout = attributes;
            layout.emplace_back("layout", "NHWC");
            REQUIRE(Run("rewire.max_pool", {&last, &out_last}, layout) == "");
            CHECK(out_last.values<float>() == out.values<float>());
            HostTensor mean = HostTensor::Empty<float>({1, 1, count}),
                       mean_last = HostTensor::Empty<float>({1, count, 1});
            REQUIRE(Run("rewire.avg_pool", {&x, &mean}, attributes) == "");
            REQUIRE(Run("rewire.avg_pool", {&last, &mean_last}, layout) == "");
            CHECK(mean_last.values<float>() == mean.values<float>());
            for (std::int64_t o = 0; o < count; ++o) {
              double most = -std::numeric_limits<double>::infinity(), sum = 0;
              int covered = 0;
              for (std::int64_t k = 0; k < kernel; ++k) {
                const std::int64_t at = o * stride - before + k * dilation;
                if (at < 0 || at >= size) continue;
                const auto value = static_cast<double>(x.elements<float>()[at]);
                most = std::max(most, value);
                sum += value;
                ++covered;
              }
              CHECK(static_cast<double>(out.elements<float>()[o]) == most);
              CHECK(static_cast<double>(mean.elements<float>()[o]) ==
                    Approx(covered == 0 ? 0 : sum / covered));
            }
          }
        }
      }
    }
  }
  CHECK(larger > 50);
}

TEST_CASE("average pooling can count the pads") {
  HostTensor x = HostTensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  HostTensor out = HostTensor::Empty<float>({1, 1, 3, 3});
  const AttributeList attributes = {
      {"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", 1}};
  REQUIRE(Run("rewire.avg_pool", {&x, &out}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{0.25f, 0.75f, 0.5f, 1, 2.5f, 1.5f, 0.75f, 1.75f, 1});
}

TEST_CASE("max pooling tells where, and unpooling puts back") {
  HostTensor x = HostTensor::Of<float>({1, 2, 2, 4}, {1, 2, 3, 4, 8, 7, 6, 5, 0, 0, 9, 0, 0, 3, 0, 0});
  HostTensor out = HostTensor::Empty<float>({1, 2, 1, 2});
  HostTensor where = HostTensor::Empty<std::int64_t>({1, 2, 1, 2});
  const AttributeList attributes = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  REQUIRE(Run("rewire.max_pool", {&x, &out, &where}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{8, 6, 3, 9});
  CHECK(where.values<std::int64_t>() == Ints{4, 6, 13, 10});
  HostTensor back = HostTensor::Empty<float>({1, 2, 2, 4});
  REQUIRE(Run("rewire.max_unpool", {&out, &where, &back}, attributes) == "");
  CHECK(back.values<float>() == std::vector<float>{0, 0, 0, 0, 8, 0, 6, 0, 0, 0, 9, 0, 0, 3, 0, 0});
  AttributeList column_major = attributes;
  column_major.emplace_back("storage_order", 1);
  REQUIRE(Run("rewire.max_pool", {&x, &out, &where}, column_major) == "");
  CHECK(where.values<std::int64_t>() == Ints{1, 5, 11, 12});
  HostTensor far = HostTensor::Of<std::int64_t>({1, 2, 1, 2}, {4, 6, 16, 10});
  CHECK(Run("rewire.max_unpool", {&out, &far, &back}, attributes) ==
        "ValueError: rewire.max_unpool: element 2 of indices is 16, expected 0 to 15 for the pooled shape "
        "[1, 2, 2, 4]");
}

TEST_CASE("auto_pad keeps or drops the border") {
  HostTensor x = HostTensor::Of<float>({1, 1, 4}, {1, 2, 3, 4});
  HostTensor w = HostTensor::Of<float>({1, 1, 2}, {10, 1});
  HostTensor four = HostTensor::Empty<float>({1, 1, 4});
  REQUIRE(Run("rewire.conv", {&x, &w, &four}, {{"auto_pad", "SAME_UPPER"}}) == "");
  CHECK(four.values<float>() == std::vector<float>{12, 23, 34, 40});
  REQUIRE(Run("rewire.conv", {&x, &w, &four}, {{"auto_pad", "SAME_LOWER"}}) == "");
  CHECK(four.values<float>() == std::vector<float>{1, 12, 23, 34});
  HostTensor three = HostTensor::Empty<float>({1, 1, 3});
  REQUIRE(Run("rewire.conv", {&x, &w, &three}, {{"auto_pad", "VALID"}}) == "");
  CHECK(three.values<float>() == std::vector<float>{12, 23, 34});
  HostTensor eight = HostTensor::Empty<float>({1, 1, 8});
  REQUIRE(Run("rewire.conv_transpose", {&x, &w, &eight},
              {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2}}}) == "");
  CHECK(eight.values<float>() == std::vector<float>{10, 1, 20, 2, 30, 3, 40, 4});
}

TEST_CASE("col2im adds blocks up where they lie") {
  HostTensor x =
      HostTensor::Of<float>({1, 4, 4}, {1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400, 0, 0, 0, 5});
  HostTensor image = HostTensor::Of<std::int64_t>({2}, {3, 3});
  HostTensor block = HostTensor::Of<std::int64_t>({2}, {2, 2});
  HostTensor out = HostTensor::Empty<float>({1, 1, 3, 3});
  REQUIRE(Run("rewire.col2im", {&x, &image, &block, &out}) == "");
  CHECK(out.values<float>() == std::vector<float>{1, 12, 20, 103, 234, 40, 300, 400, 5});
}

TEST_CASE("col2im along steps, gaps and borders is a loop over blocks") {
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t gap : {1, 2}) {
      CAPTURE(stride, gap);
      // Columns are 40 elements and more, rows few.
      const std::int64_t rows = 7, columns = 83, pad = 1;
      const std::int64_t down = (rows + 2 * pad - gap * 2 - 1) / stride + 1;
      const std::int64_t across = (columns + 2 * pad - gap * 1 - 1) / stride + 1;
      HostTensor x = HostTensor::Random({2, 3 * 6, down * across}, 5);
      HostTensor image = HostTensor::Of<std::int64_t>({2}, {rows, columns});
      HostTensor block = HostTensor::Of<std::int64_t>({2}, {3, 2});
      HostTensor out = HostTensor::Empty<float>({2, 3, rows, columns});
      REQUIRE(Run("rewire.col2im", {&x, &image, &block, &out},
                  {{"strides", Ints{stride, stride}},
                   {"dilations", Ints{gap, gap}},
                   {"pads", Ints{pad, pad, pad, pad}}}) == "");
      std::vector<float> expected(static_cast<std::size_t>(2 * 3 * rows * columns));
      std::size_t at = 0;
      for (std::int64_t plane = 0; plane < 2 * 3; ++plane) {
        for (std::int64_t tap = 0; tap < 6; ++tap) {
          for (std::int64_t o = 0; o < down * across; ++o, ++at) {
            const std::int64_t i = o / across * stride - pad + tap / 2 * gap;
            const std::int64_t j = o % across * stride - pad + tap % 2 * gap;
            if (i < 0 || i >= rows || j < 0 || j >= columns) continue;
            expected[static_cast<std::size_t>((plane * rows + i) * columns + j)] += x.values<float>()[at];
          }
        }
      }
      CHECK(out.values<float>() == expected);
    }
  }
}

TEST_CASE("wrong windows are refused with exact messages") {
  HostTensor x = HostTensor::Random({1, 2, 4, 4}, 1);
  HostTensor w = HostTensor::Random({3, 2, 3, 3}, 1);
  HostTensor out = HostTensor::Empty<float>({1, 3, 2, 2});
  HostTensor flat = HostTensor::Random({2, 4}, 1);
  CHECK(Run("rewire.conv", {&flat, &flat, &out}) ==
        "ValueError: rewire.conv: w has shape [2, 4], expected [M, C / group, ...] of the rank of x [2, 4]");
  CHECK(Run("rewire.conv", {&x, &w, &out}, {{"group", 2}}) ==
        "ValueError: rewire.conv: w has shape [3, 2, 3, 3], expected 2 / 2 channels as x of shape [1, 2, 4, "
        "4] with 2 "
        "groups");
  CHECK(Run("rewire.conv", {&x, &w, &out}, {{"strides", Ints{1}}}) ==
        "ValueError: rewire.conv: attribute 'strides' is [1], expected 2 ints");
  CHECK(Run("rewire.conv", {&x, &w, &out}, {{"pads", Ints{0, 0, -1, 0}}}) ==
        "ValueError: rewire.conv: attribute 'pads' is [0, 0, -1, 0], expected ints from 0 to 1073741824");
  CHECK(Run("rewire.conv", {&x, &w, &out}, {{"dilations", Ints{2, 1}}}) ==
        "ValueError: rewire.conv: the window covers 5 along axis 2, x has only 4 there with its pads");
  CHECK(Run("rewire.conv", {&x, &w, &x}) ==
        "ValueError: rewire.conv: out shares memory with x; this kernel cannot work in place");
  HostTensor bias = HostTensor::Random({2}, 1);
  CHECK(Run("rewire.conv", {&x, &w, &bias, &out}) ==
        "ValueError: rewire.conv: bias has shape [2], expected [3]");
  CHECK(Run("rewire.max_pool", {&x, &out}) ==
        "ValueError: rewire.max_pool: attribute 'kernel_shape' is missing");
  CHECK(Run("rewire.max_pool", {&x, &out}, {{"kernel_shape", Ints{2}}}) ==
        "ValueError: rewire.max_pool: the kernel has shape [2], expected 2 axes as x of shape [1, 2, 4, 4]");
  FailWorkspace(true);
  HostTensor many = HostTensor::Random({8, 2, 3, 3}, 1);
  HostTensor wide = HostTensor::Empty<float>({1, 8, 2, 2});
  CHECK(Run("rewire.conv", {&x, &many, &wide}) == "MemoryError: the test gives no workspace");
  FailWorkspace(false);
}

}  // namespace
}  // namespace rewire::test
