// SPDX-License-Identifier: Apache-2.0
// Passes that find products of integers, and choose their kernels of packed weights.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

// x dequantized, "xd", and weights "wd" of this shape, with a scale for each position of `axis`.
onnx::ModelProto Dequantized(const std::vector<Dim>& dims, const std::vector<std::int64_t>& weights,
                             std::int64_t axis) {
  onnx::ModelProto model = Quantized(dims);
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  AddWhole(graph, "w", weights, kI8);
  std::vector<float> scales;
  for (std::int64_t i = 0; i < weights[static_cast<std::size_t>(axis)]; ++i)
    scales.push_back(0.25F + static_cast<float>(i));
  AddFloats(graph, "ws", {weights[static_cast<std::size_t>(axis)]}, scales);
  AddWhole(graph, "wz", {weights[static_cast<std::size_t>(axis)]}, kI8, 0, 1);
  AddInt(AddNode(graph, "DequantizeLinear", {"w", "ws", "wz"}, "wd"), "axis", axis);
  return model;
}

}  // namespace

TEST_CASE("integer-products: a convolution of dequantized integers") {
  onnx::ModelProto model = Dequantized({1, 2, 4, 4}, {3, 2, 3, 3}, 0);
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("with a bias") {
    AddFloats(graph, "b", {3}, {1, 2, 3});
    AddNode(graph, "Conv", {"xd", "wd", "b"}, "y");
    const Lines lines = After("integer-products", model, {1, 2, 4, 4});
    REQUIRE(lines.size() == 6);
    CHECK_THAT(lines[1], Catch::Contains("rewire.conv_integer") && Catch::EndsWith("(%3, @4, @2, @5)"));
    CHECK(lines[2] == "%7 = rewire.cast(%6)");
    CHECK(lines[3] == "%9 = rewire.mul(%7, @8)");
    CHECK(lines[4] == "%11 = rewire.add(%9, @10)");
  }
  SECTION("whose integers are read again") {
    AddNode(graph, "Conv", {"xd", "wd"}, "conv");
    AddNode(graph, "GlobalMaxPool", {"xd"}, "largest");
    AddNode(graph, "ReduceSum", {"largest"}, "sum");
    AddNode(graph, "Add", {"conv", "sum"}, "y");
    const Lines lines = After("integer-products", model, {1, 2, 4, 4});
    CHECK(Calls(lines, "rewire.conv_integer"));
    CHECK(Calls(lines, "rewire.dequantize_linear"));
  }
}

TEST_CASE("integer-products: the mean of an image is a product by ones") {
  const bool deep = GENERATE(false, true);
  const Shape shape = deep ? Shape{2, 3, 4, 5} : Shape{2, 1, 7};
  onnx::ModelProto model = deep ? Quantized({2, 3, 4, 5}, kI8) : Quantized({2, 1, 7}, kI8);
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  SECTION("of all its positions") {
    AddNode(graph, "GlobalAveragePool", {"xd"}, "y");
    const Lines lines = After("integer-products", model, shape);
    CHECK(Calls(lines, "rewire.conv_integer"));
    CHECK_FALSE(Calls(lines, "rewire.dequantize_linear"));
  }
  SECTION("but not along one axis") {
    AddIntList(AddNode(graph, "ReduceMean", {"xd"}, "y"), "axes", {1});
    CHECK_FALSE(RunPass("integer-products", model, shape).changes());
  }
}

TEST_CASE("integer-products: MatMul, and Gemm as it is, transposed and behind a reshape") {
  SECTION("MatMul of any rank") {
    onnx::ModelProto model = Dequantized({2, 3, 4}, {4, 5}, 1);
    AddNode(model.mutable_graph(), "MatMul", {"xd", "wd"}, "y");
    CHECK(Calls(After("integer-products", model, {2, 3, 4}), "rewire.matmul_integer"));
  }
  SECTION("Gemm") {
    const bool transposed = GENERATE(false, true);
    onnx::ModelProto model = transposed ? Dequantized({3, 4}, {5, 4}, 0) : Dequantized({3, 4}, {4, 5}, 1);
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "b", {5}, {1, 2, 3, 4, 5});
    onnx::NodeProto* gemm = AddNode(graph, "Gemm", {"xd", "wd", "b"}, "y");
    if (transposed) AddInt(gemm, "transB", 1);
    CHECK(Calls(After("integer-products", model, {3, 4}), "rewire.matmul_integer"));
  }
  SECTION("a reshape in between") {
    onnx::ModelProto model = Dequantized({3, 2, 2}, {4, 5}, 1);
    onnx::GraphProto* graph = model.mutable_graph();
    AddNode(graph, "Flatten", {"xd"}, "flat");
    AddNode(graph, "Gemm", {"flat", "wd"}, "y");
    const Lines lines = After("integer-products", model, {3, 2, 2});
    CHECK(Calls(lines, "rewire.matmul_integer"));
    CHECK_FALSE(Calls(lines, "rewire.dequantize_linear"));
  }
}

TEST_CASE("integer-products: a depthwise convolution of dequantized integers") {
  onnx::ModelProto model = Dequantized({1, 2, 4, 4}, {2, 1, 3, 3}, 0);
  AddInt(AddNode(model.mutable_graph(), "Conv", {"xd", "wd"}, "y"), "group", 2);
  CHECK(Calls(After("integer-products", model, {1, 2, 4, 4}), "rewire.conv_integer"));
  CHECK_FALSE(RunPass("integer-groups", model, {1, 2, 4, 4}).changes());
}

TEST_CASE("integer-products: what stays in floats") {
  SECTION("a convolution of groups") {
    onnx::ModelProto model = Dequantized({1, 4, 4, 4}, {4, 2, 3, 3}, 0);
    AddInt(AddNode(model.mutable_graph(), "Conv", {"xd", "wd"}, "y"), "group", 2);
    CHECK_FALSE(RunPass("integer-products", model, {1, 4, 4, 4}).changes());
  }
  SECTION("scales along the depth") {
    onnx::ModelProto model = Dequantized({3, 4}, {4, 4}, 0);
    AddNode(model.mutable_graph(), "MatMul", {"xd", "wd"}, "y");
    CHECK_FALSE(RunPass("integer-products", model, {3, 4}).changes());
  }
  SECTION("a factor of the product") {
    onnx::ModelProto model = Dequantized({3, 4}, {4, 5}, 1);
    AddFloat(AddNode(model.mutable_graph(), "Gemm", {"xd", "wd"}, "y"), "alpha", 0.5F);
    CHECK_FALSE(RunPass("integer-products", model, {3, 4}).changes());
  }
  SECTION("an image that is no integers") {
    onnx::ModelProto model = Dequantized({1, 2, 4, 4}, {3, 2, 3, 3}, 0);
    AddNode(model.mutable_graph(), "Conv", {"x", "wd"}, "y");
    CHECK_FALSE(Calls(After("integer-products", model, {1, 2, 4, 4}), "rewire.conv_integer"));
  }
  SECTION("an image with a scale for each channel") {
    onnx::ModelProto model = Dequantized({1, 2, 4, 4}, {3, 2, 3, 3}, 0);
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "scales", {2}, {1, 2});
    AddWhole(graph, "zeros", {2}, kU8, 0, 1);
    graph->mutable_node(1)->set_input(1, "scales");
    graph->mutable_node(1)->set_input(2, "zeros");
    AddNode(graph, "Conv", {"xd", "wd"}, "y");
    CHECK_FALSE(RunPass("integer-products", model, {1, 2, 4, 4}).changes());
  }
}

TEST_CASE("pack-integers: MatMulInteger with what follows it") {
  onnx::ModelProto model = Quantized({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWhole(graph, "w", {3, 4}, kI8);
  AddNode(graph, "MatMulInteger", {"xq", "w", "xz"}, "sums");
  const std::string pack = R"(%6, %7 = rewire.packed.pack_integers {order="IO", segments=1}(@5))";
  SECTION("nothing") {
    AddNode(graph, "Neg", {"sums"}, "negative");
    AddInt(AddNode(graph, "Cast", {"negative"}, "y"), "to", onnx::TensorProto::FLOAT);
    CHECK(Calls(After("pack-integers", model, {2, 3}), "rewire.packed.matmul_integer {columns=4}"));
  }
  AddInt(AddNode(graph, "Cast", {"sums"}, "floats"), "to", onnx::TensorProto::FLOAT);
  SECTION("a scale for each column, a bias and an activation") {
    AddFloats(graph, "scale", {4}, {1, 2, 3, 4});
    AddFloats(graph, "bias", {4}, {-10, -20, 30, 40});
    AddNode(graph, "Mul", {"scale", "floats"}, "scaled");
    AddNode(graph, "Add", {"scaled", "bias"}, "sum");
    AddNode(graph, "Sigmoid", {"sum"}, "y");
    CHECK(Calls(After("pack-integers", model, {2, 3}),
                R"(rewire.packed.matmul_integer {columns=4, activation="sigmoid"})"));
  }
  SECTION("a scale that is computed behind the product") {
    AddNode(graph, "ReduceMax", {"x"}, "largest");
    AddNode(graph, "Squeeze", {"largest"}, "factor");
    AddNode(graph, "Mul", {"floats", "factor"}, "y");
    const Lines lines = After("pack-integers", model, {2, 3});
    REQUIRE(lines.size() >= 2);
    CHECK_THAT(lines[lines.size() - 2], Catch::Contains("rewire.packed.matmul_integer {columns=4}"));
  }
  SECTION("integers again, held by what an activation leaves") {
    AddFloats(graph, "scale", {}, {0.01F});
    AddFloats(graph, "ys", {}, {0.25F});
    AddWhole(graph, "yz", {}, kI8, -5);
    AddNode(graph, "Mul", {"floats", "scale"}, "scaled");
    AddNode(graph, "Relu", {"scaled"}, "positive");
    AddNode(graph, "QuantizeLinear", {"positive", "ys", "yz"}, "yq");
    AddNode(graph, "DequantizeLinear", {"yq", "ys", "yz"}, "y");
    CHECK(Calls(After("pack-integers", model, {2, 3}),
                "rewire.packed.matmul_integer {columns=4, zero=-5, least=-5}"));
  }
  SECTION("a factor for each row") {
    AddFloats(graph, "rows", {2, 1}, {1, 2});
    AddNode(graph, "Mul", {"floats", "rows"}, "y");
    const Lines lines = After("pack-integers", model, {2, 3});
    CHECK(Calls(lines, "rewire.packed.matmul_integer {columns=4}"));
    CHECK(Calls(lines, "rewire.mul"));
  }
  SECTION("sums that are read twice") {
    AddFloats(graph, "scale", {}, {0.5F});
    AddNode(graph, "Mul", {"floats", "scale"}, "scaled");
    AddNode(graph, "Add", {"scaled", "floats"}, "y");
    const Lines lines = After("pack-integers", model, {2, 3});
    CHECK(Calls(lines, "rewire.packed.matmul_integer {columns=4}"));
    CHECK(Calls(lines, "rewire.mul"));
  }
}

TEST_CASE("pack-integers: dynamic quantization, of unsigned weights") {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::NodeProto* quantize = AddNode(graph, "DynamicQuantizeLinear", {"x"}, "xq");
  quantize->add_output("xs");
  quantize->add_output("xz");
  AddWhole(graph, "w", {3, 4}, kU8);
  AddWhole(graph, "wz", {4}, kU8, 100, 20);
  AddFloats(graph, "ws", {}, {0.125F});
  AddNode(graph, "MatMulInteger", {"xq", "w", "xz", "wz"}, "sums");
  AddInt(AddNode(graph, "Cast", {"sums"}, "floats"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Mul", {"xs", "ws"}, "scale");
  AddNode(graph, "Mul", {"floats", "scale"}, "y");
  const Lines lines = After("pack-integers", model, {2, 3});
  CHECK(Calls(lines, "rewire.packed.matmul_integer {columns=4}"));
  CHECK_FALSE(Calls(lines, "rewire.cast"));
}

TEST_CASE("pack-integers: QLinearMatMul") {
  onnx::ModelProto model = Quantized({2, 3}, kI8);
  onnx::GraphProto* graph = model.mutable_graph();
  AddWhole(graph, "w", {3, 4}, kI8);
  AddFloats(graph, "ws", {4}, {0.5F, 0.25F, 1, 2});
  AddWhole(graph, "wz", {4}, kI8, 0, 3);
  AddFloats(graph, "ys", {}, {4});
  AddWhole(graph, "yz", {}, kI8, 7);
  AddNode(graph, "QLinearMatMul", {"xq", "xs", "xz", "w", "ws", "wz", "ys", "yz"}, "yq");
  AddNode(graph, "DequantizeLinear", {"yq", "ys", "yz"}, "y");
  const Lines lines = After("pack-integers", model, {2, 3});
  CHECK(Calls(lines, "rewire.packed.matmul_integer {columns=4, zero=7}"));
  CHECK_FALSE(Calls(lines, "rewire.requantize"));
}

TEST_CASE("pack-integers: QLinearConv, between transposes") {
  onnx::ModelProto model = Quantized({1, 2, 5, 5});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWhole(graph, "w", {3, 2, 3, 3}, kU8);
  AddFloats(graph, "ws", {3}, {0.5F, 0.25F, 1});
  AddWhole(graph, "wz", {3}, kU8, 128, 0);
  AddFloats(graph, "ys", {}, {40});
  AddWhole(graph, "yz", {}, kU8, 120);
  AddWhole(graph, "b", {3}, kI32, -4000, 3000);
  onnx::NodeProto* conv =
      AddNode(graph, "QLinearConv", {"xq", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, "yq");
  AddIntList(conv, "pads", {1, 1, 1, 1});
  SECTION("by rows of the window") {}
  SECTION("by its positions") { AddIntList(conv, "dilations", {1, 2}); }
  AddNode(graph, "DequantizeLinear", {"yq", "ys", "yz"}, "y");
  const Lines lines = After("pack-integers", model, {1, 2, 5, 5});
  const bool by_rows = conv->attribute_size() == 1;
  CHECK(Calls(lines, by_rows ? "order=\"OI\", segments=3}" : "order=\"OI\", segments=9}"));
  CHECK(Calls(lines, "rewire.packed.conv_integer {channels=3, kernel_shape=[3, 3]"));
  CHECK(Calls(lines, "rewire.transpose {perm=[0, 2, 3, 1]}"));
  CHECK_FALSE(Calls(lines, "rewire.requantize"));
}

TEST_CASE("pack-integers: depthwise QLinearConv") {
  for (const std::int64_t rows : {3, 1}) {
    onnx::ModelProto model = Quantized({1, 2, 5, 5});
    onnx::GraphProto* graph = model.mutable_graph();
    AddWhole(graph, "w", {2, 1, rows, 3}, kU8);
    AddFloats(graph, "ws", {2}, {0.5F, 0.25F});
    AddWhole(graph, "wz", {2}, kU8, 128, 0);
    AddWhole(graph, "b", {2}, kI32, -4000, 3000);
    AddInt(AddNode(graph, "QLinearConv", {"xq", "xs", "xz", "w", "ws", "wz", "xs", "xz", "b"}, "yq"), "group",
           2);
    AddNode(graph, "DequantizeLinear", {"yq", "xs", "xz"}, "y");
    const Lines lines = After("pack-integers", model, {1, 2, 5, 5});
    // The members of a quad are rows, or the positions of the only one.
    CHECK(Calls(lines, rows == 3 ? "order=\"OI\", segments=3}" : "order=\"OI\", segments=1}"));
    CHECK(Calls(lines, "rewire.packed.depthwise_integer {channels=2, kernel_shape=["));
    CHECK_FALSE(Calls(lines, "rewire.requantize"));
  }
}

TEST_CASE("pack-integers: what it leaves") {
  onnx::ModelProto model = Quantized({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWhole(graph, "w", {3, 4}, kU8);
  onnx::NodeProto* product = AddNode(graph, "MatMulInteger", {"xq", "w"}, "sums");
  SECTION("weights that are computed") {
    AddFloats(graph, "wf", {3, 4}, std::vector<float>(12, 3.0F));
    AddNode(graph, "QuantizeLinear", {"wf", "xs", "xz"}, "wq");
    product->set_input(1, "wq");
    graph->mutable_node()->SwapElements(1, 2);
  }
  SECTION("a zero for each row") {
    AddWhole(graph, "rows", {2}, kU8, 1, 1);
    product->add_input("rows");
  }
  AddInt(AddNode(graph, "Cast", {"sums"}, "y"), "to", onnx::TensorProto::FLOAT);
  CHECK_FALSE(RunPass("pack-integers", model, {2, 3}).changes());
}

}  // namespace rewire::test
