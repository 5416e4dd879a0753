// SPDX-License-Identifier: Apache-2.0
// Passes over what lies between the products of quantized models.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {

TEST_CASE("dequantize-late: behind what moves or selects elements") {
  onnx::ModelProto model = Quantized({1, 2, 4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  SECTION("a pool and a transpose") {
    AddIntList(AddNode(graph, "MaxPool", {"xd"}, "pooled"), "kernel_shape", {2, 2});
    AddIntList(AddNode(graph, "Transpose", {"pooled"}, "y"), "perm", {0, 2, 3, 1});
    const Lines lines = After("dequantize-late", model, {1, 2, 4, 4});
    REQUIRE(lines.size() == 5);
    CHECK_THAT(lines[1], Catch::StartsWith("%4 = rewire.max_pool"));
    CHECK_THAT(lines[2], Catch::StartsWith("%5 = rewire.transpose"));
    CHECK(lines[3] == "%6 = rewire.dequantize_linear(%5, @1, @2)");
  }
  SECTION("not behind a pool of means") {
    AddIntList(AddNode(graph, "AveragePool", {"xd"}, "y"), "kernel_shape", {2, 2});
    CHECK_FALSE(RunPass("dequantize-late", model, {1, 2, 4, 4}).changes());
  }
  SECTION("not where the floats are read too") {
    AddIntList(AddNode(graph, "Transpose", {"xd"}, "moved"), "perm", {0, 1, 3, 2});
    AddNode(graph, "Add", {"xd", "moved"}, "y");
    CHECK_FALSE(RunPass("dequantize-late", model, {1, 2, 4, 4}).changes());
  }
  SECTION("not with a scale for each channel") {
    AddFloats(graph, "scales", {2}, {1, 2});
    AddWhole(graph, "zeros", {2}, kU8, 0, 1);
    graph->mutable_node(1)->set_input(1, "scales");
    graph->mutable_node(1)->set_input(2, "zeros");
    AddIntList(AddNode(graph, "MaxPool", {"xd"}, "y"), "kernel_shape", {2, 2});
    CHECK_FALSE(RunPass("dequantize-late", model, {1, 2, 4, 4}).changes());
  }
}

TEST_CASE("fuse-elementwise: conversions of bytes around what lies between") {
  onnx::ModelProto model = Quantized({3, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "ys", {}, {0.75F});
  AddWhole(graph, "yz", {}, kU8, 9);
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "a");
  const auto finish = [&](const std::string& from) {
    AddNode(graph, "QuantizeLinear", {from, "ys", "yz"}, "sq");
    AddNode(graph, "DequantizeLinear", {"sq", "ys", "yz"}, "y");
    return After("fuse-elementwise", model, {3, 4});
  };
  SECTION("in front and behind; bytes in between stay") {
    AddNode(graph, "DequantizeLinear", {"xq", "ys", "yz"}, "b");
    AddNode(graph, "Mul", {"a", "b"}, "product");
    const Lines lines = finish("product");
    CHECK(Calls(lines,
                "rewire.fused {program=\"dequantize x0 0.5 3; dequantize x0 0.75 9; mul r0 r1; "
                "quantize r2 0.75 9\"}"));
    CHECK(Calls(lines, "rewire.dequantize_linear"));
  }
  SECTION("of what is repeated") {
    AddIntList(AddNode(graph, "ReduceMax", {"a"}, "most"), "axes", {1});
    AddNode(graph, "QuantizeLinear", {"most", "ys", "yz"}, "mq");
    AddNode(graph, "DequantizeLinear", {"mq", "ys", "yz"}, "b");
    AddNode(graph, "DequantizeLinear", {"xq", "ys", "yz"}, "c");
    AddNode(graph, "Sub", {"c", "b"}, "difference");
    CHECK(Calls(finish("difference"),
                "rewire.fused {program=\"dequantize x0 0.75 9; dequantize x1 0.75 9; "
                "sub r1 r0; quantize r2 0.75 9\"}"));
  }
  SECTION("not with a scale for each channel") {
    AddFloats(graph, "scales", {4}, {1, 2, 3, 4});
    AddWhole(graph, "zeros", {4}, kU8, 0, 1);
    AddNode(graph, "DequantizeLinear", {"xq", "scales", "zeros"}, "b");
    AddNode(graph, "Neg", {"b"}, "y");
    CHECK_FALSE(Calls(After("fuse-elementwise", model, {3, 4}), "rewire.fused {program=\"dequantize"));
  }
}

TEST_CASE("fuse-quantized-add: a sum between integers") {
  onnx::ModelProto model = Quantized({3, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "ys", {}, {0.75F});
  AddWhole(graph, "yz", {}, kU8, 9);
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "a");
  AddNode(graph, "DequantizeLinear", {"xq", "ys", "yz"}, "b");
  onnx::NodeProto* add = AddNode(graph, "Add", {"a", "b"}, "sum");
  const auto finish = [&](const std::string& from) {
    AddNode(graph, "QuantizeLinear", {from, "ys", "yz"}, "sq");
    AddNode(graph, "DequantizeLinear", {"sq", "ys", "yz"}, "y");
    return After("fuse-quantized-add", model, {3, 4});
  };
  const std::string kernel =
      "rewire.add_quantized {a_scale=0.5, a_zero=3, b_scale=0.75, b_zero=9, scale=0.75, zero=9";
  SECTION("as it is") { CHECK(Calls(finish("sum"), kernel + "}")); }
  SECTION("not with a scale below 0") {
    AddFloats(graph, "negative", {}, {-0.75F});
    graph->mutable_node(1)->set_input(1, "negative");
    CHECK_FALSE(Calls(finish("sum"), "rewire.add_quantized"));
  }
  SECTION("behind an activation") {
    AddNode(graph, "Relu", {"sum"}, "positive");
    CHECK(Calls(finish("positive"), kernel + ", least=9}"));
  }
  SECTION("not of one tensor that is no integers") {
    add->set_input(1, "x");
    CHECK_FALSE(Calls(finish("sum"), "rewire.add_quantized"));
  }
  SECTION("not of tensors that are broadcast") {
    AddWhole(graph, "row", {4}, kU8);
    graph->mutable_node(2)->set_input(0, "row");
    CHECK_FALSE(Calls(finish("sum"), "rewire.add_quantized"));
  }
  SECTION("not where something lies in between") {
    AddNode(graph, "Neg", {"sum"}, "negative");
    CHECK_FALSE(Calls(finish("negative"), "rewire.add_quantized"));
  }
}

TEST_CASE("map-bytes: what is a function of a byte") {
  onnx::ModelProto model = Quantized({3, 40}, kI8);
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "ys", {}, {0.125F});
  AddWhole(graph, "yz", {}, kU8, 9);
  AddFloats(graph, "factor", {1, 1}, {0.3F});
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  const auto finish = [&](const std::string& from) {
    AddNode(graph, "QuantizeLinear", {from, "ys", "yz"}, "sq");
    AddNode(graph, "DequantizeLinear", {"sq", "ys", "yz"}, "y");
    return RunPass("map-bytes", model, {3, 40});
  };
  SECTION("an activation with a step of bytes in it") {
    AddNode(graph, "Sigmoid", {"xd"}, "gate");
    AddNode(graph, "QuantizeLinear", {"gate", "ys", "yz"}, "gq");
    AddNode(graph, "DequantizeLinear", {"gq", "ys", "yz"}, "gd");
    AddNode(graph, "Mul", {"xd", "gd"}, "swish");
    AddNode(graph, "Mul", {"swish", "factor"}, "scaled");
    const Lines after = finish("scaled").after;
    // Eight lines of what runs once, three of each run, and the output.
    REQUIRE(after.size() == 12);
    CHECK(after[0] == "once:");
    CHECK_THAT(after[8], Catch::Contains("rewire.quantize_linear"));
    CHECK_THAT(after[9], Catch::Contains("rewire.map_bytes"));
    CHECK_THAT(after[10], Catch::Contains("rewire.dequantize_linear"));
  }
  SECTION("another scale") { CHECK(Calls(finish("xd").after, "rewire.map_bytes")); }
  SECTION("not with a constant for each column") {
    AddFloats(graph, "row", {40}, std::vector<float>(40, 2));
    AddNode(graph, "Mul", {"xd", "row"}, "scaled");
    CHECK_FALSE(finish("scaled").changes());
  }
  SECTION("not of two tensors") {
    AddNode(graph, "QuantizeLinear", {"x", "ys", "xz"}, "zq");
    AddNode(graph, "DequantizeLinear", {"zq", "ys", "xz"}, "zd");
    AddNode(graph, "Mul", {"xd", "zd"}, "product");
    CHECK_FALSE(finish("product").changes());
  }
  SECTION("not where elements move") {
    AddIntList(AddNode(graph, "Transpose", {"xd"}, "moved"), "perm", {1, 0});
    AddNode(graph, "Transpose", {"moved"}, "back");
    AddNode(graph, "Add", {"xd", "back"}, "sum");
    CHECK_FALSE(finish("sum").changes());
  }
  SECTION("not of another shape") {
    AddFloats(graph, "plane", {1, 1, 1}, {2});
    AddNode(graph, "Mul", {"xd", "plane"}, "deeper");
    CHECK_FALSE(finish("deeper").changes());
  }
}

// x quantized, through an integer convolution of two groups of 2 channels to the floats y.
onnx::ModelProto Groups(std::int64_t taps) {
  onnx::ModelProto model = Quantized({1, 4, 8, 8});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWhole(graph, "w", {4, 2, taps, taps}, kU8, 5, 41);
  AddWhole(graph, "wz", {4}, kU8, 0, 80);
  AddNode(graph, "ConvInteger", {"xq", "w", "xz", "wz"}, "sums");
  AddInt(graph->mutable_node(1), "group", 2);
  AddInt(AddNode(graph, "Cast", {"sums"}, "y"), "to", onnx::TensorProto::FLOAT);
  return model;
}

TEST_CASE("integer-groups: sums that f32 holds, and longer ones") {
  const Lines lines = After("integer-groups", Groups(3), {1, 4, 8, 8});
  REQUIRE(lines.size() == 6);
  CHECK_THAT(lines[1], Catch::StartsWith("%5 = rewire.dequantize_linear(%3, "));
  CHECK_THAT(lines[2], Catch::StartsWith("%7 = rewire.conv {"));
  CHECK_THAT(lines[3], Catch::StartsWith("%8 = rewire.cast"));
  // 2 * 11 * 11 products are few enough, 2 * 12 * 12 too many.
  onnx::ModelProto model = Groups(11);
  onnx::NodeProto* conv = model.mutable_graph()->mutable_node(1);
  AddIntList(conv, "pads", {4, 4, 4, 4});
  CHECK(RunPass("integer-groups", model, {1, 4, 8, 8}).changes());
  model = Groups(12);
  AddIntList(model.mutable_graph()->mutable_node(1), "pads", {4, 4, 4, 4});
  CHECK_FALSE(RunPass("integer-groups", model, {1, 4, 8, 8}).changes());
}

TEST_CASE("integer-groups: a size that has a symbol of its own is that of the convolution of floats") {
  onnx::ModelProto model = Groups(3);
  onnx::TypeProto* type = model.mutable_graph()->mutable_input(0)->mutable_type();
  type->mutable_tensor_type()->mutable_shape()->mutable_dim(3)->set_dim_param(std::string(100, 'n'));
  CHECK(CompileProto(model).message.empty());  // which checks the graph behind each pass
}

TEST_CASE("fuse-quantized-prelu: slopes along the last axis") {
  const auto finish = [](const std::vector<std::int64_t>& slopes, bool once) {
    onnx::ModelProto model = Quantized({2, 3});
    onnx::GraphProto* graph = model.mutable_graph();
    AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
    AddFloats(graph, "slope", slopes,
              std::vector<float>(slopes == std::vector<std::int64_t>{3} ? 3 : 2, 0.5F));
    AddFloats(graph, "ys", {}, {0.75F});
    AddWhole(graph, "yz", {}, kU8, 9);
    AddNode(graph, "PRelu", {"xd", "slope"}, "activated");
    AddNode(graph, "QuantizeLinear", {"activated", "ys", "yz"}, "yq");
    AddNode(graph, "DequantizeLinear", {"yq", "ys", "yz"}, once ? "y" : "yd");
    if (!once) AddNode(graph, "Add", {"yd", "activated"}, "y");
    return After("fuse-quantized-prelu", model, {2, 3});
  };
  const Lines lines = finish({3}, true);
  CHECK(Calls(lines, "rewire.prelu_quantized {x_scale=0.5, x_zero=3, scale=0.75, zero=9}"));
  CHECK_FALSE(Calls(lines, "rewire.prelu("));
  CHECK_FALSE(Calls(finish({2, 1}, true), "rewire.prelu_quantized"));
  CHECK_FALSE(Calls(finish({3}, false), "rewire.prelu_quantized"));
}

TEST_CASE("fuse-quantized-mean: along successive axes") {
  const auto finish = [](const std::vector<std::int64_t>& axes, bool once, bool transposed = false) {
    onnx::ModelProto model = Quantized({2, 3, 20, 20});
    onnx::GraphProto* graph = model.mutable_graph();
    if (transposed) AddIntList(AddNode(graph, "Transpose", {"xq"}, "moved"), "perm", {0, 2, 3, 1});
    AddNode(graph, "DequantizeLinear", {transposed ? "moved" : "xq", "xs", "xz"}, "xd");
    AddFloats(graph, "ys", {}, {0.75F});
    AddWhole(graph, "yz", {}, kU8, 9);
    AddIntList(AddNode(graph, "ReduceMean", {"xd"}, "mean"), "axes", axes);
    AddNode(graph, "QuantizeLinear", {"mean", "ys", "yz"}, "yq");
    AddNode(graph, "DequantizeLinear", {"yq", "ys", "yz"}, once ? "y" : "yd");
    if (!once) AddNode(graph, "Add", {"yd", "mean"}, "y");
    return After("fuse-quantized-mean", model, {2, 3, 20, 20});
  };
  const Lines lines = finish({2, 3}, true);
  const std::string of_image =
      "rewire.mean_quantized {axes=[2, 3], x_scale=0.5, x_zero=3, scale=0.75, zero=9}";
  CHECK(Calls(lines, of_image));
  CHECK_FALSE(Calls(lines, "rewire.reduce_mean"));
  // A transpose in front is none of the mean's business, but where axes that stay change places.
  CHECK(Calls(finish({1, 2}, true, true), of_image));
  CHECK_FALSE(Calls(finish({1, 2}, true, true), "rewire.transpose"));
  CHECK(Calls(finish({1, 2, 3}, true, true), "rewire.mean_quantized {axes=[1, 2, 3]"));
  CHECK(Calls(finish({0}, true, true), "rewire.transpose"));
  CHECK(Calls(finish({0, 1}, true), "rewire.mean_quantized"));
  CHECK_FALSE(Calls(finish({1, 3}, true), "rewire.mean_quantized"));
  CHECK_FALSE(Calls(finish({2, 3}, false), "rewire.mean_quantized"));
}

TEST_CASE("channels-last: quantized images through casts, terms and requantization") {
  onnx::ModelProto model = ModelOf({1, 4, 4, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "xs", {}, {0.5F});
  AddWhole(graph, "xz", {}, kU8, 3);
  AddFloats(graph, "ws", {3}, {0.5F, 0.25F, 1});
  AddWhole(graph, "b", {3}, kI32, -4, 3);
  AddWhole(graph, "w", {3, 1, 1, 1}, kI8, 1, 1);
  AddWhole(graph, "wz", {}, kI8, 0);
  AddIntList(AddNode(graph, "Transpose", {"x"}, "first"), "perm", {0, 3, 1, 2});
  AddNode(graph, "QuantizeLinear", {"first", "xs", "xz"}, "xq");
  // A scale that is computed: the convolution gives sums.
  AddInt(AddNode(graph, "ReduceMax", {"x"}, "ys"), "keepdims", 0);
  AddInt(AddNode(graph, "QLinearConv", {"xq", "xs", "xz", "w", "ws", "wz", "ys", "xz", "b"}, "yq"), "group",
         3);
  AddNode(graph, "DequantizeLinear", {"yq", "xs", "xz"}, "y");
  // With all passes but arena: no transposes are left but the last one.
  Lines lines;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& at, const std::string& text) {
    if (at == "channels-last") lines = {text};
  };
  REQUIRE(CompileProto(model, options).message.empty());
  REQUIRE(lines.size() == 1);
  const std::string& text = lines[0];
  CHECK_THAT(text, Catch::Contains("rewire.packed.depthwise_integer") &&
                       Catch::Contains("rewire.requantize {axis=3}"));
  INFO(text);
  CHECK(text.find("rewire.transpose", text.find("rewire.quantize_linear")) == text.rfind("rewire.transpose"));
}

namespace {

// x: f32[2, 3] by weights of bytes [3, 4], or [4, 3] if each row is a column of the product.
enum class Stored { kQuantized, kCast, kUnsigned, kWide, kRows };
onnx::ModelProto ByteProduct(Stored how) {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  const bool is_unsigned = how == Stored::kUnsigned || how == Stored::kWide, rows = how == Stored::kRows;
  const Shape shape = rows ? Shape{4, 3} : Shape{3, 4};
  const auto type = is_unsigned ? onnx::TensorProto::UINT8 : onnx::TensorProto::INT8;
  AddWeight(graph, "bytes", type, shape)
      ->set_raw_data(std::string("\x05\x7f\xfd\x02\x80\x10\x20\x60\x01\xf0\x0a\x0b", 12));
  AddFloats(graph, "scales", {4}, {0.5F, 2, 1, 0.25F});
  AddFloats(graph, "b", {4}, {1, 2, 3, 4});
  if (how == Stored::kCast) {
    AddInt(AddNode(graph, "Cast", {"bytes"}, "floats"), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "Mul", {"floats", "scales"}, "w");
  } else {
    const std::string zero(4, how == Stored::kWide ? '\x0a' : '\x80');
    if (is_unsigned) AddWeight(graph, "zero", type, {4})->set_raw_data(zero);
    onnx::NodeProto* node = AddNode(graph, "DequantizeLinear", {"bytes", "scales"}, "w");
    if (is_unsigned) node->add_input("zero");
    AddInt(node, "axis", rows ? 0 : 1);
  }
  if (rows) {
    AddInt(AddNode(graph, "Gemm", {"x", "w", "b"}, "sum"), "transB", 1);
  } else {
    AddNode(graph, "MatMul", {"x", "w"}, "product");
    AddNode(graph, "Add", {"product", "b"}, "sum");
  }
  AddNode(graph, "Relu", {"sum"}, "y");
  return model;
}

std::string AfterPackBytes(const onnx::ModelProto& model) {
  std::string lines;
  for (const std::string& line : RunPass("pack-bytes", model, {2, 3}).after) lines += line + "\n";
  return lines;
}

}  // namespace

TEST_CASE("pack-bytes: weights that the model has in bytes, in each form, with what follows the product") {
  const Stored how = GENERATE(Stored::kQuantized, Stored::kCast, Stored::kUnsigned, Stored::kRows);
  const std::string lines = AfterPackBytes(ByteProduct(how));
  INFO(lines);
  CHECK_THAT(lines, Catch::Contains("rewire.packed.pack_integers"));
  CHECK_THAT(lines, Catch::Contains("rewire.packed.matmul_bytes {columns=4, activation=\"relu\"}"));
  CHECK(lines.find("rewire.dequantize_linear") == std::string::npos);
}

TEST_CASE("pack-bytes: what it leaves") {
  SECTION("differences from the zero that are no bytes") {
    CHECK_THAT(AfterPackBytes(ByteProduct(Stored::kWide)), !Catch::Contains("matmul_bytes"));
  }
  SECTION("scales of the rows of the weights") {
    onnx::ModelProto model = ByteProduct(Stored::kQuantized);
    model.mutable_graph()->mutable_initializer(1)->set_dims(0, 3);
    model.mutable_graph()->mutable_initializer(1)->mutable_float_data()->RemoveLast();
    model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_i(0);
    CHECK_THAT(AfterPackBytes(model), !Catch::Contains("matmul_bytes"));
  }
  SECTION("weights of floats") {
    onnx::ModelProto model = ModelOf({2, 3});
    AddFloats(model.mutable_graph(), "w", {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "product");
    AddNode(model.mutable_graph(), "Relu", {"product"}, "y");
    CHECK_THAT(AfterPackBytes(model), !Catch::Contains("matmul_bytes"));
  }
}

// x: f32[5, 1, 3] through an LSTM of 4 units whose weights were bytes, as DynamicQuantizeLSTM is lowered.
onnx::ModelProto LstmOfBytes(float zero, bool peepholes = false) {
  onnx::ModelProto model = ModelOf({5, 1, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  for (const std::string name : {"w", "r"}) {
    const std::int64_t depth = name == "w" ? 3 : 4;
    AddWeight(graph, name + ".stored", onnx::TensorProto::INT8, {1, depth, 16})
        ->set_raw_data(std::string(static_cast<std::size_t>(16 * depth), '\x7f'));
    AddFloats(graph, name + ".zero", {1, 1, 1}, {zero});
    AddFloats(graph, name + ".scale", {1, 1, 1}, {0.01F});
    AddInt(AddNode(graph, "Cast", {name + ".stored"}, name + ".floats"), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "Sub", {name + ".floats", name + ".zero"}, name + ".less");
    AddNode(graph, "Mul", {name + ".less", name + ".scale"}, name + ".turned");
    AddIntList(AddNode(graph, "Transpose", {name + ".turned"}, name), "perm", {0, 2, 1});
  }
  std::vector<std::string> inputs = {"x", "w", "r"};
  if (peepholes) {
    AddFloats(graph, "p", {1, 12}, std::vector<float>(12, 0.5F));
    inputs.insert(inputs.end(), {"", "", "", "", "p"});
  }
  AddInt(AddNode(graph, "LSTM", inputs, "y"), "hidden_size", 4);
  return model;
}

TEST_CASE("pack-bytes: weights of an LSTM that the model has in bytes") {
  const auto after = [](const onnx::ModelProto& model) {
    std::string lines;
    for (const std::string& line : RunPass("pack-bytes", model, {5, 1, 3}).after) lines += line + "\n";
    return lines;
  };
  const std::string lines = after(LstmOfBytes(1));
  INFO(lines);
  CHECK_THAT(lines, Catch::Contains("rewire.packed.pack_integers {order=\"OI\", segments=1}"));
  CHECK_THAT(lines, Catch::Contains("rewire.lstm_bytes {direction=\"forward\", layout=0, hidden_size=4}"));
  // A difference of 128 is no byte, and peepholes are floats.
  CHECK_THAT(after(LstmOfBytes(-1)), !Catch::Contains("lstm_bytes"));
  CHECK_THAT(after(LstmOfBytes(1, true)), !Catch::Contains("lstm_bytes"));
  // Nor is what a zero with a fraction leaves.
  CHECK_THAT(after(LstmOfBytes(0.5F)), !Catch::Contains("lstm_bytes"));
}

}  // namespace rewire::test
