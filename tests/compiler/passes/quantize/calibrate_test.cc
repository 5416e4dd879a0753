// SPDX-License-Identifier: Apache-2.0
// --precision int8: quantizing a float model by samples. Expected values are computed by hand.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
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
  options.calibration.data = {{{name, x}}};
  options.calibration.method = CalibrationMethod::kMinMax;
  options.calibration.max_error = std::numeric_limits<double>::infinity();
  return options;
}

std::ptrdiff_t Quantized(const Outcome& made) {
  return std::count_if(made.compiled.products.begin(), made.compiled.products.end(),
                       [](const ProductPrecision& product) { return product.quantized; });
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
  for (const auto& kernel : made.compiled.module.kernels) {
    integers = integers || kernel.name.find("integer") != std::string::npos ||
               kernel.name.find("s8") != std::string::npos || kernel.name.find("u8") != std::string::npos ||
               kernel.name == "rewire.quantize_linear";
  }
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
  options.calibration.data[0]["b"] = Samples({2}, {5, 7});
  const Outcome shared = CompileProto(OfTwoInputs(), options);
  REQUIRE(shared.message.empty());
  CHECK(shared.compiled.movement.at(0).max_abs < 1e-2);
  options.calibration.data[0]["b"] = Samples({3, 2}, {5, 7, 5, 7, 5, 7});
  CHECK(CompileProto(OfTwoInputs(), options).message.empty());
  options.calibration.data[0]["b"] = Samples({2, 2}, {5, 7, 5, 7});
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
  CHECK(Quantized(made) == 2);
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
  CHECK(Quantized(made) == 0);
  REQUIRE(made.compiled.products.size() == 1);
  CHECK(made.compiled.products[0].node == "Conv 'y'");
  CHECK(made.compiled.products[0].reason == "integers are no faster for convolutions of groups");
  CHECK(std::isnan(made.compiled.products[0].noise));
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
  CHECK_THAT(MessageOf(none),
             Catch::Contains("precision int8 calibrates with samples of the model's inputs"));
  CompileOptions unused = ByInt8(x);
  unused.precision = Precision::kModel;
  const std::string alone = "samples are for precision int8 or bf16 alone";
  CHECK_THAT(MessageOf(unused), Catch::Contains(alone));
  unused.calibration.data.clear();
  CHECK(MessageOf(unused).empty());
  unused.calibration.keep_float = {"y"};
  CHECK_THAT(MessageOf(unused), Catch::Contains("nodes to keep float are for precision int8 alone"));
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
  values.reserve(100001);
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

TEST_CASE("least squares cut a rare large value off as far as it pays") {
  // 100,000 elements rounded to 255 steps of h / 255 and one cut from 100 to h: their squares,
  // 100000 (h / 255)^2 / 12 + (100 - h)^2, are least at h = 88.6.
  std::vector<float> values;
  values.reserve(100001);
  for (int i = 0; i < 100000; ++i) values.push_back(static_cast<float>(i % 1000 + 1) / 1001);
  values.push_back(100);
  for (const float sign : {1.0F, -1.0F}) {
    for (float& value : values) value = std::fabs(value) * sign;
    compiler::ActivationRange range;
    range.Extend({values.data(), values.size()});
    range.Count({values.data(), values.size()});
    const compiler::ActivationRange::Limits limits = *range.LeastSquares();
    CHECK(std::max(-limits.least, limits.most) == Approx(88.6).margin(0.8));
    CHECK(std::min(-limits.least, limits.most) == 0);
    CHECK(range.elements() == values.size());
  }
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

// a = x w is exact for whole numbers up to 255, b = z w is not for 1 and 510: its noise is 0.00388.
onnx::ModelProto ExactAndRough() {
  onnx::ModelProto model = Product();
  model.mutable_graph()->mutable_node(0)->set_name("exact");
  SetValue(model.mutable_graph()->add_input(), "z", {"N", 2});
  AddNode(model.mutable_graph(), "MatMul", {"z", "w"}, "b")->set_name("rough");
  SetValue(model.mutable_graph()->add_output(), "b", {"N", 2});
  return model;
}

CompileOptions OfExactAndRough(double max_error) {
  CompileOptions options = ByInt8(Samples({2, 2}, {0, 1, 2, 255}));
  options.calibration.data[0]["z"] = Samples({2, 2}, {1, 510, 0, 0});
  options.calibration.max_error = max_error;
  return options;
}

TEST_CASE("products stay float so that no output moves further than allowed") {
  const Outcome wide = CompileProto(ExactAndRough(), OfExactAndRough(0.004));
  REQUIRE(wide.message.empty());
  CHECK(Quantized(wide) == 2);
  const Outcome narrow = CompileProto(ExactAndRough(), OfExactAndRough(0.0038));
  REQUIRE(narrow.message.empty());
  REQUIRE(narrow.compiled.products.size() == 2);
  const ProductPrecision &exact = narrow.compiled.products[0], &rough = narrow.compiled.products[1];
  CHECK(exact.quantized);
  CHECK(exact.reason.empty());
  CHECK(exact.noise < 1e-6);
  CHECK_FALSE(rough.quantized);
  CHECK(rough.node == "MatMul 'rough'");
  CHECK(rough.reason == "outputs would move too far");
  CHECK(rough.noise == Approx(0.00388).epsilon(1e-2));
  REQUIRE(narrow.compiled.movement.size() == 2);
  CHECK(narrow.compiled.movement[1].max_abs == 0);
  CompileOptions wrong = OfExactAndRough(-1);
  CHECK_THAT(CompileProto(ExactAndRough(), wrong).message,
             Catch::Contains("the largest error is -1, expected 0 or more"));
  wrong.calibration.max_error = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(CompileProto(ExactAndRough(), wrong).message, Catch::Contains("the largest error is nan"));
}

// y = x w + z v, with samples of one row each. Products by name.
std::map<std::string, bool> QuantizedInSum(const std::vector<float>& x, const std::vector<float>& w,
                                           const std::vector<float>& z, const std::vector<float>& v,
                                           double max_error) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  const auto rows = [](const std::vector<float>& of) { return static_cast<std::int64_t>(of.size()); };
  SetValue(graph->add_input(), "x", {"N", rows(x)});
  SetValue(graph->add_input(), "z", {"N", rows(z)});
  AddFloats(graph, "w", {rows(x), 2}, w);
  AddFloats(graph, "v", {rows(z), 2}, v);
  AddNode(graph, "MatMul", {"x", "w"}, "xw");
  AddNode(graph, "MatMul", {"z", "v"}, "zv");
  AddNode(graph, "Add", {"xw", "zv"}, "y");
  SetValue(graph->add_output(), "y", {"N", 2});
  CompileOptions options = ByInt8(Samples({1, rows(x)}, x));
  options.calibration.data[0]["z"] = Samples({1, rows(z)}, z);
  options.calibration.max_error = max_error;
  const Outcome made = CompileProto(model, options);
  REQUIRE(made.message.empty());
  std::map<std::string, bool> quantized;
  for (const ProductPrecision& product : made.compiled.products) quantized[product.node] = product.quantized;
  return quantized;
}

using ByName = std::map<std::string, bool>;

TEST_CASE("of two products that are equally rough, the one with less work stays float") {
  // Each loses 127 of about 65000: together 0.0039, alone 0.0019.
  const std::vector<float> w = {1.27F, 127, -0.5F, 64}, longer = {1.27F, 127, -0.5F, 64, 1, 1, 1, 1};
  CHECK(QuantizedInSum({1, 510, 0, 0}, longer, {1, 510}, w, 0.003) ==
        ByName{{"MatMul 'xw'", true}, {"MatMul 'zv'", false}});
  CHECK(QuantizedInSum({1, 510}, w, {1, 510, 0, 0}, longer, 0.003) ==
        ByName{{"MatMul 'xw'", false}, {"MatMul 'zv'", true}});
}

TEST_CASE("a rough product that no output shows gets its integers back") {
  // zv loses all of itself, which is next to nothing of y: it becomes float first, and that does not help.
  CHECK(QuantizedInSum({1, 510}, {1.27F, 127, -0.5F, 64}, {1, 510}, {0.001F, 0.001F, 0, 0}, 0.003) ==
        ByName{{"MatMul 'xw'", false}, {"MatMul 'zv'", true}});
}

TEST_CASE("nodes that are named stay float") {
  CompileOptions options = OfExactAndRough(1);
  options.calibration.keep_float = {"exact"};
  const Outcome made = CompileProto(ExactAndRough(), options);
  REQUIRE(made.message.empty());
  CHECK_FALSE(made.compiled.products.at(0).quantized);
  CHECK(made.compiled.products[0].reason == "it is to stay float");
  CHECK(made.compiled.products.at(1).quantized);
  options.calibration.keep_float = {"Exact"};
  CHECK_THAT(CompileProto(ExactAndRough(), options).message,
             Catch::Contains("no node with constant weights is called \"Exact\"; did you mean 'exact'?"));
}

TEST_CASE("samples of several sizes count together") {
  // The second makes the scale 2.
  CompileOptions options = ByInt8(Samples({1, 2}, {0, 1}));
  options.calibration.data.push_back({{"x", Samples({3, 2}, {0, 1, 510, 2, 3, 4})}});
  const Outcome made = CompileProto(Product(), options);
  REQUIRE(made.message.empty());
  CHECK(made.compiled.movement.at(0).max_abs == Approx(127).epsilon(1e-4));
  options.calibration.data.push_back({{"X", Samples({1, 2}, {0, 1})}});
  CHECK_THAT(CompileProto(Product(), options).message, Catch::Contains("the model has no input \"X\""));
}

std::string ReasonOf(const onnx::ModelProto& model, const CompileOptions& options) {
  const Outcome made = CompileProto(model, options);
  CHECK(made.message.empty());
  return made.compiled.products.size() == 1 ? made.compiled.products[0].reason : "other products";
}

TEST_CASE("the report says why a product is float") {
  CHECK(ReasonOf(Product(), ByInt8(Samples({1, 2}, {0, 0}))) == "what it reads is always 0 in the samples");

  onnx::ModelProto infinite = Product();
  infinite.mutable_graph()->mutable_initializer(0)->set_float_data(0, std::numeric_limits<float>::infinity());
  CHECK(ReasonOf(infinite, ByInt8(Samples({1, 2}, {0, 1}))) == "a weight is no finite number");

  onnx::ModelProto branch = EmptyModel();
  SetValue(branch.mutable_graph()->add_input(), "x", {2, 2});
  SetValue(branch.mutable_graph()->add_input(), "c", {}, onnx::TensorProto::BOOL);
  onnx::NodeProto* choice = AddNode(branch.mutable_graph(), "If", {"c"}, "y");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto* graph = AddGraph(choice, name);
    AddFloats(graph, std::string("w of ") + name, {2, 2}, {1, 2, 3, 4});
    const bool product = std::string(name) == "then_branch";
    if (product) AddNode(graph, "MatMul", {"x", "w of then_branch"}, name);
    if (!product) AddNode(graph, "Relu", {"x"}, name);
    SetValue(graph->add_output(), name, {2, 2});
  }
  SetValue(branch.mutable_graph()->add_output(), "y", {2, 2});
  CompileOptions options = ByInt8(Samples({2, 2}, {0, 1, 2, 3}));
  bool chosen = true;
  options.calibration.data[0]["c"] = *Tensor::CopyOf(TensorView(&chosen, kBool8, {}));
  CHECK(ReasonOf(branch, options) == "it is inside a loop or a branch");

  onnx::ModelProto quantized = EmptyModel();
  onnx::GraphProto* graph = quantized.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 2});
  AddWeight(graph, "w8", onnx::TensorProto::INT8, {2, 2})->set_raw_data("\x01\x02\x03\x04");
  AddFloats(graph, "scale", {}, {0.5F});
  AddNode(graph, "DequantizeLinear", {"w8", "scale"}, "w");
  AddNode(graph, "MatMul", {"x", "w"}, "y");
  SetValue(graph->add_output(), "y", {2, 2});
  CHECK(ReasonOf(quantized, ByInt8(Samples({2, 2}, {0, 1, 2, 3}))) == "the model quantizes it already");

  onnx::ModelProto recurrent = EmptyModel(14);
  graph = recurrent.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 1, 2});
  AddFloats(graph, "w", {1, 1, 2}, {1, 2});
  AddFloats(graph, "r", {1, 1, 1}, {0.5F});
  AddInt(AddNode(graph, "RNN", {"x", "w", "r"}, "y"), "hidden_size", 1);
  SetValue(graph->add_output(), "y", {2, 1, 1, 1});
  CHECK(ReasonOf(recurrent, ByInt8(Samples({2, 1, 2}, {0, 1, 2, 3}))) == "recurrent layers stay float");
}

TEST_CASE("vm-compile reads samples from an archive, and reports") {
  const TempFolder folder;
  folder.Write("model.onnx", Product().SerializeAsString());
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"model.onnx",    "-o",      "model.rwx",  "--precision", "int8",
                                          "--calibration", "min-max", "--max-error"};
    if (more.empty() || more[0] != "0.001") arguments.emplace_back("inf");
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram("vm-compile", arguments, folder.path());
  };
  CHECK_THAT(compile({}).err, Catch::Contains("calibrates with samples of the model's inputs") &&
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
  CHECK_THAT(done.out, Catch::Contains("1 of 1 convolutions and products compute with 8-bit integers\n"
                                       "output y moved from float by at most 127, 0.00388 of its norm\n"));
  const auto json = nlohmann::json::parse(compile({"--calibrate", "x.npz", "--json"}).out);
  CHECK(json["quantized"] == 1);
  CHECK(json["products"][0]["node"] == "MatMul 'y'");
  CHECK(json["products"][0]["quantized"] == true);
  CHECK(json["products"][0]["noise"] == Approx(0.00388).epsilon(1e-2));
  CHECK(json["movement"][0]["output"] == "y");
  CHECK(json["movement"][0]["max_abs"] == Approx(127).epsilon(1e-4));
  CHECK(json["movement"][0]["relative"] == Approx(0.00388).epsilon(1e-2));
  CHECK_THAT(compile({"0.001", "--calibrate", "x.npz", "--calibrate", "x.npz"}).out,
             Catch::Contains("0 of 1 convolutions and products compute with 8-bit integers\n"
                             "MatMul 'y' stays float: outputs would move too far (noise 0.00388)\n"
                             "output y moved from float by at most 0, 0 of its norm\n"));
  CHECK_THAT(compile({"--calibrate", "x.npz", "--keep-float", "y"}).out,
             Catch::Contains("MatMul 'y' stays float: it is to stay float\n"));
}

}  // namespace
}  // namespace rewire::test
