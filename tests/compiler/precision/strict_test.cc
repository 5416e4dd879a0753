// SPDX-License-Identifier: Apache-2.0
// Strict results: a program without the passes that may change more than the order of sums gives what the one
// without any passes gives, also for NaN, infinities and numbers near the largest.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/compiler/passes/passes.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

using StrictFloats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();

// Between -1 and 1, the same each time.
StrictFloats Random(std::int64_t count, std::uint32_t seed) {
  StrictFloats numbers(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761U + 1;
  for (float& number : numbers) {
    state = state * 1664525U + 1013904223U;
    number = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return numbers;
}

std::int64_t SizeOf(const Shape& shape) {
  std::int64_t size = 1;
  for (const std::int64_t dim : shape) size *= dim;
  return size;
}

struct StrictModel {
  const char* name;
  std::function<void(onnx::GraphProto*)> build;  // from "x" to "y"
  Shape shape;
  std::int64_t opset = 13;
  bool adds = true;  // its results depend on an order of sums
};

void Scalar(onnx::GraphProto* graph, const std::string& name, float value) {
  AddFloats(graph, name, {}, {value});
}

void Weights(onnx::GraphProto* graph, const std::string& name, const Shape& shape, std::uint32_t seed) {
  AddFloats(graph, name, shape, Random(SizeOf(shape), seed));
}

onnx::NodeProto* Cast(onnx::GraphProto* graph, const std::string& from, const std::string& to,
                      onnx::TensorProto::DataType type) {
  onnx::NodeProto* cast = AddNode(graph, "Cast", {from}, to);
  AddInt(cast, "to", type);
  return cast;
}

std::vector<StrictModel> Models() {
  std::vector<StrictModel> models;
  models.push_back({"a convolution of 3 x 3, normalized and activated",
                    [](onnx::GraphProto* graph) {
                      Weights(graph, "w", {64, 64, 3, 3}, 1);
                      for (const char* name : {"scale", "bias", "mean"}) Weights(graph, name, {64}, 2);
                      AddFloats(graph, "var", {64}, StrictFloats(64, 100.0F));
                      AddIntList(AddNode(graph, "Conv", {"x", "w"}, "c"), "pads", {1, 1, 1, 1});
                      AddNode(graph, "BatchNormalization", {"c", "scale", "bias", "mean", "var"}, "n");
                      Scalar(graph, "three", 3);
                      Scalar(graph, "zero", 0);
                      Scalar(graph, "six", 6);
                      AddNode(graph, "Add", {"n", "three"}, "s");
                      AddNode(graph, "Clip", {"s", "zero", "six"}, "k");
                      AddNode(graph, "Mul", {"n", "k"}, "p");
                      AddNode(graph, "Div", {"p", "six"}, "y");
                    },
                    {1, 64, 12, 12}});
  models.push_back({"a product, an activation, two factors and two terms",
                    [](onnx::GraphProto* graph) {
                      Weights(graph, "w", {16, 24}, 3);
                      Weights(graph, "b", {24}, 4);
                      Scalar(graph, "small", 1e-20F);
                      Scalar(graph, "large", 1e30F);
                      AddNode(graph, "MatMul", {"x", "w"}, "m");
                      AddNode(graph, "Add", {"m", "b"}, "a");
                      AddNode(graph, "Relu", {"a"}, "r");
                      AddNode(graph, "Mul", {"r", "large"}, "f");
                      AddNode(graph, "Mul", {"f", "small"}, "g");
                      AddNode(graph, "Add", {"g", "large"}, "h");
                      AddNode(graph, "Sub", {"h", "large"}, "y");
                    },
                    {9, 16}});
  models.push_back({"a convolution and a factor per channel",
                    [](onnx::GraphProto* graph) {
                      Weights(graph, "w", {8, 8, 1, 1}, 3);
                      AddFloats(graph, "s", {1, 8, 1, 1}, {1e-10F, 0, 1, 2, 1e10F, -1, 0, 3});
                      AddNode(graph, "Conv", {"x", "w"}, "c");
                      AddNode(graph, "Mul", {"c", "s"}, "y");
                    },
                    {1, 8, 6, 6}});
  models.push_back({"Gelu by erf",
                    [](onnx::GraphProto* graph) {
                      Scalar(graph, "root", std::sqrt(2.0F));
                      Scalar(graph, "one", 1);
                      Scalar(graph, "half", 0.5F);
                      AddNode(graph, "Div", {"x", "root"}, "d");
                      AddNode(graph, "Erf", {"d"}, "e");
                      AddNode(graph, "Add", {"e", "one"}, "g");
                      AddNode(graph, "Mul", {"x", "g"}, "p");
                      AddNode(graph, "Mul", {"p", "half"}, "y");
                    },
                    {7, 32},
                    13,
                    false});
  models.push_back({"Swish and powers",
                    [](onnx::GraphProto* graph) {
                      Scalar(graph, "two", 2);
                      Scalar(graph, "three", 3);
                      AddNode(graph, "Sigmoid", {"x"}, "s");
                      AddNode(graph, "Mul", {"x", "s"}, "w");
                      AddNode(graph, "Pow", {"w", "three"}, "c");
                      AddNode(graph, "Pow", {"c", "two"}, "q");
                      AddNode(graph, "Add", {"q", "w"}, "y");
                    },
                    {7, 32},
                    13,
                    false});
  models.push_back({"layer normalization",
                    [](onnx::GraphProto* graph) {
                      Scalar(graph, "two", 2);
                      Scalar(graph, "epsilon", 1e-5F);
                      Weights(graph, "scale", {32}, 5);
                      const auto mean = [&](const std::string& from, const std::string& to) {
                        AddIntList(AddNode(graph, "ReduceMean", {from}, to), "axes", {-1});
                      };
                      mean("x", "m");
                      AddNode(graph, "Sub", {"x", "m"}, "d");
                      AddNode(graph, "Pow", {"d", "two"}, "q");
                      mean("q", "v");
                      AddNode(graph, "Add", {"v", "epsilon"}, "e");
                      AddNode(graph, "Sqrt", {"e"}, "r");
                      AddNode(graph, "Div", {"d", "r"}, "n");
                      AddNode(graph, "Mul", {"n", "scale"}, "y");
                    },
                    {7, 32}});
  models.push_back({"attention whose second query may see no key",
                    [](onnx::GraphProto* graph) {
                      StrictFloats mask(16 * 16);
                      for (std::size_t i = 0; i < 16; ++i) mask[16 + i] = -kInf;
                      AddFloats(graph, "mask", {16, 16}, mask);
                      Scalar(graph, "scale", 0.25F);
                      AddIntList(AddNode(graph, "Transpose", {"x"}, "t"), "perm", {0, 1, 3, 2});
                      AddNode(graph, "MatMul", {"x", "t"}, "s");
                      AddNode(graph, "Mul", {"s", "scale"}, "f");
                      AddNode(graph, "Add", {"f", "mask"}, "b");
                      AddInt(AddNode(graph, "Softmax", {"b"}, "p"), "axis", -1);
                      AddNode(graph, "MatMul", {"p", "x"}, "y");
                    },
                    {1, 2, 16, 16}});
  models.push_back({"float16 in between",
                    [](onnx::GraphProto* graph) {
                      Cast(graph, "x", "h", onnx::TensorProto::FLOAT16);
                      AddNode(graph, "Exp", {"h"}, "e");
                      AddNode(graph, "Softplus", {"e"}, "s");
                      AddNode(graph, "Log", {"s"}, "l");
                      AddNode(graph, "Mish", {"l"}, "m");
                      Cast(graph, "m", "y", onnx::TensorProto::FLOAT);
                    },
                    {7, 32},
                    18,
                    false});
  models.push_back({"subnormal weights",
                    [](onnx::GraphProto* graph) {
                      StrictFloats weights = Random(32 * 8, 6);
                      for (std::size_t i = 0; i < weights.size(); i += 3) weights[i] *= 1e-39F;
                      AddFloats(graph, "w", {32, 8}, weights);
                      AddNode(graph, "MatMul", {"x", "w"}, "y");
                    },
                    {7, 32}});
  return models;
}

// Usual numbers with some that are not.
std::vector<StrictFloats> InputsOf(const Shape& shape) {
  const StrictFloats usual = Random(SizeOf(shape), 9);
  std::vector<StrictFloats> inputs = {usual};
  for (const float special : {kInf, -kInf, kNaN, 1e38F, -kMost, 1e-40F, -0.0F}) {
    inputs.push_back(usual);
    inputs.back()[usual.size() / 3] = special;
  }
  for (const float factor : {1e-38F, 20.0F, 100.0F, 1e18F, 1e36F}) {
    inputs.push_back(usual);
    for (float& x : inputs.back()) x *= factor;
  }
  return inputs;
}

Module Compiled(const onnx::ModelProto& model, const compiler::CompileOptions& options) {
  Outcome outcome = CompileProto(model, options);
  INFO(outcome.message);
  for (const compiler::Unsupported& node : outcome.unsupported) UNSCOPED_INFO(node.node + ": " + node.reason);
  REQUIRE(outcome.message.empty());
  return std::move(outcome.compiled.module);
}

// The same number but for the order of sums, of which `largest` is about the largest term; NaN and infinities
// are the same.
bool IsAlike(float given, float expected, float largest) {
  if (std::isnan(expected) || std::isnan(given)) return std::isnan(expected) && std::isnan(given);
  if (std::isinf(expected) || std::isinf(given)) return given == expected;
  return std::fabs(given - expected) <= 2e-6F * std::fmax(largest, std::fabs(expected));
}

TEST_CASE("strict: results are those of the operators one by one, but for the order of sums") {
  for (const StrictModel& model : Models()) {
    INFO(model.name);
    onnx::ModelProto proto = ModelOf({model.shape.begin(), model.shape.end()}, model.opset);
    model.build(proto.mutable_graph());
    compiler::CompileOptions plain, strict;
    for (const std::string& pass : compiler::PassNames()) plain.disabled_passes.insert(pass);
    strict.strict = true;
    const Module expected_of = Compiled(proto, plain), given_of = Compiled(proto, strict);
    for (const StrictFloats& x : InputsOf(model.shape)) {
      const Answer expected = RunOn(expected_of, model.shape, x), given = RunOn(given_of, model.shape, x);
      REQUIRE(expected.error.empty());
      REQUIRE(given.error.empty());
      REQUIRE(given.values.size() == expected.values.size());
      float largest = 0;
      for (const float value : expected.values) {
        if (std::isfinite(value)) largest = std::fmax(largest, std::fabs(value));
      }
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < given.values.size(); ++i) {
        const bool same = std::memcmp(&given.values[i], &expected.values[i], sizeof(float)) == 0;
        if (same || (IsAlike(given.values[i], expected.values[i], largest) &&
                     (model.adds || std::isnan(expected.values[i]))))
          continue;
        if (++wrong == 1)
          UNSCOPED_INFO("element " << i << ": " << given.values[i] << ", expected " << expected.values[i]);
      }
      CAPTURE(x[x.size() / 3], x[0]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("strict: the executable says so, and only the CPU and the model's precision will do") {
  onnx::ModelProto model = ModelOf({2, 3});
  AddNode(model.mutable_graph(), "Relu", {"x"}, "y");
  const auto says_strict = [](const Module& module) {
    return std::any_of(module.metadata.begin(), module.metadata.end(),
                       [](const auto& entry) { return entry.first == "strict"; });
  };
  compiler::CompileOptions options;
  CHECK_FALSE(says_strict(Compiled(model, options)));
  options.strict = true;
  CHECK(says_strict(Compiled(model, options)));
  options.device = "opencl";
  CHECK(CompileProto(model, options).message ==
        "model: strict results are for the CPU alone, and the device is \"opencl\"");
  options.device = "";
  options.precision = Precision::kBf16;
  CHECK(CompileProto(model, options).message ==
        "model: strict results need the model's own precision, not int8 or bf16");
}

// "| `square` | rounding | left out | all | Turns ... |"
TEST_CASE("strict: docs/passes.md says of each pass what it may change") {
  std::ifstream file(std::string(SourceDir()) + "/docs/passes.md");
  REQUIRE(file);
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::size_t end = line.find('`', 3);
    rows[line.substr(3, end - 3)] = line.substr(end + 1);
  }
  for (const compiler::Pass& pass : compiler::Passes()) {
    std::string strict = "left out";
    if (compiler::IsStrict(pass))
      strict = pass.strict_effect == pass.effect ? "runs" : compiler::PassEffectText(pass.strict_effect);
    const std::string expected =
        std::string(" | ") + compiler::PassEffectText(pass.effect) + " | " + strict + " | ";
    CAPTURE(pass.name);
    REQUIRE(rows.contains(pass.name));
    CHECK(rows[pass.name].substr(0, expected.size()) == expected);
  }
}

}  // namespace
}  // namespace rewire::test
