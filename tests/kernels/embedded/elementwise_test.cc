// SPDX-License-Identifier: Apache-2.0
// Embedded rows and the activations behind products against the stock kernels, on numbers of all kinds.
#include "rewire/tests/kernels/embedded/cases.h"

#include "rewire/kernels/embedded/rewire_embedded_rows.h"

namespace rewire::test::embedded {
namespace {

// Numbers of all magnitudes, signed zeros, infinities, NaN and the ends of what functions are finite for.
std::vector<float> Numbers() {
  std::vector<float> numbers = {0.0F,   -0.0F,   1.0F,   -1.0F,  0.5F,     -0.5F,     1.5F, -2.5F,
                                88.7F,  88.8F,   -87.3F, -87.4F, -104.0F,  9.0F,      9.1F, 20.0F,
                                1e-30F, -1e-30F, 3e38F,  -3e38F, INFINITY, -INFINITY, NAN};
  Draw draw(21);
  for (int i = 0; i < 300; ++i) numbers.push_back(std::ldexp(draw.Float(), draw.Int(-12, 8)));
  return numbers;
}

// Functions of the math library differ from the stock kernels' by some units in the last place.
bool IsOfLibrary(const std::string& kernel) {
  return kernel == "log" || kernel == "sin" || kernel == "cos" || kernel == "erf" || kernel == "softplus" ||
         kernel == "elu" || kernel == "celu";
}

void CheckRow(const std::string& kernel, rewire_embedded_row* row, const std::vector<float>& attributes,
              const AttributeList& list) {
  INFO(kernel);
  const std::vector<float> numbers = Numbers();
  const auto count = static_cast<std::int64_t>(numbers.size());
  HostTensor x = HostTensor::Of<float>({count}, numbers), out = HostTensor::Empty<float>({count}),
             stock = out;
  const void* inputs[] = {Data<float>(x), nullptr, nullptr};
  std::int32_t steps[] = {1, 0, 0};
  for (std::size_t i = 0; i < attributes.size(); ++i) inputs[i + 1] = &attributes[i];
  row(static_cast<std::int32_t>(count), inputs, steps, Data<float>(out));
  const bool tanh_form = kernel == "gelu_tanh";  // an attribute of rewire.gelu
  REQUIRE(Run(tanh_form ? "rewire.gelu" : "rewire." + kernel, {&x, &stock},
              tanh_form ? AttributeList{{"approximate", "tanh"}} : list) == "");
  if (IsOfLibrary(kernel))
    CheckNear(out, stock, 8, 2e-7F);
  else if (StockFuses())
    CheckSame<float>(out, stock);
  row(static_cast<std::int32_t>(count), inputs, steps, Data<float>(x));
  CheckSame<float>(x, out);
}

}  // namespace

TEST_CASE("embedded rows of one operand equal the stock kernels") {
#define CHECK_ROW(kernel, function) CheckRow(#kernel, &rewire_embedded_##kernel##_f32, {}, {});
  REWIRE_EMBEDDED_ROWS_OF_ONE(CHECK_ROW)
#undef CHECK_ROW
  CheckRow("leaky_relu", &rewire_embedded_leaky_relu_f32, {0.3F}, {{"alpha", 0.3}});
  CheckRow("elu", &rewire_embedded_elu_f32, {1.5F}, {{"alpha", 1.5}});
  CheckRow("celu", &rewire_embedded_celu_f32, {1.5F}, {{"alpha", 1.5}});
  CheckRow("thresholded_relu", &rewire_embedded_thresholded_relu_f32, {0.5F}, {{"alpha", 0.5}});
  CheckRow("clip", &rewire_embedded_clip_f32, {-1.0F, 2.5F}, {{"min", -1.0}, {"max", 2.5}});
  CheckRow("hard_sigmoid", &rewire_embedded_hard_sigmoid_f32, {0.2F, 0.5F}, {{"alpha", 0.2}, {"beta", 0.5}});
  CheckRow("shrink", &rewire_embedded_shrink_f32, {0.5F, 0.25F}, {{"lambd", 0.5}, {"bias", 0.25}});
}

TEST_CASE("embedded rows of two operands, broadcast, equal the stock kernels") {
  Draw draw(22);
  const std::vector<float> numbers = Numbers();
  struct Named {
    const char* kernel;
    rewire_embedded_row* row;
    bool compares;
  };
  const Named all[] = {
#define NAMED(kernel, expression) {#kernel, &rewire_embedded_##kernel##_f32, true},
      REWIRE_EMBEDDED_COMPARISONS(NAMED)
#undef NAMED
#define NAMED(kernel) {#kernel, &rewire_embedded_##kernel##_f32, false}
          NAMED(add),
      NAMED(sub),
      NAMED(mul),
      NAMED(div),
      NAMED(min),
      NAMED(max),
      NAMED(at_least),
      NAMED(at_most),
      NAMED(prelu)
#undef NAMED
  };
  for (int i = 0; i < 400; ++i) {
    const Named& named = all[draw.Int(0, std::size(all) - 1)];
    Shape shape, shapes[2];
    const int rank = draw.Int(0, 4);
    for (int axis = 0; axis < rank; ++axis) {
      shape.push_back(draw.Of({0, 1, 2, 3, 3, 5, 5}));
      for (Shape& of : shapes) of.push_back(draw.Int(0, 2) == 0 ? 1 : shape.back());
    }
    for (int axis = 0; axis < rank; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      shape[a] = shapes[0][a] == 1 ? shapes[1][a] : shapes[0][a];
    }
    rewire_embedded_broadcast p{};
    p.rank = rank;
    p.inputs = 2;
    p.sizes[0] = p.sizes[1] = 4;
    p.out_size = named.compares ? 1 : 4;
    HostTensor inputs[2];
    for (int j = 0; j < 2; ++j) {
      inputs[j] = draw.Filled<float>(shapes[j], [&] { return numbers[draw.Bits() % numbers.size()]; });
      int step = 1;
      for (int axis = rank; axis-- > 0;) {
        const auto size = static_cast<std::int32_t>(shapes[j][static_cast<std::size_t>(axis)]);
        p.dims[axis] = static_cast<std::int32_t>(shape[static_cast<std::size_t>(axis)]);
        p.steps[j][axis] = size == 1 ? 0 : step;
        step *= size;
      }
    }
    HostTensor out = named.compares ? HostTensor::Empty<bool>(shape) : HostTensor::Empty<float>(shape);
    HostTensor stock = out;
    CAPTURE(i, named.kernel, rank);
    const void* const x[] = {Data<float>(inputs[0]), Data<float>(inputs[1])};
    rewire_embedded_broadcast_rows(&p, named.row, x, Data<std::uint8_t>(out));
    REQUIRE(Run(std::string("rewire.") + named.kernel, {&inputs[0], &inputs[1], &stock}) == "");
    if (named.compares)
      CheckSame<std::uint8_t>(out, stock);
    else
      CheckSame<float>(out, stock);
  }
}

TEST_CASE("embedded rows of truth values equal the stock kernels") {
  HostTensor a = HostTensor::Of<bool>({4}, {false, false, true, true});
  HostTensor b = HostTensor::Of<bool>({4}, {false, true, false, true});
  const void* const x[] = {Data<std::uint8_t>(a), Data<std::uint8_t>(b)};
  const std::int32_t steps[] = {1, 1};
  for (const auto& [kernel, row] : {std::pair("rewire.and", &rewire_embedded_and),
                                    {"rewire.or", &rewire_embedded_or},
                                    {"rewire.xor", &rewire_embedded_xor}}) {
    HostTensor out = HostTensor::Empty<bool>({4}), stock = out;
    row(4, x, steps, Data<std::uint8_t>(out));
    REQUIRE(Run(kernel, {&a, &b, &stock}) == "");
    CheckSame<std::uint8_t>(out, stock);
  }
  HostTensor out = HostTensor::Empty<bool>({4}), stock = out;
  rewire_embedded_not(4, x, steps, Data<std::uint8_t>(out));
  REQUIRE(Run("rewire.not", {&a, &stock}) == "");
  CheckSame<std::uint8_t>(out, stock);
}

TEST_CASE("embedded where equals the stock kernel") {
  Draw draw(23);
  HostTensor condition = draw.Filled<bool>({50}, [&] { return draw.Bool(); });
  const auto check = [&](auto tag, rewire_embedded_row* row) {
    using T = decltype(tag);
    HostTensor a = draw.Bytes<T>({50}), b = draw.Bytes<T>({1}), out = HostTensor::Empty<T>({50}), stock = out;
    const void* const x[] = {Data<std::uint8_t>(condition), Data<T>(a), Data<T>(b)};
    const std::int32_t steps[] = {1, 1, 0};
    row(50, x, steps, Data<T>(out));
    REQUIRE(Run("rewire.where", {&condition, &a, &b, &stock}) == "");
    CheckSame<std::uint8_t>(out, stock);
  };
  check(std::int8_t(), &rewire_embedded_where_1);
  check(std::int32_t(), &rewire_embedded_where_4);
  check(std::int64_t(), &rewire_embedded_where_8);
}

namespace {

float Chain(float x0, float x1, float x2) {
  const float r0 = rewire_embedded_Mul(x0, x1);
  const float r1 = rewire_embedded_Add(r0, x2);
  const float r2 = rewire_embedded_Tanh(r1);
  const float r3 = rewire_embedded_HardSigmoid(x0, 0.2F, 0.5F);
  return rewire_embedded_Where(rewire_embedded_Less(r2, r3), rewire_embedded_Gelu(r1),
                               rewire_embedded_Sub(r3, 0.5F));
}
REWIRE_EMBEDDED_ROW_3(ChainRow, float, float, float, float, Chain(a, b, c))

}  // namespace

TEST_CASE("a row made of a chain equals rewire.fused") {
  HostTensor x = HostTensor::Of<float>({static_cast<std::int64_t>(Numbers().size())}, Numbers());
  HostTensor y = HostTensor::Of<float>({1}, {1.25F}), z = HostTensor::Of<float>({1}, {-0.75F});
  HostTensor out = x, stock = x;
  const void* const inputs[] = {Data<float>(x), Data<float>(y), Data<float>(z)};
  const std::int32_t steps[] = {1, 0, 0};
  ChainRow(static_cast<std::int32_t>(x.size()), inputs, steps, Data<float>(out));
  REQUIRE(Run("rewire.fused", {&x, &y, &z, &stock},
              {{"program",
                "mul x0 x1; add r0 x2; tanh r1; hard_sigmoid x0 0.2 0.5; less r2 r3; gelu r1; sub r3 "
                "0.5; where r4 r5 r6"}}) == "");
  if (StockFuses()) CheckSame<float>(out, stock);
}

}  // namespace rewire::test::embedded
