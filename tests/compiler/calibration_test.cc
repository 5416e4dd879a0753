// SPDX-License-Identifier: Apache-2.0
// --precision int8: quantising a float model by samples. Expected values are computed by hand.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "rewire/compiler/passes/quantize/activation_range.h"
#include "rewire/tests/compiler/model_builder.h"
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

TEST_CASE("samples are cut along the first axis, or are one call for each entry") {
  CHECK(MessageOf(ByInt8(Samples({3, 2}, {0, 1, 2, 3, 4, 5}))).empty());
  CHECK(MessageOf(ByInt8(Samples({1, 3, 2}, {0, 1, 2, 3, 4, 5}))).empty());
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
             Catch::Contains("\"x\": it has rank 1, expected 2 (samples along the first axis) or 3"));
  CHECK_THAT(MessageOf(ByInt8(Samples({0, 2}, {}))), Catch::Contains("its first axis is 0"));
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

}  // namespace
}  // namespace rewire::test
