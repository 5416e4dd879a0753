// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, random numbers, quantization, optimizer steps and n-grams.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using F = std::vector<float>;
using Ints = std::vector<std::int64_t>;
constexpr double kPi = 3.14159265358979323846;

// The definition: every frequency is a sum over all samples.
std::vector<std::complex<double>> NaiveDft(const std::vector<std::complex<double>>& x, double sign) {
  std::vector<std::complex<double>> result(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto turns = static_cast<double>(k * i % x.size()) / static_cast<double>(x.size());
      result[k] += x[i] * std::polar(1.0, sign * 2 * kPi * turns);
    }
  }
  return result;
}

TEST_CASE("transforms of any length, forth and back") {
  for (std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 31, 64, 100, 243}) {
    CAPTURE(n);
    HostTensor x = HostTensor::Random({2, n, 2}, static_cast<std::uint32_t>(n));
    HostTensor out = HostTensor::Empty<float>({2, n, 2});
    HostTensor back = HostTensor::Empty<float>({2, n, 2});
    REQUIRE(Run("rewire.dft", {&x, &out}) == "");
    REQUIRE(Run("rewire.dft", {&out, &back}, {{"inverse", 1}}) == "");
    for (std::int64_t batch = 0; batch < 2; ++batch) {
      std::vector<std::complex<double>> samples;
      for (std::int64_t i = batch * n; i < (batch + 1) * n; ++i) {
        samples.emplace_back(static_cast<double>(x.elements<float>()[2 * i]),
                             static_cast<double>(x.elements<float>()[2 * i + 1]));
      }
      const auto expected = NaiveDft(samples, -1);
      for (std::int64_t k = 0; k < n; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const std::int64_t i = batch * n + k;
        CHECK(static_cast<double>(out.elements<float>()[2 * i]) == Approx(expected[at].real()).margin(1e-4));
        CHECK(static_cast<double>(out.elements<float>()[2 * i + 1]) ==
              Approx(expected[at].imag()).margin(1e-4));
        CHECK(static_cast<double>(back.elements<float>()[2 * i]) == Approx(samples[at].real()).margin(1e-5));
      }
    }
  }
}

// Lines fill vectors, so there are more than fit one, and some that are left over. Even lengths of real
// numbers go by pairs. Lengths with other factors than 2, 3 and 5 are convolutions.
TEST_CASE("many lines of real numbers, forth and back") {
  for (const std::int64_t n : {1, 2, 3, 4, 6, 10, 14, 15, 22, 25, 60, 128, 400}) {
    CAPTURE(n);
    const std::int64_t lines = 11, bins = n / 2 + 1;
    HostTensor x = HostTensor::Random({lines, n, 1}, static_cast<std::uint32_t>(n));
    HostTensor whole = HostTensor::Empty<float>({lines, n, 2});
    HostTensor first = HostTensor::Empty<float>({lines, bins, 2});
    HostTensor length = HostTensor::Of<std::int64_t>({}, {n});
    HostTensor back = HostTensor::Empty<float>({lines, n, 1});
    REQUIRE(Run("rewire.dft", {&x, &whole}) == "");
    REQUIRE(Run("rewire.dft", {&x, &first}, {{"onesided", 1}}) == "");
    REQUIRE(Run("rewire.dft", {&first, &length, &back}, {{"onesided", 1}, {"inverse", 1}}) == "");
    for (std::int64_t line = 0; line < lines; ++line) {
      std::vector<std::complex<double>> samples;
      for (std::int64_t i = 0; i < n; ++i) {
        samples.emplace_back(static_cast<double>(x.elements<float>()[line * n + i]));
        CHECK(static_cast<double>(back.elements<float>()[line * n + i]) ==
              Approx(samples.back().real()).margin(1e-5));
      }
      const auto expected = NaiveDft(samples, -1);
      for (std::int64_t k = 0; k < n; ++k) {
        const std::complex<double> bin = expected[static_cast<std::size_t>(k)];
        const auto found = [&](std::int64_t part) {
          return whole.elements<float>()[(line * n + k) * 2 + part];
        };
        CHECK(static_cast<double>(found(0)) == Approx(bin.real()).margin(1e-4));
        CHECK(static_cast<double>(found(1)) == Approx(bin.imag()).margin(1e-4));
        if (k >= bins) continue;
        CHECK(first.elements<float>()[(line * bins + k) * 2] == found(0));
        CHECK(first.elements<float>()[(line * bins + k) * 2 + 1] == found(1));
      }
    }
  }
}

TEST_CASE("a line that is not finite leaves the lines beside it alone") {
  HostTensor x = HostTensor::Random({9, 16, 1}, 3), out = HostTensor::Empty<float>({9, 16, 2});
  REQUIRE(Run("rewire.dft", {&x, &out}) == "");
  HostTensor broken = x, other = out;
  broken.elements<float>()[4 * 16] = std::numeric_limits<float>::infinity();
  REQUIRE(Run("rewire.dft", {&broken, &other}) == "");
  for (std::int64_t i = 0; i < 9 * 32; ++i) {
    if (i / 32 == 4)
      CHECK(!std::isfinite(other.elements<float>()[i]));
    else
      CHECK(other.elements<float>()[i] == out.elements<float>()[i]);
  }
}

TEST_CASE("transforms along other axes, cut, filled up and onesided") {
  HostTensor x = HostTensor::Of<float>({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  HostTensor along = HostTensor::Empty<float>({3, 2, 2});
  REQUIRE(Run("rewire.dft", {&x, &along}, {{"axis", 0}}) == "");
  CHECK(along.values<float>()[0] == Approx(6));
  CHECK(along.values<float>()[2] == Approx(60));
  HostTensor length = HostTensor::Of<std::int64_t>({}, {4});
  HostTensor filled = HostTensor::Empty<float>({3, 3, 2});
  REQUIRE(Run("rewire.dft", {&x, &length, &filled}, {{"onesided", 1}}) == "");
  CHECK(filled.values<float>()[0] == Approx(11));
  CHECK(filled.values<float>()[3] == Approx(-10));
  CHECK(filled.values<float>()[4] == Approx(-9));
  HostTensor shape = HostTensor::Of<std::int64_t>({3}, {3, 2, 1});
  HostTensor result = HostTensor::Empty<std::int64_t>({3});
  REQUIRE(Run("rewire.shape.dft", {&shape, &length, &result}, {{"onesided", 1}}) == "");
  CHECK(result.values<std::int64_t>() == Ints{3, 3, 2});
  CHECK(Run("rewire.dft", {&x, &filled}, {{"axis", 2}}) ==
        "ValueError: rewire.dft: axis 2 of x with shape [3, 2, 1] is that of real and imaginary");
}

TEST_CASE("short-time transforms are transforms of windowed frames") {
  HostTensor signal = HostTensor::Random({2, 20, 1}, 1);
  HostTensor window = HostTensor::Empty<float>({8});
  REQUIRE(Run("rewire.window", {&window}, {{"kind", "hann"}}) == "");
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(static_cast<double>(window.values<float>()[i]) ==
          Approx(0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(i) / 8)).margin(1e-6));
  HostTensor step = HostTensor::Of<std::int64_t>({}, {5});
  HostTensor out = HostTensor::Empty<float>({2, 3, 5, 2});
  REQUIRE(Run("rewire.stft", {&signal, &step, &window, &out}) == "");
  for (std::int64_t frame = 0; frame < 6; ++frame) {
    std::vector<std::complex<double>> samples;
    for (std::int64_t i = 0; i < 8; ++i) {
      const float sample = signal.elements<float>()[frame / 3 * 20 + frame % 3 * 5 + i];
      samples.emplace_back(static_cast<double>(sample * window.elements<float>()[i]));
    }
    const auto expected = NaiveDft(samples, -1);
    for (std::int64_t k = 0; k < 5; ++k) {
      const std::complex<double> bin = expected[static_cast<std::size_t>(k)];
      CHECK(static_cast<double>(out.elements<float>()[(frame * 5 + k) * 2]) ==
            Approx(bin.real()).margin(1e-4));
      CHECK(static_cast<double>(out.elements<float>()[(frame * 5 + k) * 2 + 1]) ==
            Approx(bin.imag()).margin(1e-4));
    }
  }
  HostTensor zero = HostTensor::Of<std::int64_t>({}, {0});
  CHECK(Run("rewire.stft", {&signal, &zero, &window, &out}) ==
        "ValueError: rewire.stft: frames of 8 every 0 with a window of 8 do not fit a signal of shape [2, "
        "20, 1]");
}

TEST_CASE("random numbers have their distributions, and repeat with their seed alone") {
  const auto moments = [](const HostTensor& tensor) {
    double sum = 0, squares = 0;
    for (float value : tensor.values<float>()) sum += static_cast<double>(value);
    const double mean = sum / static_cast<double>(tensor.size());
    for (float value : tensor.values<float>()) squares += std::pow(static_cast<double>(value) - mean, 2);
    return std::pair(mean, std::sqrt(squares / static_cast<double>(tensor.size())));
  };
  HostTensor out = HostTensor::Empty<float>({40000});
  ClearSlot();
  REQUIRE(Run("rewire.random_uniform", {&out}, {{"low", -1.0}, {"high", 3.0}, {"seed", 7.0}}) == "");
  CHECK(moments(out).first == Approx(1).margin(0.03));
  CHECK(moments(out).second == Approx(4 / std::sqrt(12)).margin(0.03));
  for (float value : out.values<float>()) REQUIRE((value >= -1 && value <= 3));
  const F first = out.values<float>();
  REQUIRE(Run("rewire.random_uniform", {&out}, {{"low", -1.0}, {"high", 3.0}, {"seed", 7.0}}) == "");
  CHECK(out.values<float>() != first);  // the second call of the VM
  ClearSlot();
  REQUIRE(Run("rewire.random_uniform", {&out}, {{"low", -1.0}, {"high", 3.0}, {"seed", 7.0}}) == "");
  CHECK(out.values<float>() == first);
  REQUIRE(Run("rewire.random_normal", {&out}, {{"mean", 2.0}, {"scale", 3.0}, {"seed", 1.0}}) == "");
  CHECK(moments(out).first == Approx(2).margin(0.08));
  CHECK(moments(out).second == Approx(3).margin(0.08));
  HostTensor chance = HostTensor::Of<float>({40000}, F(40000, 0.3f));
  REQUIRE(Run("rewire.bernoulli", {&chance, &out}) == "");
  CHECK(moments(out).first == Approx(0.3).margin(0.02));
  HostTensor logits = HostTensor::Of<float>({1, 3}, {std::log(1.0f), std::log(2.0f), std::log(5.0f)});
  HostTensor classes = HostTensor::Empty<std::int32_t>({1, 40000});
  REQUIRE(Run("rewire.multinomial", {&logits, &classes}) == "");
  const auto drawn = classes.values<std::int32_t>();
  for (int c = 0; c < 3; ++c) {
    const double share = static_cast<double>(std::count(drawn.begin(), drawn.end(), c)) / 40000;
    CHECK(share == Approx(std::vector<double>{0.125, 0.25, 0.625}[static_cast<std::size_t>(c)]).margin(0.02));
  }
  ClearSlot();
}

TEST_CASE("quantization rounds, shifts and saturates") {
  HostTensor x = HostTensor::Of<float>({6}, {0, 2, 3, 1000, -254, -1000});
  HostTensor scale = HostTensor::Of<float>({}, {2}), zero = HostTensor::Of<std::uint8_t>({}, {128});
  HostTensor q = HostTensor::Empty<std::uint8_t>({6});
  REQUIRE(Run("rewire.quantize_linear", {&x, &scale, &zero, &q}) == "");
  CHECK(q.values<std::uint8_t>() == std::vector<std::uint8_t>{128, 129, 130, 255, 1, 0});
  HostTensor back = HostTensor::Empty<float>({6});
  REQUIRE(Run("rewire.dequantize_linear", {&q, &scale, &zero, &back}) == "");
  CHECK(back.values<float>() == F{0, 2, 4, 254, -254, -256});
  HostTensor two = HostTensor::Of<float>({2, 2}, {1, 2, 3, 4});
  HostTensor scales = HostTensor::Of<float>({2}, {1, 0.5f}),
             zeros = HostTensor::Of<std::int8_t>({2}, {0, -1});
  HostTensor per_axis = HostTensor::Empty<std::int8_t>({2, 2});
  REQUIRE(Run("rewire.quantize_linear", {&two, &scales, &zeros, &per_axis}, {{"axis", 0}}) == "");
  CHECK(per_axis.values<std::int8_t>() == std::vector<std::int8_t>{1, 2, 5, 7});
  REQUIRE(Run("rewire.quantize_linear", {&two, &scales, &zeros, &per_axis}, {{"axis", 1}}) == "");
  CHECK(per_axis.values<std::int8_t>() == std::vector<std::int8_t>{1, 3, 3, 7});
  HostTensor three = HostTensor::Of<float>({3}, {1, 1, 1});
  CHECK(Run("rewire.quantize_linear", {&two, &three, &per_axis}) ==
        "ValueError: rewire.quantize_linear: scale has shape [3], expected one element or [2] as axis 1 of x "
        "with shape "
        "[2, 2]");
  HostTensor blocks = HostTensor::Of<float>({2, 1}, {1, 0.5f});
  HostTensor wide = HostTensor::Empty<std::uint16_t>({2, 2});
  REQUIRE(Run("rewire.quantize_linear", {&two, &blocks, &wide}, {{"block_size", 3}}) == "");
  CHECK(wide.values<std::uint16_t>() == std::vector<std::uint16_t>{1, 2, 6, 8});
  CHECK(Run("rewire.quantize_linear", {&two, &blocks, &wide}, {{"axis", 0}, {"block_size", 3}}) ==
        "ValueError: rewire.quantize_linear: scale has shape [2, 1], expected that of x, [2, 2], with 1 "
        "blocks of 3 "
        "on axis 0");
  HostTensor sums = HostTensor::Of<std::int32_t>({1, 2}, {100, -100});
  HostTensor of_x = HostTensor::Of<float>({}, {0.5f}), of_w = HostTensor::Of<float>({2}, {0.1f, 0.2f}),
             of_y = HostTensor::Of<float>({}, {0.25f});
  HostTensor y = HostTensor::Empty<std::uint8_t>({1, 2});
  REQUIRE(Run("rewire.requantize", {&sums, &of_x, &of_w, &of_y, &zero, &y}) == "");
  CHECK(y.values<std::uint8_t>() == std::vector<std::uint8_t>{148, 88});
  HostTensor found_scale = HostTensor::Empty<float>({}), found_zero = HostTensor::Empty<std::uint8_t>({});
  HostTensor some = HostTensor::Of<float>({3}, {-1, 0, 4.1f});
  HostTensor bytes = HostTensor::Empty<std::uint8_t>({3});
  REQUIRE(Run("rewire.dynamic_quantize_linear", {&some, &bytes, &found_scale, &found_zero}) == "");
  CHECK(found_scale.values<float>()[0] == Approx(0.02));
  CHECK(found_zero.values<std::uint8_t>() == std::vector<std::uint8_t>{50});
  CHECK(bytes.values<std::uint8_t>() == std::vector<std::uint8_t>{0, 50, 255});
}

// Quantizes and dequantizes random numbers. Element i has the scale of number scale_of(i).
void CheckScales(const Shape& shape, const Shape& of_scales, const AttributeList& attributes,
                 const std::function<std::int64_t(std::int64_t)>& scale_of) {
  for (const bool has_zeros : {false, true}) {
    CAPTURE(shape, of_scales, has_zeros);
    HostTensor x = HostTensor::Random(shape, 5);
    HostTensor scale = HostTensor::Empty<float>(of_scales), zero = HostTensor::Empty<std::uint8_t>(of_scales);
    for (std::int64_t i = 0; i < scale.size(); ++i) {
      scale.elements<float>()[i] = 0.01F * static_cast<float>(1 + i * 7 % 13);
      zero.elements<std::uint8_t>()[i] = static_cast<std::uint8_t>(has_zeros ? i * 11 % 200 : 0);
    }
    HostTensor out = HostTensor::Empty<std::uint8_t>(shape), back = HostTensor::Empty<float>(shape);
    std::vector<HostTensor*> arguments = {&x, &scale, &out};
    if (has_zeros) arguments.insert(arguments.begin() + 2, &zero);
    REQUIRE(Run("rewire.quantize_linear", arguments, attributes) == "");
    arguments.front() = &out;
    arguments.back() = &back;
    REQUIRE(Run("rewire.dequantize_linear", arguments, attributes) == "");
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const float by = scale.elements<float>()[scale_of(i)];
      const std::int32_t shift = zero.elements<std::uint8_t>()[scale_of(i)];
      const float whole = std::nearbyint(x.elements<float>()[i] / by) + static_cast<float>(shift);
      const std::int32_t expected = static_cast<std::int32_t>(std::clamp(whole, 0.0F, 255.0F));
      REQUIRE(out.elements<std::uint8_t>()[i] == expected);
      REQUIRE(back.elements<float>()[i] == static_cast<float>(expected - shift) * by);
    }
  }
}

// Rows of few channels and short runs go through the conversion several at a time.
TEST_CASE("quantization has a scale for each position along an axis") {
  constexpr std::int64_t kRows = 41;
  for (const std::int64_t channels : {2, 3, 7, 8, 64, 65, 200}) {
    CheckScales({kRows, channels}, {channels}, {{"axis", 1}}, [=](std::int64_t i) { return i % channels; });
    CheckScales({kRows, channels}, {kRows, channels}, {{"axis", 1}, {"block_size", std::int64_t{1}}},
                [](std::int64_t i) { return i; });
    for (const std::int64_t inner : {2, 3, 19, 63, 64}) {
      CheckScales({3, channels, inner}, {channels}, {{"axis", 1}},
                  [=](std::int64_t i) { return i / inner % channels; });
    }
  }
}

TEST_CASE("quantization has a scale for each block of an axis") {
  for (const std::int64_t block : {2, 3, 8, 15, 16, 40}) {
    for (const std::int64_t columns : {6, 47, 300}) {
      const std::int64_t blocks = (columns + block - 1) / block;
      CheckScales({130, columns}, {130, blocks}, {{"axis", 1}, {"block_size", block}},
                  [=](std::int64_t i) { return i / columns * blocks + i % columns / block; });
    }
  }
}

TEST_CASE("optimizer steps") {
  HostTensor r = HostTensor::Of<float>({}, {0.1f}), t = HostTensor::Of<std::int64_t>({}, {2});
  HostTensor x = HostTensor::Of<float>({1}, {1}), g = HostTensor::Of<float>({1}, {-1}),
             h = HostTensor::Of<float>({1}, {2}), v = HostTensor::Of<float>({1}, {0.5f});
  HostTensor x1 = HostTensor::Empty<float>({1}), h1 = x1, v1 = x1;
  REQUIRE(Run("rewire.adagrad", {&r, &t, &x, &g, &h, &x1, &h1}, {{"decay_factor", 0.5}, {"epsilon", 0.0}}) ==
          "");
  CHECK(h1.values<float>()[0] == 3);
  CHECK(x1.values<float>()[0] == Approx(1 + 0.05 / std::sqrt(3)));
  REQUIRE(Run("rewire.momentum", {&r, &t, &x, &g, &v, &x1, &v1},
              {{"alpha", 0.9}, {"beta", 0.5}, {"mode", "nesterov"}, {"norm_coefficient", 0.0}}) == "");
  CHECK(v1.values<float>()[0] == Approx(-0.05));
  CHECK(x1.values<float>()[0] == Approx(1 + 0.1 * (1 + 0.9 * 0.05)));
  REQUIRE(Run("rewire.adam", {&r, &t, &x, &g, &v, &h, &x1, &v1, &h1}, {{"alpha", 0.5}, {"beta", 0.75}}) ==
          "");
  CHECK(v1.values<float>()[0] == Approx(-0.25));
  CHECK(h1.values<float>()[0] == Approx(1.75));
  const double rate = 0.1 * std::sqrt(1 - 0.75 * 0.75) / (1 - 0.25);
  CHECK(x1.values<float>()[0] == Approx(1 + rate * 0.25 / std::sqrt(1.75)));
}

TEST_CASE("n-grams are counted with skips") {
  HostTensor x = HostTensor::Of<std::int32_t>({2, 6}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  HostTensor out = HostTensor::Empty<float>({2, 7});
  const AttributeList attributes = {{"mode", "TF"},
                                    {"min_gram_length", 2},
                                    {"max_gram_length", 2},
                                    {"max_skip_count", 5},
                                    {"ngram_counts", Ints{0, 4}},
                                    {"ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6}},
                                    {"pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
  REQUIRE(Run("rewire.tfidf", {&x, &out}, attributes) == "");
  CHECK(out.values<float>() == F{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1});
  AttributeList short_pool = attributes;
  short_pool.back().second = Ints{2, 3, 5, 4, 5};
  CHECK(Run("rewire.tfidf", {&x, &out}, short_pool) ==
        "ValueError: rewire.tfidf: attribute 'ngram_counts' does not cut pool_int64s of 5 into n-grams");
}

TEST_CASE("mel filters are triangles") {
  HostTensor bins = HostTensor::Of<std::int64_t>({}, {8}), length = HostTensor::Of<std::int64_t>({}, {16}),
             rate = HostTensor::Of<std::int64_t>({}, {8192}), low = HostTensor::Of<float>({}, {0}),
             high = HostTensor::Of<float>({}, {8192.0f / 2});
  HostTensor out = HostTensor::Empty<float>({9, 8});
  REQUIRE(Run("rewire.mel_weight_matrix", {&bins, &length, &rate, &low, &high, &out}) == "");
  for (std::int64_t m = 0; m < 8; ++m) {
    float most = 0;
    for (std::int64_t i = 0; i < 9; ++i) most = std::max(most, out.elements<float>()[i * 8 + m]);
    CHECK(most == 1);
  }
  HostTensor shape = HostTensor::Empty<std::int64_t>({2});
  REQUIRE(Run("rewire.shape.mel_weight_matrix", {&bins, &length, &shape}) == "");
  CHECK(shape.values<std::int64_t>() == Ints{9, 8});
}

}  // namespace
}  // namespace rewire::test
