// SPDX-License-Identifier: Apache-2.0
// Biases of 32-bit integers, as quantizing converters write them, in products of integers.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

constexpr float kStep = 0.5F;  // of x in Quantized
constexpr std::int64_t kColumns = 3, kDepth = 2 * 3 * 3;
// The largest sum of so many products of bytes.
constexpr std::int64_t kMostSum = kDepth * 255 * 255;

struct Bias {
  std::vector<std::int32_t> terms = {-1000, 0, 77};
  // By how much its steps differ from those of the products.
  float factor = 1;
  std::int32_t zero = 0;
  bool has_zero = true;
};

void AddDequantized(onnx::GraphProto* graph, const std::string& name, const std::vector<float>& scales,
                    const Bias* bias) {
  const bool each = scales.size() != 1;
  const std::vector<std::int64_t> dims = each ? Shape{kColumns} : Shape{};
  AddFloats(graph, name + ".scale", dims, scales);
  std::vector<std::string> inputs = {name, name + ".scale"};
  if (bias == nullptr || bias->has_zero) {
    AddWhole(graph, name + ".zero", dims, bias == nullptr ? kI8 : kI32, bias == nullptr ? 0 : bias->zero, 0);
    inputs.push_back(name + ".zero");
  }
  onnx::NodeProto* node = AddNode(graph, "DequantizeLinear", inputs, name + ".floats");
  if (each) AddInt(node, "axis", 0);
}

// A convolution or a product of dequantized bytes with this bias. Weights have one scale, or one for each of
// their rows, and so has the bias.
onnx::ModelProto Model(bool convolution, const std::vector<float>& scales, const Bias& bias) {
  onnx::ModelProto model = convolution ? Quantized({1, 2, 4, 4}) : Quantized({2, kDepth});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  AddWhole(graph, "w", convolution ? Shape{kColumns, 2, 3, 3} : Shape{kColumns, kDepth}, kI8);
  AddDequantized(graph, "w", scales, nullptr);
  onnx::TensorProto* terms = AddWeight(graph, "b", kI32, {kColumns});
  for (const std::int32_t term : bias.terms) terms->add_int32_data(term);
  std::vector<float> steps;
  for (const float scale : scales) steps.push_back(kStep * scale * bias.factor);
  AddDequantized(graph, "b", steps, &bias);
  onnx::NodeProto* node = AddNode(graph, convolution ? "Conv" : "Gemm", {"xd", "w.floats", "b.floats"}, "y");
  if (!convolution) AddInt(node, "transB", 1);
  return model;
}

// The kernels behind the product, once its constants are folded.
Lines BehindProduct(bool convolution, const std::vector<float>& scales, const Bias& bias) {
  const Shape shape = convolution ? Shape{1, 2, 4, 4} : Shape{2, kDepth};
  const PassRun run =
      RunPasses({"fold-constants", "integer-products"}, Model(convolution, scales, bias), shape);
  const Lines kernels = KernelsOf(run.after);
  const std::string product = convolution ? "rewire.conv_integer" : "rewire.matmul_integer";
  const auto found = std::find(kernels.begin(), kernels.end(), product);
  REQUIRE(found != kernels.end());
  return {found + 1, kernels.end()};
}

const Lines kOfIntegers = {"rewire.add", "rewire.cast", "rewire.mul"};
const Lines kOfFloats = {"rewire.cast", "rewire.mul", "rewire.add"};

}  // namespace

TEST_CASE("integer-products: a bias of integers in the products' steps is a term of their sums") {
  const bool convolution = GENERATE(true, false);
  CAPTURE(convolution);
  SECTION("with a scale for each column") {
    CHECK(BehindProduct(convolution, {0.25F, 1.25F, 0.3F}, {}) == kOfIntegers);
  }
  SECTION("with one scale") { CHECK(BehindProduct(convolution, {0.3F}, {}) == kOfIntegers); }
  SECTION("without a zero point") {
    Bias bias;
    bias.has_zero = false;
    CHECK(BehindProduct(convolution, {0.3F}, bias) == kOfIntegers);
  }
}

TEST_CASE("integer-products: another bias of integers is added to the floats") {
  const bool convolution = GENERATE(true, false);
  CAPTURE(convolution);
  Bias bias;
  SECTION("in other steps") { bias.factor = 1.5F; }
  SECTION("in steps that differ by a bit") { bias.factor = 1 + 0x1p-20F; }
  SECTION("with a zero point") { bias.zero = 1; }
  CHECK(BehindProduct(convolution, {0.25F, 1.25F, 0.3F}, bias) == kOfFloats);
}

TEST_CASE("integer-products: a bias with which a sum might not fit into 32 bits is added to the floats") {
  const bool convolution = GENERATE(true, false);
  const std::int32_t sign = GENERATE(1, -1);
  CAPTURE(convolution, sign);
  constexpr auto kMost = static_cast<std::int32_t>(std::numeric_limits<std::int32_t>::max() - kMostSum);
  Bias bias;
  bias.terms[1] = sign * kMost;
  CHECK(BehindProduct(convolution, {0.25F, 1.25F, 0.3F}, bias) == kOfIntegers);
  bias.terms[1] = sign * (kMost + 1);
  CHECK(BehindProduct(convolution, {0.25F, 1.25F, 0.3F}, bias) == kOfFloats);
}

}  // namespace rewire::test
