// SPDX-License-Identifier: Apache-2.0
// --precision int8: quantising a float model by samples. Expected values are computed by hand.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/compiler/passes/quantize/activation_range.h"
#include "rewire/executable_format/tensor_files/npz.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {
namespace {

// y = x w, with columns of weights that differ by a factor of 100.
onnx::ModelProto Product() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", 2});
  AddFloats(model.mutable_graph(), "w", {2, 2}, {1.27F, 127, -0.5F, 64});
  AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {"N", 2});
  return model;
}

Tensor Samples(const std::vector<std::int64_t>& shape, std::vector<float> elements) {
  return *Tensor::CopyOf(TensorView(elements.data(), kFloat32, shape));
}

CompileOptions ByInt8(const Tensor& x, const std::string& name = "x") {
  CompileOptions options;
  options.precision = Precision::kInt8;
  options.calibration.inputs.emplace(name, x);
  return options;
}

std::string MessageOf(const CompileOptions& options) { return CompileProto(Product(), options).message; }

TEST_CASE("a float product becomes one of integers, with a scale for each column") {
  // From 0 to 255: the scale is 1, and whole numbers are exact.
  const Outcome made = CompileProto(Product(), ByInt8(Samples({2, 2}, {0, 1, 2, 255})));
  REQUIRE(made.message.empty());
  REQUIRE(made.compiled.movement.size() == 1);
  CHECK(made.compiled.movement[0].output == "y");
  CHECK(made.compiled.movement[0].max_abs < 1e-3);
  CHECK(made.compiled.movement[0].relative < 1e-6);
  bool integers = false;
  for (const auto& kernel : made.compiled.module.kernels)
    integers = integers || kernel.name.find("integer") != std::string::npos ||
               kernel.name.find("s8") != std::string::npos || kernel.name.find("u8") != std::string::npos ||
               kernel.name == "rewire.quantize_linear";
  CHECK(integers);
  const Answer answer = RunOnCounts(made.compiled.module, {2, 2});
  REQUIRE(answer.error.empty());
  const std::vector<float> expected = {-0.5F, 64, 1.04F, 446};
  for (std::size_t i = 0; i < 4; ++i) CHECK(answer.values[i] == Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("the report says how far an output moved") {
  // The scale is 2, so that 1 becomes 0 (half to even), and 510 stays.
  const Outcome made = CompileProto(Product(), ByInt8(Samples({1, 2}, {1, 510})));
  REQUIRE(made.message.empty());
  const OutputMovement& moved = made.compiled.movement.at(0);
  CHECK(moved.max_abs == Approx(127).epsilon(1e-4));
  const double norm = std::hypot(1.27 - 255, 127 + 32640);
  CHECK(moved.relative == Approx(std::hypot(1.27, 127) / norm).epsilon(1e-3));
}

TEST_CASE("an axis in front counts samples, and any other array is one") {
  // In three samples the range of the third counts, too: the scale is 2.
  const std::vector<float> elements = {0, 1, 0, 0, 1, 510};
  for (const Shape& shape : {Shape{3, 2}, Shape{3, 1, 2}}) {
    const Outcome made = CompileProto(Product(), ByInt8(Samples(shape, elements)));
    REQUIRE(made.message.empty());
    CHECK(made.compiled.movement.at(0).max_abs == Approx(127).epsilon(1e-4));
  }
  CHECK(MessageOf(ByInt8(Samples({2, 3, 2}, std::vector<float>(12, 1)))).empty());
}

// y = x w + b: b has the rank that the model says.
onnx::ModelProto OfTwoInputs() {
  onnx::ModelProto model = Product();
  SetValue(model.mutable_graph()->add_input(), "b", {2});
  model.mutable_graph()->mutable_node(0)->set_output(0, "xw");
  AddNode(model.mutable_graph(), "Add", {"xw", "b"}, "y");
  return model;
}

TEST_CASE("an array without samples is part of each, and others agree in their number") {
  CompileOptions options = ByInt8(Samples({3, 1, 2}, {0, 1, 2, 255, 3, 4}));
  CHECK_THAT(CompileProto(OfTwoInputs(), options).message,
             Catch::Contains("there is no array for input \"b\""));
  options.calibration.inputs["b"] = Samples({2}, {5, 7});
  const Outcome shared = CompileProto(OfTwoInputs(), options);
  REQUIRE(shared.message.empty());
  CHECK(shared.compiled.movement.at(0).max_abs < 1e-2);
  options.calibration.inputs["b"] = Samples({3, 2}, {5, 7, 5, 7, 5, 7});
  CHECK(CompileProto(OfTwoInputs(), options).message.empty());
  options.calibration.inputs["b"] = Samples({2, 2}, {5, 7, 5, 7});
  CHECK_THAT(CompileProto(OfTwoInputs(), options).message,
             Catch::Contains("input \"x\" has 3 samples, \"b\" has 2") ||
                 Catch::Contains("input \"b\" has 2 samples, \"x\" has 3"));
}

TEST_CASE("convolutions and transposed products have a scale for each row of weights") {
  // Whole numbers up to 127 times a factor of each channel: nothing is lost.
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 1, 1, 4});
  AddFloats(graph, "w", {2, 1, 1, 2}, {127, -3, 0.5F, 63.5F});
  AddFloats(graph, "bias", {2}, {0.25F, -8});
  AddNode(graph, "Conv", {"x", "w", "bias"}, "c");
  AddNode(graph, "Reshape", {"x", "shape"}, "flat");
  AddInts(graph, "shape", {2, 2});
  AddFloats(graph, "g", {2, 2}, {1.27F, -0.5F, 12.7F, 100});
  AddInt(AddNode(graph, "Gemm", {"flat", "g"}, "y"), "transB", 1);
  SetValue(graph->add_output(), "c", {});
  SetValue(graph->add_output(), "y", {});
  const Outcome made = CompileProto(model, ByInt8(Samples({1, 1, 1, 4}, {0, 255, 17, 3})));
  REQUIRE(made.message.empty());
  CHECK(made.compiled.quantized == 2);
  REQUIRE(made.compiled.movement.size() == 2);
  CHECK(made.compiled.movement[0].relative < 1e-6);
  // 12.7 is 12.7 / (100 / 127) = 16.129 steps, 16 after rounding: 0.1016 less of each.
  CHECK(made.compiled.movement[1].max_abs == Approx(0.129 * 100 / 127 * 17).epsilon(1e-3));
}

TEST_CASE("what integers do not compute stays float, and the report says so") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {1, 2, 1, 2});
  AddFloats(model.mutable_graph(), "w", {2, 1, 1, 1}, {0.3F, 0.7F});
  AddInt(AddNode(model.mutable_graph(), "Conv", {"x", "w"}, "y"), "group", 2);
  SetValue(model.mutable_graph()->add_output(), "y", {});
  const Outcome made = CompileProto(model, ByInt8(Samples({1, 2, 1, 2}, {0.1F, 0.2F, 0.3F, 0.4F})));
  REQUIRE(made.message.empty());
  CHECK(made.compiled.quantized == 0);
  CHECK(made.compiled.movement.at(0).max_abs == 0);
}

TEST_CASE("an output that is no longer a number has moved by infinity") {
  // log(x w) of a small positive product, which the integers make 0.
  onnx::ModelProto model = Product();
  model.mutable_graph()->mutable_node(0)->set_output(0, "xw");
  AddNode(model.mutable_graph(), "Log", {"xw"}, "y");
  const Outcome made = CompileProto(model, ByInt8(Samples({2, 2}, {1, 0, 510, 0})));
  REQUIRE(made.message.empty());
  CHECK(std::isinf(made.compiled.movement.at(0).max_abs));
}

TEST_CASE("samples that do not fit are refused") {
  const Tensor x = Samples({1, 2}, {0, 1});
  CompileOptions none;
  none.precision = Precision::kInt8;
  CHECK_THAT(MessageOf(none), Catch::Contains("precision int8 needs samples of the model's inputs"));
  CompileOptions unused = ByInt8(x);
  unused.precision = Precision::kModel;
  CHECK_THAT(MessageOf(unused), Catch::Contains("samples to calibrate with are for precision int8 alone"));
  CHECK_THAT(MessageOf(ByInt8(x, "X1")), Catch::Contains("calibration data: the model has no input \"X1\""));
  CHECK_THAT(MessageOf(ByInt8(Samples({2}, {0, 1}))),
             Catch::Contains("\"x\": it has rank 1, expected 2 (one sample) or 3 (samples along the"));
  CHECK_THAT(MessageOf(ByInt8(Samples({0, 1, 2}, {}))),
             Catch::Contains("it has no samples: its first axis is 0"));
  std::vector<std::int64_t> whole = {1, 2};
  const std::vector<std::int64_t> shape = {1, 2};
  CHECK_THAT(MessageOf(ByInt8(*Tensor::CopyOf(TensorView(whole.data(), kInt64, shape)))),
             Catch::Contains("it is i64, expected f32"));
}

TEST_CASE("entropy cuts a rare large value off, min-max does not") {
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(static_cast<float>(i % 1000) / 1000);
  values.push_back(100);
  compiler::ActivationRange range;
  range.Extend({values.data(), values.size()});
  range.Count({values.data(), values.size()});
  CHECK(range.MinMax()->most == 100);
  CHECK(range.Entropy()->most < 50);
  CHECK(range.Entropy()->least == 0);
  CHECK_FALSE(compiler::ActivationRange().MinMax());
}

TEST_CASE("entropy and min-max make different programs of the same samples") {
  std::vector<float> values(2000, 1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 100) / 100;
  values[7] = 100;
  CompileOptions options = ByInt8(Samples({1000, 2}, values));
  const Outcome all = CompileProto(Product(), options);
  options.calibration.method = CalibrationMethod::kEntropy;
  const Outcome cut = CompileProto(Product(), options);
  REQUIRE(all.message.empty());
  REQUIRE(cut.message.empty());
  CHECK(cut.compiled.movement.at(0).max_abs > 10 * all.compiled.movement.at(0).max_abs);
}

TEST_CASE("vm-compile reads samples from an archive, and reports") {
  const TempFolder folder;
  folder.Write("model.onnx", Product().SerializeAsString());
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"model.onnx", "-o", "model.rwx", "--precision", "int8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram("vm-compile", arguments, folder.path());
  };
  CHECK_THAT(compile({}).err, Catch::Contains("needs samples of the model's inputs") &&
                                  Catch::Contains("--calibrate DATA.npz"));
  CHECK_THAT(compile({"--calibrate", "gone.npz"}).err,
             Catch::Contains("--calibrate: ") && Catch::Contains("gone.npz"));
  const std::vector<float> elements = {1, 510};
  HostTensor samples;
  samples.dtype = kFloat32;
  samples.shape = {1, 1, 2};
  samples.bytes = CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), sizeof(float) * 2});
  const NamedTensor named = {"x", samples}, other = {"X", samples};
  REQUIRE(WriteNpz((folder.path() / "x.npz").string(), {&named, 1}));
  REQUIRE(WriteNpz((folder.path() / "other.npz").string(), {&other, 1}));
  CHECK(compile({"--calibrate", "other.npz"}).err ==
        "vm-compile: error: model.onnx: calibration data: the model has no input \"X\"; did you mean 'x'?\n");
  const Finished done = compile({"--calibrate", "x.npz"});
  CHECK(done.err.empty());
  CHECK_THAT(done.out, Catch::Contains("1 convolutions and products compute with 8-bit integers\n"
                                       "output y moved from float by at most 127, 0.00388 of its norm\n"));
  const auto json = nlohmann::json::parse(compile({"--calibrate", "x.npz", "--json"}).out);
  CHECK(json["quantized"] == 1);
  CHECK(json["movement"][0]["output"] == "y");
  CHECK(json["movement"][0]["max_abs"] == Approx(127).epsilon(1e-4));
  CHECK(json["movement"][0]["relative"] == Approx(0.00388).epsilon(1e-2));
}

}  // namespace
}  // namespace rewire::test
