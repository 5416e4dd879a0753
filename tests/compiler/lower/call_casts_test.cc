// SPDX-License-Identifier: Apache-2.0
// Casts that the compiler adds around kernels without the model's dtypes, and those that it leaves out again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

constexpr auto kFloats = onnx::TensorProto::FLOAT;
constexpr auto kF16 = onnx::TensorProto::FLOAT16;
constexpr auto kBF16 = onnx::TensorProto::BFLOAT16;

void AddCast(onnx::GraphProto* graph, const std::string& from, const std::string& to,
             onnx::TensorProto::DataType type) {
  AddInt(AddNode(graph, "Cast", {from}, to), "to", type);
}

// A weight of 16-bit floats with these bits.
void AddHalves(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& shape,
               onnx::TensorProto::DataType type, const std::vector<std::int32_t>& bits) {
  onnx::TensorProto* tensor = AddWeight(graph, name, type, shape);
  for (const std::int32_t element : bits) tensor->add_int32_data(element);
}

// The answer of a model with its input "x" and its output "y" in f32, with all passes or with none.
Answer Run(const onnx::ModelProto& model, const Shape& shape, bool passes) {
  compiler::CompileOptions options;
  if (!passes) {
    for (const std::string& name : compiler::PassNames()) options.disabled_passes.insert(name);
  }
  const Outcome outcome = CompileProto(model, options);
  INFO(outcome.message << (outcome.unsupported.empty() ? "" : ": " + outcome.unsupported[0].reason));
  REQUIRE(outcome.message.empty());
  Answer answer = RunOnCounts(outcome.compiled.module, shape);
  CHECK(answer.error.empty());
  return answer;
}

std::size_t Count(const Lines& lines, const std::string& text) {
  return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  }));
}

constexpr std::int32_t kOneF16 = 0x3C00, kTwoF16 = 0x4000, kOneBF16 = 0x3F80, kTwoBF16 = 0x4000;

// 2049 is no float16: sums are rounded once, behind the kernel.
TEST_CASE("a product of 16-bit floats is computed in f32") {
  const bool bfloat = GENERATE(false, true);
  const bool passes = GENERATE(false, true);
  const auto type = bfloat ? kBF16 : kF16;
  const std::int32_t one = bfloat ? kOneBF16 : kOneF16, two = bfloat ? kTwoBF16 : kTwoF16;
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {3, 2}, type, {one, two, one, two, one, one});
  AddCast(graph, "x", "h", type);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  AddCast(graph, "p", "y", kFloats);
  const Answer answer = Run(model, {2, 3}, passes);
  CHECK(answer.shape == Shape{2, 2});
  CHECK(answer.values == std::vector<float>{3, 4, 12, 19});
}

TEST_CASE("a convolution of 16-bit floats is computed in f32") {
  const bool passes = GENERATE(false, true);
  onnx::ModelProto model = ModelOf({1, 1, 3, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {1, 1, 2, 2}, kF16, {kOneF16, kOneF16, kOneF16, kTwoF16});
  AddHalves(graph, "b", {1}, kF16, {kTwoF16});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "Conv", {"h", "w", "b"}, "c");
  AddNode(graph, "Relu", {"c"}, "r");
  AddCast(graph, "r", "y", kFloats);
  CHECK(Run(model, {1, 1, 3, 3}, passes).values == std::vector<float>{14, 19, 29, 34});
}

TEST_CASE("optional arguments that are left out of a call with casts stay left out") {
  onnx::ModelProto model = ModelOf({2, 1, 1});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {1, 1, 1}, kF16, {kOneF16});
  AddHalves(graph, "r", {1, 1, 1}, kF16, {kOneF16});
  AddHalves(graph, "h0", {1, 1, 1}, kF16, {kTwoF16});
  AddCast(graph, "x", "h", kF16);
  onnx::NodeProto* node = AddNode(graph, "RNN", {"h", "w", "r", "", "", "h0"}, "s");
  AddInt(node, "hidden_size", 1);
  onnx::AttributeProto* activations = node->add_attribute();
  activations->set_name("activations");
  activations->set_type(onnx::AttributeProto::STRINGS);
  activations->add_strings("Relu");
  AddCast(graph, "s", "y", kFloats);
  CHECK(Run(model, {2, 1, 1}, true).values == std::vector<float>{2, 3});
}

TEST_CASE("a product of unsigned integers wraps as they do") {
  onnx::ModelProto model = ModelOf({1, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* weights = AddWeight(graph, "w", onnx::TensorProto::UINT32, {2, 1});
  for (const std::uint64_t element : {5U, 0xFFFFFFFFU}) weights->add_uint64_data(element);
  AddCast(graph, "x", "u", onnx::TensorProto::UINT32);
  AddNode(graph, "MatMul", {"u", "w"}, "p");
  AddCast(graph, "p", "y", kFloats);
  CHECK(Run(model, {1, 2}, true).values == std::vector<float>{4294967295.0F});
}

// Both sums of [0, 1, 2] and updates of ones and twos.
TEST_CASE("a reducing scatter of 16 bits is computed in 32") {
  const bool passes = GENERATE(false, true);
  const auto type = GENERATE(kF16, kBF16, onnx::TensorProto::INT16, onnx::TensorProto::UINT16);
  const bool tuples = GENERATE(false, true);
  const bool floats = type == kF16 || type == kBF16;
  const std::int32_t one = type == kF16 ? kOneF16 : type == kBF16 ? kOneBF16 : 1;
  const std::int32_t two = floats ? kTwoF16 : 2;
  onnx::ModelProto model = ModelOf({3});
  model.mutable_opset_import(0)->set_version(18);
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "u", {4}, type, {one, two, two, one});
  onnx::TensorProto* places =
      AddWeight(graph, "i", onnx::TensorProto::INT64, tuples ? Shape{4, 1} : Shape{4});
  for (const std::int64_t place : {2, 0, 2, 0}) places->add_int64_data(place);
  AddCast(graph, "x", "h", type);
  onnx::NodeProto* node = AddNode(graph, tuples ? "ScatterND" : "ScatterElements", {"h", "i", "u"}, "s");
  AddString(node, "reduction", "add");
  AddCast(graph, "s", "y", kFloats);
  CHECK(Run(model, {3}, passes).values == std::vector<float>{3, 1, 5});
}

TEST_CASE("what no exact cast makes fit is refused with the model's own dtypes") {
  onnx::ModelProto model = ModelOf({1, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "w", {1, 2});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  AddCast(graph, "p", "y", kFloats);
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "rewire.matmul: a is f16, expected one of f32 f64 i32 i64");
}

// x of f16 times w, and again.
onnx::ModelProto TwoProducts(const std::string& between) {
  onnx::ModelProto model = ModelOf({2, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {2, 2}, kF16, {kOneF16, kTwoF16, kOneF16, kOneF16});
  AddHalves(graph, "b", {2}, kF16, {kOneF16, kTwoF16});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  if (between == "Add") {
    AddNode(graph, "Add", {"p", "b"}, "q");
  } else {
    AddNode(graph, between, {"p"}, "q");
  }
  AddNode(graph, "MatMul", {"q", "w"}, "r");
  AddCast(graph, "r", "y", kFloats);
  return model;
}

TEST_CASE("keep-f32: kernels between products compute in f32, too") {
  const auto between = GENERATE(as<std::string>(), "Relu", "Add", "Transpose", "Flatten");
  const PassRun run = RunPass("keep-f32", TwoProducts(between), {2, 2});
  // The model's cast of x, the one of that to f32, and the one of the weights, which nothing folds here.
  CHECK(Count(run.before, "rewire.cast") > 3);
  CHECK(Count(run.after, "rewire.cast") == 3);
}

bool Calls(const onnx::ModelProto& model, const std::string& kernel) {
  compiler::CompileOptions options;
  options.disabled_passes = {"fuse-elementwise"};  // it would take in what is not recognized
  const Outcome outcome = CompileProto(model, options);
  REQUIRE(outcome.message.empty());
  const auto& kernels = outcome.compiled.module.kernels;
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const auto& import) { return import.name == kernel; });
}

// x w, then its Gelu by erf(product / root), with constants of 16 bits.
onnx::ModelProto GeluOfHalves(onnx::TensorProto::DataType type, std::int32_t root, std::int32_t half) {
  const std::int32_t one = type == kF16 ? kOneF16 : kOneBF16;
  onnx::ModelProto model = ModelOf({2, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {2, 2}, type, {one, one, one, one});
  AddHalves(graph, "root", {}, type, {root});
  AddHalves(graph, "one", {}, type, {one});
  AddHalves(graph, "half", {}, type, {half});
  AddCast(graph, "x", "h", type);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  AddNode(graph, "Div", {"p", "root"}, "scaled");
  AddNode(graph, "Erf", {"scaled"}, "erf");
  AddNode(graph, "Add", {"erf", "one"}, "gate");
  AddNode(graph, "Mul", {"p", "gate"}, "product");
  AddNode(graph, "Mul", {"product", "half"}, "g");
  AddCast(graph, "g", "y", kFloats);
  return model;
}

// Its root is rounded to 16 bits: 1.4140625 stands for the root of 2, the float16 behind it for another
// number.
TEST_CASE("a Gelu whose constants have 16 bits is recognized") {
  CHECK_FALSE(Calls(GeluOfHalves(kF16, 0x3DA8, 0x3800), "rewire.erf"));
  CHECK(Calls(GeluOfHalves(kF16, 0x3DA9, 0x3800), "rewire.erf"));
  CHECK(Calls(GeluOfHalves(kF16, 0x3DA7, 0x3800), "rewire.erf"));
  CHECK_FALSE(Calls(GeluOfHalves(kBF16, 0x3FB5, 0x3F00), "rewire.erf"));
  CHECK(Calls(GeluOfHalves(kBF16, 0x3FB6, 0x3F00), "rewire.erf"));
  // x w is 1, 1, 5, 5; torch.nn.functional.gelu of it.
  const std::vector<float> values = Run(GeluOfHalves(kF16, 0x3DA8, 0x3800), {2, 2}, true).values;
  REQUIRE(values.size() == 4);
  CHECK(static_cast<double>(values[0]) == Approx(0.841345).epsilon(1e-3));
  CHECK(static_cast<double>(values[2]) == Approx(4.999999).epsilon(1e-3));
}

// p = x w, then p clip(p + 3, 0, 6) times a sixth, which in float16 is 0.16662598.
TEST_CASE("bounds of 16 bits become those of a clip, and a HardSwish of them is recognized") {
  onnx::ModelProto model = ModelOf({2, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {2, 2}, kF16, {kOneF16, kOneF16, kOneF16, kOneF16});
  AddHalves(graph, "three", {}, kF16, {0x4200});
  AddHalves(graph, "zero", {}, kF16, {0});
  AddHalves(graph, "six", {}, kF16, {0x4600});
  AddHalves(graph, "sixth", {}, kF16, {0x3155});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  AddNode(graph, "Add", {"p", "three"}, "sum");
  AddNode(graph, "Clip", {"sum", "zero", "six"}, "clipped");
  AddNode(graph, "Mul", {"p", "clipped"}, "product");
  AddNode(graph, "Mul", {"product", "sixth"}, "s");
  AddCast(graph, "s", "y", kFloats);
  const bool passes = GENERATE(false, true);
  CHECK_FALSE(Calls(model, "rewire.clip"));
  CHECK_FALSE(Calls(model, "rewire.max"));
  const std::vector<float> values = Run(model, {2, 2}, passes).values;
  REQUIRE(values.size() == 4);
  CHECK(static_cast<double>(values[0]) == Approx(4.0 / 6).epsilon(1e-3));
  CHECK(static_cast<double>(values[2]) == Approx(5).epsilon(1e-3));
  model.mutable_graph()->mutable_initializer(4)->set_int32_data(0, 0x3157);
  CHECK(Calls(model, "rewire.clip"));
}

TEST_CASE("keep-f32: a cast to 16 bits that the model asks for is kept") {
  onnx::ModelProto model = ModelOf({2, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {2, 2}, {2049, 0, 0, 2051});
  AddNode(graph, "MatMul", {"x", "w"}, "p");
  AddCast(graph, "p", "h", kF16);
  AddCast(graph, "h", "f", kFloats);
  AddNode(graph, "MatMul", {"f", "w"}, "y");
  const PassRun run = RunPass("keep-f32", model, {2, 2});
  CHECK_FALSE(run.changes());
  CHECK(Count(run.after, "rewire.cast") == 2);
}

TEST_CASE("keep-f32: what a kernel of 16 bits alone reads stays rounded") {
  onnx::ModelProto model = ModelOf({2, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {2, 2}, kF16, {kOneF16, kTwoF16, kOneF16, kOneF16});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  // A comparison gives no float; what it compares is the model's tensor.
  AddNode(graph, "Equal", {"p", "p"}, "e");
  AddCast(graph, "e", "y", kFloats);
  CHECK_FALSE(RunPass("keep-f32", model, {2, 2}).changes());
}

TEST_CASE("keep-f32: a concatenation with a tensor of 16 bits stays as it is") {
  onnx::ModelProto model = ModelOf({2, 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {2, 2}, kF16, {kOneF16, kTwoF16, kOneF16, kOneF16});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  AddNode(graph, "Neg", {"h"}, "n");
  AddInt(AddNode(graph, "Concat", {"n", "p"}, "c"), "axis", 0);
  AddCast(graph, "c", "y", kFloats);
  CHECK_FALSE(RunPass("keep-f32", model, {2, 2}).changes());
}

TEST_CASE("keep-f32: dimensions that are read from a tensor of 16 bits") {
  const bool passes = GENERATE(false, true);
  onnx::ModelProto model = ModelOf({"N", 2});
  onnx::GraphProto* graph = model.mutable_graph();
  AddHalves(graph, "w", {2, 2}, kF16, {kOneF16, kTwoF16, kOneF16, kOneF16});
  AddCast(graph, "x", "h", kF16);
  AddNode(graph, "MatMul", {"h", "w"}, "p");
  AddHalves(graph, "most", {}, kF16, {kTwoF16});
  AddNode(graph, "Less", {"p", "most"}, "l");
  AddNode(graph, "NonZero", {"l"}, "z");
  AddIntList(AddNode(graph, "Transpose", {"z"}, "t"), "perm", {1, 0});
  AddNode(graph, "GatherND", {"p", "t"}, "g");
  AddNode(graph, "Relu", {"g"}, "r");
  AddCast(graph, "r", "y", kFloats);
  const Answer answer = Run(model, {2, 2}, passes);
  CHECK(answer.shape == Shape{2});
  CHECK(answer.values == std::vector<float>{1, 1});
}

}  // namespace
}  // namespace rewire::test
