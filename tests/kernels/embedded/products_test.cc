// SPDX-License-Identifier: Apache-2.0
// Embedded products by packed weights of floats. Sums of whole numbers are equal to the bit. Others are added
// in another order than that of the stock kernels, so they differ by at most the rounding of both sums.
#include "rewire/tests/kernels/embedded/cases.h"

namespace rewire::test::embedded {
namespace {

struct NamedActivation {
  const char* name;
  void (*apply)(const rewire_embedded_activation*, float*, std::int32_t);
  float alpha, beta;
  bool exact = true;  // of whole numbers
};
const NamedActivation kActivations[] = {
    {"none", nullptr, 0, 0},
    {"relu", &rewire_embedded_activate_relu, 0, 0},
    {"clip", &rewire_embedded_activate_clip, -3, 7},
    {"sigmoid", &rewire_embedded_activate_sigmoid, 0, 0},
    {"tanh", &rewire_embedded_activate_tanh, 0, 0},
    {"hard_swish", &rewire_embedded_activate_hard_swish, 0, 0},
    {"swish", &rewire_embedded_activate_swish, 0, 0},
    {"gelu", &rewire_embedded_activate_gelu, 0, 0},
    {"leaky_relu", &rewire_embedded_activate_leaky_relu, 0.25F, 0},
};

// An activation, and maybe a move behind it, with what the stock kernel is told.
struct DrawnActivation {
  AttributeList attributes;
  rewire_embedded_activation first{}, second{};
  const rewire_embedded_activation* list = nullptr;

  DrawnActivation(Draw& draw, bool any, const std::string& prefix = "") {
    if (!any) return;
    const NamedActivation& named = kActivations[draw.Int(0, std::size(kActivations) - 1)];
    attributes = {{prefix + "activation", named.name},
                  {prefix + "alpha", static_cast<double>(named.alpha)},
                  {prefix + "beta", static_cast<double>(named.beta)}};
    if (draw.Bool()) {
      second = {&rewire_embedded_activate_move, 0.75F, -0.3F, nullptr};
      attributes.push_back({prefix + "post_scale", static_cast<double>(second.alpha)});
      attributes.push_back({prefix + "post_shift", static_cast<double>(second.beta)});
      list = &second;
    }
    if (named.apply != nullptr) {
      first = {named.apply, named.alpha, named.beta, list};
      list = &first;
    }
  }
  DrawnActivation(const DrawnActivation&) = delete;
};

// One product: the embedded kernel, the stock kernel, and the bound of their difference, which the stock
// kernel computes from the magnitudes of all operands.
struct Product {
  std::vector<HostTensor*> inputs;
  HostTensor *out, *stock;
  int depth;

  void Check(const std::string& name, const AttributeList& attributes, bool exact) {
    INFO(name);
    std::vector<HostTensor*> arguments = inputs;
    arguments.push_back(stock);
    REQUIRE(Run(name, arguments, attributes) == "");
    if (exact) {
      if (StockFuses()) CheckSame<float>(*out, *stock);
      return;
    }
    std::vector<HostTensor> magnitudes;
    for (HostTensor* input : inputs) {
      magnitudes.push_back(*input);
      for (float& value : magnitudes.back().elements<float>()) value = std::fabs(value);
    }
    HostTensor bound = *stock;
    arguments.clear();
    for (HostTensor& input : magnitudes) arguments.push_back(&input);
    arguments.push_back(&bound);
    REQUIRE(Run(name, arguments, attributes) == "");
    std::vector<float> bounds = bound.values<float>();
    for (float& value : bounds) value *= static_cast<float>(depth + 3) * 0x1p-23F;
    CheckWithin(*out, *stock, bounds);
  }
};

HostTensor Packed(HostTensor& w, std::int64_t columns, std::int64_t depth, const char* order) {
  HostTensor packed = HostTensor::Empty<float>({(columns + 15) / 16 * 16, depth});
  REQUIRE(Run("rewire.packed.pack", {&w, &packed}, {{"order", order}}) == "");
  return packed;
}

HostTensor None() { return HostTensor::Empty<float>({0}); }

int DrawColumns(Draw& draw) { return draw.Of({1, 3, 7, 8, 9, 16, 17, 31, 32, 33, 48, 49, 70}); }

}  // namespace

TEST_CASE("embedded packed matmul equals the stock kernel") {
  Draw draw(1);
  for (int i = 0; i < 300; ++i) {
    const bool exact = draw.Bool();
    const auto numbers = [&](const Shape& shape) { return exact ? draw.Whole(shape) : draw.Floats(shape); };
    const int rows = draw.Int(0, 9), depth = draw.Int(1, 40), columns = DrawColumns(draw);
    HostTensor x = numbers({rows, depth}), w = numbers({depth, columns});
    HostTensor packed = Packed(w, columns, depth, "IO");
    HostTensor bias = draw.Bool() ? numbers({columns}) : None();
    HostTensor addend = draw.Bool() && rows != 0 ? numbers({rows, columns}) : None();
    HostTensor out = HostTensor::Empty<float>({rows, columns}), stock = out;
    const DrawnActivation activation(draw, exact);
    CAPTURE(i, rows, depth, columns, exact);
    const rewire_embedded_packed_matmul p = {rows, depth, columns, activation.list};
    rewire_embedded_packed_matmul_f32(&p, Data<float>(x), Data<float>(packed), DataOrNull<float>(bias),
                                      DataOrNull<float>(addend), Data<float>(out));
    Product product{{&x, &packed, &bias, &addend}, &out, &stock, depth};
    product.Check("rewire.packed.matmul", With({{"columns", columns}}, activation.attributes), exact);
    if (addend.size() == 0) continue;
    rewire_embedded_packed_matmul_f32(&p, Data<float>(x), Data<float>(packed), DataOrNull<float>(bias),
                                      Data<float>(addend), Data<float>(addend));
    CheckSame<float>(addend, out);
  }
}

TEST_CASE("embedded packed convolution equals the stock kernel") {
  Draw draw(2);
  for (int i = 0; i < 300; ++i) {
    const bool exact = draw.Bool();
    const auto numbers = [&](const Shape& shape) { return exact ? draw.Whole(shape) : draw.Floats(shape); };
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), in = draw.Int(1, 5), columns = DrawColumns(draw);
    HostTensor x = numbers(window.Of(&rewire_embedded_axis::input, images, in, true));
    HostTensor w = numbers(window.Of(&rewire_embedded_axis::kernel, columns, in, false));
    const int depth = in * window.taps();
    HostTensor packed = Packed(w, columns, depth, "OI");
    HostTensor bias = draw.Bool() ? numbers({columns}) : None();
    const Shape shape = window.Of(&rewire_embedded_axis::output, images, columns, true);
    HostTensor addend = draw.Bool() && images != 0 ? numbers(shape) : None();
    HostTensor out = HostTensor::Empty<float>(shape), stock = out;
    const DrawnActivation activation(draw, exact);
    CAPTURE(i, images, in, columns, window.rank, exact);
    const rewire_embedded_packed_conv p = {images,         in, columns, window.rows.axis, window.columns.axis,
                                           activation.list};
    rewire_embedded_packed_conv_f32(&p, Data<float>(x), Data<float>(packed), DataOrNull<float>(bias),
                                    DataOrNull<float>(addend), Data<float>(out));
    Product product{{&x, &packed, &bias, &addend}, &out, &stock, depth};
    product.Check("rewire.packed.conv",
                  With(With({{"channels", columns}}, window.Attributes(true)), activation.attributes), exact);
  }
}

TEST_CASE("embedded packed depthwise convolution equals the stock kernel") {
  Draw draw(3);
  for (int i = 0; i < 300; ++i) {
    const bool exact = draw.Bool();
    const auto numbers = [&](const Shape& shape) { return exact ? draw.Whole(shape) : draw.Floats(shape); };
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), in = draw.Int(1, 21), multiplier = draw.Of({1, 1, 2, 3});
    const int channels = in * multiplier;
    HostTensor x = numbers(window.Of(&rewire_embedded_axis::input, images, in, true));
    HostTensor w = numbers({window.taps(), channels});
    HostTensor bias = draw.Bool() ? numbers({channels}) : None();
    HostTensor out =
        HostTensor::Empty<float>(window.Of(&rewire_embedded_axis::output, images, channels, true));
    HostTensor stock = out;
    const DrawnActivation activation(draw, exact);
    CAPTURE(i, images, in, multiplier, window.rank, exact);
    const rewire_embedded_packed_depthwise p = {
        images, in, multiplier, window.rows.axis, window.columns.axis, activation.list};
    rewire_embedded_packed_depthwise_f32(&p, Data<float>(x), Data<float>(w), DataOrNull<float>(bias),
                                         Data<float>(out));
    // The stock kernel adds taps in the same order.
    Product product{{&x, &w, &bias}, &out, &stock, window.taps()};
    product.Check("rewire.packed.depthwise",
                  With(With({{"channels", channels}, {"multiplier", multiplier}}, window.Attributes(true)),
                       activation.attributes),
                  true);
  }
}

TEST_CASE("embedded packed separable convolution equals the stock kernel") {
  Draw draw(4);
  for (int i = 0; i < 200; ++i) {
    const bool exact = draw.Bool();
    const auto numbers = [&](const Shape& shape) { return exact ? draw.Whole(shape) : draw.Floats(shape); };
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), in = draw.Int(1, 9), columns = DrawColumns(draw);
    HostTensor x = numbers(window.Of(&rewire_embedded_axis::input, images, in, true));
    HostTensor taps = numbers({window.taps(), in}), w = numbers({in, columns});
    HostTensor packed = Packed(w, columns, in, "IO");
    HostTensor taps_bias = draw.Bool() ? numbers({in}) : None();
    HostTensor bias = draw.Bool() ? numbers({columns}) : None();
    const Shape shape = window.Of(&rewire_embedded_axis::output, images, columns, true);
    HostTensor addend = draw.Bool() && images != 0 ? numbers(shape) : None();
    HostTensor out = HostTensor::Empty<float>(shape), stock = out;
    const bool relu = draw.Bool();
    const rewire_embedded_activation inner = {&rewire_embedded_activate_relu, 0, 0, nullptr};
    const DrawnActivation activation(draw, exact);
    AttributeList attributes = With({{"channels", columns}}, window.Attributes(true));
    if (relu && exact) attributes.push_back({"depthwise_activation", "relu"});
    CAPTURE(i, images, in, columns, window.rank, exact, relu);
    const rewire_embedded_packed_separable p = {
        images,         in, columns, window.rows.axis, window.columns.axis, relu && exact ? &inner : nullptr,
        activation.list};
    std::vector<float> workspace(static_cast<std::size_t>(in));
    rewire_embedded_packed_separable_f32(&p, Data<float>(x), Data<float>(taps), DataOrNull<float>(taps_bias),
                                         Data<float>(packed), DataOrNull<float>(bias),
                                         DataOrNull<float>(addend), workspace.data(), Data<float>(out));
    Product product{{&x, &taps, &taps_bias, &packed, &bias, &addend}, &out, &stock, in + window.taps()};
    product.Check("rewire.packed.separable", With(attributes, activation.attributes), exact);
  }
}

}  // namespace rewire::test::embedded
