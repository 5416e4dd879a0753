// SPDX-License-Identifier: Apache-2.0
// All forms of an elementwise function against each other, over numbers at the edges: the kernel alone in
// each dtype, a step of a fused chain on each instruction set, and the end of a packed product or
// convolution. The functions are those of the rows that have the trait `elementwise`, so that a new one is
// tested without being listed here.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/elementwise/fused_program.h"
#include "rewire/kernels/cpu/elementwise/fused_steps.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::ChooseFusedStepKernel;
using kernel::cpu::Float16;
using kernel::cpu::FusedElements;
using kernel::cpu::FusedProgram;
using kernel::cpu::Kernel;

using Floats = std::vector<float>;

// Functions that are computed by a polynomial, which instruction sets round in their own ways. All others are
// the same to the bit in all forms.
bool IsExact(std::string_view function) {
  static const std::set<std::string_view> kInexact = {"exp",  "log",       "sin",      "cos",   "tanh",
                                                      "erf",  "sigmoid",   "softplus", "swish", "mish",
                                                      "gelu", "gelu_tanh", "elu"};
  return !kInexact.contains(function);
}

// Every power of 2, subnormal ones too, and numbers next to those at which some function changes its formula.
Floats FormPoints() {
  Floats points = {0,     kInf, kNaN, std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                   1e38F, 88.8F};
  for (int exponent = -149; exponent < 128; ++exponent) {
    points.push_back(std::ldexp(1.0F, exponent));
    points.push_back(std::ldexp(1.375F, exponent));
  }
  for (const float edge :
       {0.25F,     0.5F,   0.75F,  1.0F,   1.5F,     2.5F,       3.0F,        3.95F,        4.0F,
        6.0F,      7.0F,   9.0F,   20.0F,  40.0F,    44.4F,      85.0F,       87.33654F,    88.0F,
        88.72283F, 100.0F, 103.9F, 104.0F, 30000.0F, 8388608.0F, 16777217.0F, 2147483648.0F})
    points.insert(points.end(), {std::nextafter(edge, 0.0F), edge, std::nextafter(edge, kInf)});
  const std::size_t count = points.size();
  for (std::size_t i = 0; i < count; ++i) points.push_back(-points[i]);
  return points;
}

// The same number, or both NaN. Zeros of the two signs differ.
bool IsSameFloat(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// One is NaN, infinite or of a sign only if the other is, and they are near. Results below the least normal
// number may be 0. What is a product of x and of a factor near 0 is as near as that factor.
bool IsClose(float given, double expected, float x) {
  if (std::isnan(expected)) return std::isnan(given);
  const auto rounded = static_cast<float>(expected);
  if (std::isnan(given) || std::signbit(given) != std::signbit(rounded)) return false;
  if (std::isinf(given) != std::isinf(rounded))
    return std::fabs(rounded) > 0.999F * std::numeric_limits<float>::max() ||
           std::fabs(given) > 0.999F * std::numeric_limits<float>::max();
  if (std::isinf(given)) return true;
  // The rounding of an exponent counts as often as the exponent is large.
  const double of_exponent = 1 + std::fmin(std::fabs(static_cast<double>(x)), 128.0) / 8;
  const double of_x = std::isfinite(x) ? std::fabs(static_cast<double>(x)) * 0x1p-22 : 0;
  const double bound = std::fabs(expected) * 0x1p-20 * of_exponent + std::min(of_x, 0x1p-18) +
                       static_cast<double>(std::numeric_limits<float>::min());
  return std::fabs(static_cast<double>(given) - expected) <= bound;
}

void RequireSame(const Floats& given, const Floats& expected, const Floats& x) {
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (IsSameFloat(given[i], expected[i])) continue;
    CAPTURE(i, x[i], given[i], expected[i]);
    FAIL_CHECK("the forms differ");
    return;
  }
}
void RequireClose(const Floats& given, const std::vector<double>& expected, const Floats& x) {
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (IsClose(given[i], expected[i], x[i])) continue;
    CAPTURE(i, x[i], given[i], expected[i]);
    FAIL_CHECK("the forms differ");
    return;
  }
}

// The attributes of a row that are numbers: "alpha = 0.2, beta = 0.5".
struct Number {
  std::string name;
  double fallback;
};
std::vector<Number> NumbersOf(std::string_view text) {
  std::vector<Number> numbers;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(", "));
    text.remove_prefix(std::min(text.size(), one.size() + 2));
    const std::size_t at = one.find(" = ");
    if (at == std::string_view::npos) continue;
    double value = 0;
    const std::string_view number = one.substr(at + 3);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc() && end == number.data() + number.size())
      numbers.push_back({std::string(one.substr(0, at)), value});
  }
  return numbers;
}

// A function with its attributes.
struct Function {
  std::string kernel;  // "rewire.clip"
  std::string name;    // as fused chains have it
  AttributeList attributes;
  std::vector<double> numbers;
};

// A function of f32 alone, with so many inputs.
bool IsElementwise(const Kernel& row, std::uint32_t inputs) {
  if ((row.traits & REWIRE_KERNEL_ELEMENTWISE) == 0 || row.arguments.count != inputs + 1) return false;
  const auto* first = row.arguments.list;
  return std::all_of(first, first + row.arguments.count, [&](const RewireKernelArgument& argument) {
    return (argument.dtypes & REWIRE_DTYPE_F32) != 0 && (argument.flags & REWIRE_ARGUMENT_LIST) == 0 &&
           argument.dtype_group == first->dtype_group;
  });
}

std::vector<Function> FunctionsOf(std::uint32_t inputs) {
  // Numbers that floats have exactly: in order, swapped, equal, infinite, none.
  const double pairs[][2] = {{0.25, 0.75}, {-0.75, 0.25}, {4, 2},    {2, 4},        {3, 3},
                             {0, 0},       {-0.0, 0.0},   {1024, 1}, {-kInf, kInf}, {kInf, -kInf}};
  std::vector<Function> functions;
  for (const kernel::cpu::Family& family : kernel::cpu::Families()) {
    for (const Kernel& row : family.kernels) {
      if (!IsElementwise(row, inputs)) continue;
      const std::string kernel = row.entry.name;
      const std::string name = kernel.substr(kernel.find('.') + 1);
      const std::vector<Number> numbers = NumbersOf(row.attributes);
      Function function{kernel, name == "leaky_relu" ? "prelu" : name, {}, {}};
      for (const Number& number : numbers) {
        function.attributes.emplace_back(number.name, number.fallback);
        function.numbers.push_back(number.fallback);
      }
      functions.push_back(function);
      for (const auto& pair : pairs) {
        for (std::size_t i = 0; i < numbers.size(); ++i)
          function.attributes[i].second = function.numbers[i] = pair[i];
        if (!numbers.empty()) functions.push_back(function);
      }
      if (name == "clip") {
        for (const auto& [low, high] : {std::pair(double{kNaN}, 2.0), std::pair(0.0, double{kNaN})})
          functions.push_back({kernel, name, {{"min", low}, {"max", high}}, {low, high}});
      }
      if (name == "gelu") functions.push_back({kernel, "gelu_tanh", {{"approximate", "tanh"}}, {}});
    }
  }
  return functions;
}

// The kernel's results for the numbers, given in this dtype.
template <typename T>
std::vector<double> Alone(const Function& function, const std::vector<const Floats*>& inputs) {
  std::vector<HostTensor> tensors;
  const Shape shape = {static_cast<std::int64_t>(inputs[0]->size())};
  for (const Floats* input : inputs) {
    tensors.push_back(HostTensor::Empty<T>(shape));
    for (std::size_t i = 0; i < input->size(); ++i)
      tensors.back().elements<T>()[static_cast<std::int64_t>(i)] = static_cast<T>((*input)[i]);
  }
  tensors.push_back(HostTensor::Empty<T>(shape));
  std::vector<HostTensor*> arguments;
  for (HostTensor& tensor : tensors) arguments.push_back(&tensor);
  REQUIRE(Run(function.kernel, arguments, function.attributes) == "");
  std::vector<double> results;
  for (const T value : tensors.back().template values<T>()) {
    if constexpr (kernel::cpu::kIsHalf<T>)
      results.push_back(static_cast<double>(static_cast<float>(value)));
    else
      results.push_back(static_cast<double>(value));
  }
  return results;
}
Floats AloneF32(const Function& function, const std::vector<const Floats*>& inputs) {
  const std::vector<double> results = Alone<float>(function, inputs);
  Floats floats;
  for (const double result : results) floats.push_back(static_cast<float>(result));
  return floats;
}

// The function as a step of a fused chain; nothing if there is no such step.
std::optional<std::string> StepOf(const Function& function, std::uint32_t inputs) {
  std::string text = function.name;
  for (std::uint32_t i = 0; i < inputs; ++i) text += " x" + std::to_string(i);
  for (const double number : function.numbers) {
    char digits[32];
    text +=
        " " + std::string(digits, std::to_chars(digits, std::end(digits), static_cast<float>(number)).ptr);
  }
  FusedProgram program;
  return FusedProgram::Make(text, &program).ok() ? std::optional(text) : std::nullopt;
}

std::string Words(const Function& function) {
  std::string text = function.kernel + " as " + function.name;
  for (const double number : function.numbers) text += " " + std::to_string(number);
  return text;
}

// In chains of one step and of several, whose other steps change nothing.
void CheckFused(const Function& function, const std::vector<const Floats*>& inputs, const Floats& expected) {
  const auto count = static_cast<std::uint32_t>(inputs.size());
  const std::optional<std::string> step = StepOf(function, count);
  if (!step) return;
  const Floats& x = *inputs[0];
  const Shape shape = {static_cast<std::int64_t>(x.size())};
  std::vector<HostTensor> tensors;
  for (const Floats* input : inputs) tensors.push_back(HostTensor::Of<float>(shape, *input));
  HostTensor out = HostTensor::Empty<float>(shape);
  std::vector<HostTensor*> arguments;
  for (HostTensor& tensor : tensors) arguments.push_back(&tensor);
  arguments.push_back(&out);
  for (const std::string& text :
       {*step, *step + "; neg r0; neg r1",
        "neg x0; neg r0; " + std::string(*step).replace(step->find("x0"), 2, "r1")}) {
    CAPTURE(text);
    REQUIRE(Run("rewire.fused", arguments, {{"program", text.c_str()}}) == "");
    RequireSame(out.values<float>(), expected, x);
  }
  FusedProgram program;
  REQUIRE(FusedProgram::Make(*step, &program).ok());
  ForEachTarget([&] {
    FusedElements operands[3] = {};
    for (std::size_t i = 0; i < program.steps()[0].operand_count; ++i)
      operands[i] = i < count ? FusedElements{inputs[i]->data(), 0}
                              : FusedElements{nullptr, program.steps()[0].operands[i].number};
    Floats given(x.size());
    ChooseFusedStepKernel()(program.steps()[0].code, operands, {given.data()},
                            static_cast<std::int64_t>(x.size()));
    if (IsExact(function.name)) return RequireSame(given, expected, x);
    RequireClose(given, {expected.begin(), expected.end()}, x);
  });
}

template <typename T>
void CheckHalf(const Function& function, const Floats& x) {
  Floats rounded, expected;
  for (const float value : x) rounded.push_back(static_cast<float>(T(value)));
  for (const float value : AloneF32(function, {&rounded})) expected.push_back(static_cast<float>(T(value)));
  const std::vector<double> given = Alone<T>(function, {&rounded});
  RequireSame(Floats(given.begin(), given.end()), expected, rounded);
}

TEST_CASE("functions of one number: all dtypes, chains and instruction sets agree") {
  const Floats x = FormPoints();
  const std::vector<Function> functions = FunctionsOf(1);
  REQUIRE(functions.size() > 100);
  std::size_t fused = 0;
  for (const Function& function : functions) {
    INFO(Words(function));
    const Floats expected = AloneF32(function, {&x});
    RequireClose(expected, Alone<double>(function, {&x}), x);
    CheckHalf<Float16>(function, x);
    CheckHalf<BFloat16>(function, x);
    CheckFused(function, {&x}, expected);
    fused += StepOf(function, 1) ? 1 : 0;
  }
  CHECK(fused > 50);
}

TEST_CASE("functions of two numbers: chains and instruction sets agree") {
  Floats a, b;
  const Floats numbers = {0,
                          -0.0F,
                          1,
                          -1,
                          0.5F,
                          2,
                          -3,
                          7,
                          1e-40F,
                          -1e-45F,
                          1.5e-38F,
                          1e20F,
                          -1e20F,
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest(),
                          kInf,
                          -kInf,
                          kNaN};
  for (const float x : numbers) {
    for (const float y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const std::vector<Function> functions = FunctionsOf(2);
  REQUIRE(functions.size() >= 10);
  for (const Function& function : functions) {
    INFO(Words(function));
    const Floats expected = AloneF32(function, {&a, &b});
    CheckFused(function, {&a, &b}, expected);
  }
}

// Products by 1, so that what the activation gets is what the product without one gives.
TEST_CASE("activations behind packed products and convolutions are the kernels of their names") {
  const Floats x = FormPoints();
  const auto count = static_cast<std::int64_t>(x.size());
  HostTensor ones = HostTensor::Of<float>({1, 1}, {1}), panel = HostTensor::Empty<float>({16, 1});
  HostTensor filter = HostTensor::Of<float>({1, 1, 1, 1}, {1}), direct = HostTensor::Empty<float>({16, 1});
  HostTensor tap = HostTensor::Of<float>({1, 1}, {1});
  REQUIRE(Run("rewire.packed.pack", {&ones, &panel}, {{"order", "IO"}}) == "");
  REQUIRE(Run("rewire.packed.pack", {&filter, &direct}, {{"order", "OI"}}) == "");
  HostTensor rows = HostTensor::Of<float>({count, 1}, x), image = HostTensor::Of<float>({1, 1, count, 1}, x);
  struct Product {
    const char* kernel;
    HostTensor* x;
    HostTensor* weights;
    AttributeList attributes;
  };
  const std::vector<Product> products = {
      {"rewire.packed.matmul", &rows, &panel, {{"columns", 1}}},
      {"rewire.packed.conv",
       &image,
       &direct,
       {{"channels", 1}, {"kernel_shape", std::vector<std::int64_t>{1, 1}}}},
      {"rewire.packed.depthwise",
       &image,
       &tap,
       {{"channels", 1}, {"kernel_shape", std::vector<std::int64_t>{1, 1}}}},
  };
  const std::vector<Function> functions = FunctionsOf(1);
  for (const Product& product : products) {
    const auto run = [&](const AttributeList& activation) {
      AttributeList attributes = product.attributes;
      attributes.insert(attributes.end(), activation.begin(), activation.end());
      HostTensor out = HostTensor::Empty<float>(product.x->shape());
      REQUIRE(Run(product.kernel, {product.x, product.weights, &out}, attributes) == "");
      return out.values<float>();
    };
    const Floats sums = run({});
    for (const std::string_view name : names::kActivations) {
      if (name == "none") continue;
      std::size_t tried = 0;
      for (const Function& function : functions) {
        if (function.kernel.substr(7) != name || function.name == "gelu_tanh") continue;
        ++tried;
        INFO(product.kernel << ": " << Words(function));
        const std::string text(name);
        AttributeList activation = {{"activation", text.c_str()}};
        const char* names[] = {"alpha", "beta"};
        for (std::size_t i = 0; i < function.numbers.size(); ++i)
          activation.emplace_back(names[i], function.numbers[i]);
        Floats expected = AloneF32(function, {&sums});
        RequireSame(run(activation), expected, sums);
        // A factor behind it keeps the sign of zero.
        activation.emplace_back("post_scale", 2.0);
        for (float& value : expected) value *= 2;
        RequireSame(run(activation), expected, sums);
      }
      CAPTURE(name);
      CHECK(tried > 0);
    }
  }
}

// ONNX's text: where min is above max, all is max. A NaN stays, and as in ONNX Runtime a bound that is NaN is
// none.
TEST_CASE("a clip with its bounds swapped gives the upper one") {
  const Floats x = {-5, 0, 2, 3, 4, 5, 9, kInf, -kInf, -0.0F};
  const Function swapped{"rewire.clip", "clip", {{"min", 4.0}, {"max", 2.0}}, {}};
  CHECK(AloneF32(swapped, {&x}) == Floats(x.size(), 2));
  CHECK(Alone<double>(swapped, {&x}) == std::vector<double>(x.size(), 2));
  CHECK(Alone<Float16>(swapped, {&x}) == std::vector<double>(x.size(), 2));
  HostTensor whole = HostTensor::Of<std::int32_t>({3}, {-5, 3, 9}),
             out = HostTensor::Empty<std::int32_t>({3});
  REQUIRE(Run("rewire.clip", {&whole, &out}, swapped.attributes) == "");
  CHECK(out.values<std::int32_t>() == std::vector<std::int32_t>{2, 2, 2});
  const Floats with_nan = {kNaN, -1, 3, -0.0F};
  CHECK(std::isnan(AloneF32(swapped, {&with_nan})[0]));
  RequireSame(AloneF32({"rewire.clip", "clip", {{"min", double{kNaN}}, {"max", 2.0}}, {}}, {&with_nan}),
              {kNaN, -1, 2, -0.0F}, with_nan);
}

// The compiler makes two kernels of bounds that are computed.
TEST_CASE("a clip by tensors is that by numbers") {
  const Floats x = FormPoints();
  const Shape shape = {static_cast<std::int64_t>(x.size())};
  for (const Function& clip : FunctionsOf(1)) {
    if (clip.name != "clip") continue;
    INFO(Words(clip));
    HostTensor in = HostTensor::Of<float>(shape, x), raised = HostTensor::Empty<float>(shape);
    HostTensor low = HostTensor::Of<float>({1}, {static_cast<float>(clip.numbers[0])});
    HostTensor high = HostTensor::Of<float>({1}, {static_cast<float>(clip.numbers[1])});
    REQUIRE(Run("rewire.at_least", {&in, &low, &raised}) == "");
    REQUIRE(Run("rewire.at_most", {&raised, &high, &raised}) == "");
    RequireSame(raised.values<float>(), AloneF32(clip, {&x}), x);
  }
}

// As ONNX's formulas give them.
TEST_CASE("functions keep the sign of zero and numbers that are small but normal") {
  const Floats x = {-0.0F, -88.8F, -20};
  for (const char* approximate : {"none", "tanh"}) {
    const Floats gelu = AloneF32({"rewire.gelu", "gelu", {{"approximate", approximate}}, {}}, {&x});
    CHECK((std::signbit(gelu[0]) && gelu[0] == 0));
    CHECK((std::signbit(gelu[2]) && std::fabs(gelu[2]) < 1e-30F));
  }
  CHECK(AloneF32({"rewire.mish", "mish", {}, {}}, {&x})[1] == Approx(-2.4157137e-37F).epsilon(1e-4));
}

}  // namespace
}  // namespace rewire::test
