// SPDX-License-Identifier: Apache-2.0
// Pools in vectors against loops over each window, element by element and in its order: all results are the
// same bits, on every instruction set.
#include "rewire/kernels/cpu/convolution/pool/sliding_windows.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;
using kernel::cpu::Window;
using kernel::cpu::WindowAttributes;

struct Drawn {
  Shape x;
  WindowAttributes window;
  bool with_pads;
};

// Windows of one to three axes that reach over the image, with strides, gaps and borders of their own.
Drawn Draw(std::mt19937& random) {
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (;;) {
    // Narrow images of many planes go another way than others.
    const bool many = between(0, 2) == 0;
    Drawn drawn{{between(1, 2), many ? between(10, 70) : between(1, 3)}, {}, between(0, 1) == 1};
    const std::int64_t rank = between(1, 3);
    Ints after;
    for (std::int64_t i = 0; i < rank; ++i) {
      const bool last = i + 1 == rank;
      drawn.x.push_back(between(1, !last ? 12 : many ? (rank == 3 ? 12 : 40) : 150));
      drawn.window.kernel.push_back(between(1, last ? 17 : 6));
      drawn.window.strides.push_back(between(1, 5));
      drawn.window.dilations.push_back(between(1, 4) == 1 ? 2 : 1);
      drawn.window.pads.push_back(between(0, drawn.window.kernel.back() - 1));
      after.push_back(between(0, drawn.window.kernel.back() - 1));
    }
    drawn.window.pads.insert(drawn.window.pads.end(), after.begin(), after.end());
    drawn.window.ceil_mode = between(0, 1) == 1;
    Window window;
    const kernel::Status status =
        drawn.window.Resolve(kernel::ShapeView(drawn.x.data(), drawn.x.size()), &window);
    // A plain loop over windows does so much in a moment, sanitized as well.
    constexpr std::int64_t kMostTaps = 4'000'000;
    if (status.ok() && window.outputs() > 0 &&
        drawn.x[0] * drawn.x[1] * window.outputs() * window.taps() <= kMostTaps)
      return drawn;
  }
}

AttributeList Attributes(const Drawn& drawn) {
  return {{"kernel_shape", drawn.window.kernel},
          {"strides", drawn.window.strides},
          {"dilations", drawn.window.dilations},
          {"pads", drawn.window.pads},
          {"ceil_mode", drawn.window.ceil_mode ? 1 : 0}};
}

// body(the elements under a window in order, how many positions it covers with pads, where in x the elements
// are)
template <typename T, typename Body>
void ForWindows(const Drawn& drawn, const Window& window, const std::vector<T>& x, const Body& body) {
  const auto& axes = window.axes;
  for (std::int64_t plane = 0; plane < drawn.x[0] * drawn.x[1]; ++plane) {
    for (std::int64_t o = 0; o < window.outputs(); ++o) {
      const std::int64_t at[] = {o / axes[2].output / axes[1].output, o / axes[2].output % axes[1].output,
                                 o % axes[2].output};
      std::vector<T> under;
      Ints places;
      std::int64_t with_pads = 0;
      for (std::int64_t t = 0; t < window.taps(); ++t) {
        const std::int64_t tap[] = {t / axes[2].kernel / axes[1].kernel, t / axes[2].kernel % axes[1].kernel,
                                    t % axes[2].kernel};
        std::int64_t index = 0;
        bool inside = true, padded = true;
        for (int i = 0; i < 3; ++i) {
          const std::int64_t p = at[i] * axes[i].stride - axes[i].before + tap[i] * axes[i].dilation;
          inside = inside && p >= 0 && p < axes[i].input;
          padded = padded && p < axes[i].input + axes[i].after;
          index = index * axes[i].input + p;
        }
        if (inside) places.push_back(plane * window.inputs() + index);
        if (inside) under.push_back(x[static_cast<std::size_t>(places.back())]);
        with_pads += padded ? 1 : 0;
      }
      body(under, with_pads, places);
    }
  }
}

template <typename T>
T LargestOf(const std::vector<T>& under) {
  using Limits = std::numeric_limits<T>;
  T most = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  for (const T value : under) most = value > most || value != value ? value : most;
  return most;
}

// The first of equals, the last NaN, -1 of none.
template <typename T>
std::int64_t PlaceOfLargest(const std::vector<T>& under, const Ints& places) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < under.size(); ++i)
    best = under[i] > under[best] || under[i] != under[i] ? i : best;
  return under.empty() ? -1 : places[best];
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <typename T>
HostTensor Numbers(const Shape& shape, std::mt19937& random, bool with_edges) {
  HostTensor tensor = HostTensor::Empty<T>(shape);
  for (T& value : tensor.elements<T>()) {
    // Few numbers, so that there are equal ones, and both zeros.
    const auto drawn = static_cast<int>(random() % 41) - 20;
    value = static_cast<T>(drawn);
    if constexpr (!std::numeric_limits<T>::is_integer) {
      value = random() % 16 == 0 ? T{-0.0} : static_cast<T>(drawn) / T{7};
      const T nan = static_cast<T>(std::nan("1"));
      if (with_edges && random() % 64 == 0) value = random() % 2 == 0 ? nan : -nan;
    }
  }
  return tensor;
}

template <typename T>
std::vector<T> Pool(const std::string& name, HostTensor& x, const Shape& out_shape, AttributeList attributes,
                    const AttributeList& more = {}) {
  attributes.insert(attributes.end(), more.begin(), more.end());
  HostTensor out = HostTensor::Empty<T>(out_shape);
  REQUIRE(Run(name, {&x, &out}, attributes) == "");
  return out.values<T>();
}

// x [N, C, ...] as [N, ..., C].
template <typename T>
HostTensor ChannelsLast(const HostTensor& x) {
  const Shape& from = x.shape();
  Shape shape = {from[0]};
  shape.insert(shape.end(), from.begin() + 2, from.end());
  shape.push_back(from[1]);
  std::int64_t plane = 1;
  for (std::size_t i = 2; i < from.size(); ++i) plane *= from[i];
  HostTensor made = HostTensor::Empty<T>(shape);
  const std::vector<T> values = x.values<T>();
  for (std::int64_t i = 0; i < made.size(); ++i) {
    const std::int64_t n = i / (plane * from[1]), at = i / from[1] % plane, c = i % from[1];
    made.elements<T>()[i] = values[static_cast<std::size_t>((n * from[1] + c) * plane + at)];
  }
  return made;
}

// Means with the channels last are those with the channels first.
template <typename T>
void CheckChannelsLast(const Drawn& drawn, HostTensor& x, const Shape& out_shape, AttributeList attributes) {
  attributes.emplace_back("count_include_pad", drawn.with_pads ? 1 : 0);
  HostTensor first = HostTensor::Empty<T>(out_shape), last_x = ChannelsLast<T>(x);
  REQUIRE(Run("rewire.avg_pool", {&x, &first}, attributes) == "");
  HostTensor expected = ChannelsLast<T>(first);
  HostTensor last = HostTensor::Empty<T>(expected.shape());
  attributes.emplace_back("layout", "NHWC");
  REQUIRE(Run("rewire.avg_pool", {&last_x, &last}, attributes) == "");
  const std::vector<T> given = last.values<T>(), wanted = expected.values<T>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]) ? !std::isnan(given[i]) : given[i] != wanted[i]) FAIL_CHECK("position " << i);
  }
}

template <typename T>
void CheckDrawn(std::mt19937& random) {
  const Drawn drawn = Draw(random);
  CAPTURE(drawn.x, drawn.window.kernel, drawn.window.strides, drawn.window.dilations, drawn.window.pads,
          drawn.window.ceil_mode, drawn.with_pads);
  Window window;
  REQUIRE(drawn.window.Resolve(kernel::ShapeView(drawn.x.data(), drawn.x.size()), &window).ok());
  const auto dims = window.OutputDims(drawn.x[0], drawn.x[1]);
  const Shape out_shape(dims.view().begin(), dims.view().end());
  HostTensor x = Numbers<T>(drawn.x, random, random() % 3 == 0);
  const AttributeList attributes = Attributes(drawn);

  std::vector<T> largest, mean, norm_1, norm_2;
  Ints largest_places;
  const auto meet = [&](const std::vector<T>& under, std::int64_t with_pads, const Ints& places) {
    largest.push_back(LargestOf(under));
    largest_places.push_back(PlaceOfLargest(under, places));
    T sum = 0, magnitudes = 0, squares = 0;
    for (const T value : under) {
      sum += value;
      if constexpr (!std::numeric_limits<T>::is_integer) {
        magnitudes += std::fabs(value);
        const volatile T square = value * value;  // rounded before it is added
        squares += square;
      }
    }
    const auto count = drawn.with_pads ? with_pads : static_cast<std::int64_t>(under.size());
    if constexpr (!std::numeric_limits<T>::is_integer)
      mean.push_back(count == 0 ? T{0} : static_cast<T>(sum / static_cast<T>(count)));
    norm_1.push_back(magnitudes);
    if constexpr (!std::numeric_limits<T>::is_integer) norm_2.push_back(std::sqrt(squares));
  };
  ForWindows<T>(drawn, window, x.values<T>(), meet);
  ForEachTarget([&] {
    CHECK(SameBits(Pool<T>("rewire.max_pool", x, out_shape, attributes), largest));
    HostTensor out = HostTensor::Empty<T>(out_shape), indices = HostTensor::Empty<std::int64_t>(out_shape);
    REQUIRE(Run("rewire.max_pool", {&x, &out, &indices}, attributes) == "");
    CHECK(SameBits(out.values<T>(), largest));
    CHECK(indices.values<std::int64_t>() == largest_places);
    if constexpr (!std::numeric_limits<T>::is_integer) {
      // Sums with NaN have one, whose sign and payload are the CPU's choice.
      const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
        for (std::size_t i = 0; i < b.size(); ++i) {
          if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])))
            return false;
        }
        return a.size() == b.size();
      };
      CHECK(same(Pool<T>("rewire.avg_pool", x, out_shape, attributes,
                         {{"count_include_pad", drawn.with_pads ? 1 : 0}}),
                 mean));
      CheckChannelsLast<T>(drawn, x, out_shape, attributes);
      CHECK(same(Pool<T>("rewire.lp_pool", x, out_shape, attributes, {{"p", 1}}), norm_1));
      if (kernel::cpu::CanSlide<T>(window))
        CHECK(same(Pool<T>("rewire.lp_pool", x, out_shape, attributes, {{"p", 2}}), norm_2));
    }
  });
}

TEMPLATE_TEST_CASE("pools in vectors are loops over their windows, on every instruction set", "", float,
                   double, std::uint8_t, std::int8_t) {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) CheckDrawn<TestType>(random);
}

TEST_CASE("the mean of a window that meets no element is 0 in both layouts") {
  // The first window has its two taps on the pads, at -1 and 1.
  ForEachTarget([] {
    for (const Shape& shape : {Shape{1, 2, 1}, Shape{1, 2, 1, 9}}) {
      const bool is_line = shape.size() == 3;
      Drawn drawn{shape, {}, false};
      drawn.window.kernel = is_line ? Ints{2} : Ints{2, 2};
      drawn.window.dilations = is_line ? Ints{2} : Ints{2, 1};
      drawn.window.strides = is_line ? Ints{1} : Ints{1, 1};
      drawn.window.pads = is_line ? Ints{1, 1} : Ints{1, 0, 1, 0};
      HostTensor x = HostTensor::Random(shape, 1);
      const Shape out_shape = is_line ? Shape{1, 2, 1} : Shape{1, 2, 1, 8};
      HostTensor out = HostTensor::Empty<float>(out_shape);
      REQUIRE(Run("rewire.avg_pool", {&x, &out}, Attributes(drawn)) == "");
      CHECK(out.values<float>() == std::vector<float>(static_cast<std::size_t>(out.size()), 0));
      CheckChannelsLast<float>(drawn, x, out_shape, Attributes(drawn));
    }
  });
}

TEST_CASE("windows that do not fit a strip are left to the loop") {
  Window window;
  const Shape x = {1, 1, 64, 64};
  const auto resolve = [&](const Ints& kernel) {
    WindowAttributes attributes;
    attributes.kernel = kernel;
    REQUIRE(attributes.Resolve(kernel::ShapeView(x.data(), x.size()), &window).ok());
    return kernel::cpu::CanSlide<float>(window);
  };
  CHECK(resolve({9, 9}));
  CHECK(!resolve({64, 64}));  // one output
  CHECK(!resolve({60, 50}));  // too many taps
}

}  // namespace
}  // namespace rewire::test
