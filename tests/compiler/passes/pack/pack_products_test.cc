// SPDX-License-Identifier: Apache-2.0
// Passes that choose kernels of packed weights, and the layout that these work in.
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <regex>
#include <string>

#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

std::vector<float> Counts(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), -3.0F);
  for (float& value : values) value /= static_cast<float>(count);
  return values;
}

onnx::ModelProto Product() {
  onnx::ModelProto model = ModelOf({2, 3});
  AddFloats(model.mutable_graph(), "w", {3, 4}, Counts(12));
  AddFloats(model.mutable_graph(), "b", {4}, {1, 2, 3, 4});
  AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "product");
  return model;
}

TEST_CASE("pack-products: a product by a constant with the bias and the activation behind it") {
  onnx::ModelProto model = Product();
  AddNode(model.mutable_graph(), "Add", {"b", "product"}, "sum");
  AddNode(model.mutable_graph(), "Relu", {"sum"}, "y");
  CHECK(RunPass("pack-products", model, {2, 3}).after ==
        Lines{"once:", "%2 = rewire.packed.pack {order=\"IO\"}(@1)",
              "%4 = rewire.packed.matmul {columns=4, activation=\"relu\"}(%0, %2, @3)", "output y = %4"});
}

TEST_CASE("pack-products: Gemm as it is and transposed") {
  const bool transposed = GENERATE(false, true);
  onnx::ModelProto model = Product();
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::NodeProto* gemm = graph->mutable_node(0);
  gemm->set_op_type("Gemm");
  gemm->add_input("b");
  gemm->set_output(0, "y");
  if (transposed) AddInt(gemm, "transB", 1);
  if (transposed) graph->mutable_initializer(0)->set_dims(0, 4);
  if (transposed) graph->mutable_initializer(0)->set_dims(1, 3);
  const std::string order = transposed ? "OI" : "IO";
  CHECK(RunPass("pack-products", model, {2, 3}).after ==
        Lines{"once:", "%2 = rewire.packed.pack {order=\"" + order + "\"}(@1)",
              "%4 = rewire.packed.matmul {columns=4}(%0, %2, @3)", "output y = %4"});
}

TEST_CASE("pack-products: factors that are powers of two are those of Gemm's constants") {
  const float alpha = GENERATE(-2.0F, 0.5F, 0.7F), beta = GENERATE(1.0F, 4.0F, 0.7F);
  onnx::ModelProto model = Product();
  onnx::NodeProto* gemm = model.mutable_graph()->mutable_node(0);
  gemm->set_op_type("Gemm");
  gemm->add_input("b");
  gemm->set_output(0, "y");
  AddFloat(gemm, "alpha", alpha);
  AddFloat(gemm, "beta", beta);
  CAPTURE(alpha, beta);
  const bool packs = alpha != 0.7F && beta != 0.7F;
  CHECK(KernelsOf(RunPass("pack-products", model, {2, 3}).after) ==
        Lines{packs ? "rewire.packed.matmul" : "rewire.gemm"});
}

// The dtypes of the panels of packed weights.
Lines PanelTypes(const onnx::ModelProto& model) {
  Lines types;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& at, const std::string& text) {
    static const std::regex kPanels(R"(%\d+: ([a-z0-9]+)\[[^\]]*\] = rewire\.packed\.pack)");
    if (at != "pack-products") return;
    for (std::sregex_iterator found(text.begin(), text.end(), kPanels), end; found != end; ++found)
      types.push_back((*found)[1]);
  };
  REQUIRE(CompileProto(model, options).message.empty());
  return types;
}

// Weights of this dtype, 0.5, 1, 0.5, ..., as floats under the name "w".
void AddWidened(onnx::GraphProto* graph, onnx::TensorProto::DataType dtype, const Shape& dims) {
  const bool halves = dtype == onnx::TensorProto::FLOAT16;
  onnx::TensorProto* weights = AddWeight(graph, halves ? "half" : "w", dtype, dims);
  const std::int64_t count = std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < count; ++i) {
    if (halves)
      weights->add_int32_data(i % 2 == 0 ? 0x3800 : 0x3C00);
    else
      weights->add_float_data(i % 2 == 0 ? 0.5F : 1.0F);
  }
  if (halves) AddInt(AddNode(graph, "Cast", {"half"}, "w"), "to", onnx::TensorProto::FLOAT);
}

TEST_CASE("pack-products: weights that a model has as f16 make panels of f16") {
  const auto [dtype, expected] = GENERATE(table<onnx::TensorProto::DataType, std::string>(
      {{onnx::TensorProto::FLOAT16, "f16"}, {onnx::TensorProto::FLOAT, "f32"}}));
  SECTION("of a product") {
    onnx::ModelProto model = ModelOf({2, 32});
    AddWidened(model.mutable_graph(), dtype, {32, 16});
    AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "y");
    CHECK(PanelTypes(model) == Lines{expected});
  }
  SECTION("of a convolution") {
    onnx::ModelProto model = ModelOf({1, 8, 6, 6});
    AddWidened(model.mutable_graph(), dtype, {16, 8, 3, 3});
    AddNode(model.mutable_graph(), "Conv", {"x", "w"}, "y");
    CHECK(PanelTypes(model) == Lines{expected});
  }
}

// Behind six of these halvings a height is an expression so long that the compiler gives it a name of its
// own.
TEST_CASE("pack-products: a convolution whose size has a name keeps the expression of it") {
  onnx::ModelProto model = ModelOf({1, 2, "H", 8});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {2, 2, 3, 3}, Counts(36));
  std::string value = "x";
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    onnx::NodeProto* conv = AddNode(graph, "Conv", {value, "w"}, "conv" + number);
    AddIntList(conv, "pads", {1, 1, 1, 1});
    AddIntList(conv, "strides", {2, 1});
    value = i == 5 ? "y" : "relu" + number;
    AddNode(graph, "Relu", {"conv" + number}, value);
  }
  const PassRun run = RunPass("pack-products", model, {1, 2, 70, 8});
  CHECK(run.after.back().starts_with("output y"));
  CHECK(run.changes());
}

TEST_CASE("pack-products: what is not packed, and what stays behind a packed product") {
  onnx::ModelProto model = Product();
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("weights that are computed") {
    graph->mutable_node(0)->set_input(1, "v");
    AddNode(graph, "Neg", {"w"}, "v");
    graph->mutable_node()->SwapElements(0, 1);
    AddNode(graph, "Relu", {"product"}, "y");
    CHECK_FALSE(RunPass("pack-products", model, {2, 3}).changes());
  }
  SECTION("a scaled Gemm") {
    graph->mutable_node(0)->set_op_type("Gemm");
    graph->mutable_node(0)->set_output(0, "y");
    AddFloat(graph->mutable_node(0), "alpha", 0.7F);
    CHECK_FALSE(RunPass("pack-products", model, {2, 3}).changes());
  }
  SECTION("a term for each row") {
    AddFloats(graph, "rows", {2, 1}, {1, 2});
    AddNode(graph, "Add", {"product", "rows"}, "y");
    CHECK(RunPass("pack-products", model, {2, 3}).after ==
          Lines{"once:", "%2 = rewire.packed.pack {order=\"IO\"}(@1)",
                "%3 = rewire.packed.matmul {columns=4}(%0, %2)", "%5 = rewire.add(%3, @4)", "output y = %5"});
  }
  SECTION("a bias, of a product that something else reads too") {
    AddNode(graph, "Add", {"product", "b"}, "sum");
    AddNode(graph, "Mul", {"sum", "product"}, "y");
    CHECK(RunPass("pack-products", model, {2, 3}).after ==
          Lines{"once:", "%2 = rewire.packed.pack {order=\"IO\"}(@1)",
                "%3 = rewire.packed.matmul {columns=4}(%0, %2)", "%5 = rewire.add(%3, @4)",
                "%6 = rewire.mul(%5, %3)", "output y = %6"});
  }
}

// x: f32[2, 4] by [4, 4], and another term.
onnx::ModelProto Residual(const std::string& term) {
  onnx::ModelProto model = ModelOf({2, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {4, 4}, Counts(16));
  AddNode(graph, "MatMul", {"x", "w"}, "product");
  AddIntList(AddNode(graph, "ReduceMean", {"x"}, "mean"), "axes", {1});
  AddNode(graph, "Add", {term, "product"}, "sum");
  AddNode(graph, "Relu", {"sum"}, "y");
  return model;
}

// The graph behind the pass, with all passes before it.
std::string WithResiduals(const onnx::ModelProto& model) {
  std::string lines;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& at, const std::string& text) {
    if (at == "add-residuals") lines = text;
  };
  REQUIRE(CompileProto(model, options).message.empty());
  return lines;
}

TEST_CASE("add-residuals: a term of the product's shape, and the activation behind") {
  const std::string lines = WithResiduals(Residual("x"));
  INFO(lines);
  CHECK(lines.find("rewire.add") == std::string::npos);
  CHECK(lines.find("rewire.relu") == std::string::npos);
  CHECK_THAT(lines, Catch::Contains("rewire.packed.matmul {columns=4, activation=\"relu\"}"));
}

TEST_CASE("add-residuals: sums that it leaves") {
  CHECK_THAT(WithResiduals(Residual("mean")), Catch::Contains("rewire.add"));  // which broadcasts
  onnx::ModelProto model = Residual("x");  // of a product that is read elsewhere
  model.mutable_graph()->mutable_node(3)->set_output(0, "relu");
  AddNode(model.mutable_graph(), "Mul", {"relu", "product"}, "y");
  CHECK_THAT(WithResiduals(model), Catch::Contains("rewire.add"));
}

TEST_CASE("fuse-swish: x sigmoid(x)") {
  onnx::ModelProto model = ModelOf({2, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Sigmoid", {"x"}, "s");
  SECTION("of one x") {
    AddNode(graph, "Mul", {"s", "x"}, "y");
    CHECK(RunPass("fuse-swish", model, {2, 4}).after == Lines{"%1 = rewire.swish(%0)", "output y = %1"});
  }
  SECTION("of another") {
    AddNode(graph, "Neg", {"x"}, "n");
    AddNode(graph, "Mul", {"s", "n"}, "y");
    CHECK_FALSE(RunPass("fuse-swish", model, {2, 4}).changes());
  }
}

// A convolution of x: f32[1, 4, 5, 5] by [outputs, inputs, 3, 3].
onnx::ModelProto Conv(std::int64_t outputs, std::int64_t inputs, std::int64_t groups) {
  onnx::ModelProto model = ModelOf({1, 4, 5, 5});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {outputs, inputs, 3, 3}, Counts(static_cast<std::size_t>(outputs * inputs * 9)));
  onnx::NodeProto* conv = AddNode(graph, "Conv", {"x", "w"}, "conv");
  AddInt(conv, "group", groups);
  AddIntList(conv, "pads", {1, 1, 1, 1});
  return model;
}

TEST_CASE("pack-products: a convolution, between transposes") {
  onnx::ModelProto model = Conv(8, 4, 1);
  AddNode(model.mutable_graph(), "Sigmoid", {"conv"}, "y");
  const std::string conv =
      "%4 = rewire.packed.conv {channels=8, kernel_shape=[3, 3], strides=[1, 1], dilations=[1, 1], "
      "pads=[1, 1, 1, 1], "
      "activation=\"sigmoid\"}(%3, %2)";
  CHECK(RunPass("pack-products", model, {1, 4, 5, 5}).after ==
        Lines{"once:", "%2 = rewire.packed.pack {order=\"OI\"}(@1)",
              "%3 = rewire.transpose {perm=[0, 2, 3, 1]}(%0)", conv,
              "%5 = rewire.transpose {perm=[0, 3, 1, 2]}(%4)", "output y = %5"});
}

TEST_CASE("winograd: windows of 3 x 3, with weights that are made when a program is loaded") {
  const auto run = [](std::int64_t channels, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
    onnx::ModelProto model = ModelOf({1, channels, size, size});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "w", {8, channels, 3, 3}, Counts(static_cast<std::size_t>(8 * channels * 9)));
    onnx::NodeProto* conv = AddNode(graph, "Conv", {"x", "w"}, "conv");
    AddIntList(conv, "pads", {1, 1, 1, 1});
    AddIntList(conv, "strides", {1, stride});
    AddIntList(conv, "dilations", {dilation, 1});
    AddNode(graph, "Relu", {"conv"}, "y");
    return RunPass("winograd", model, {1, channels, size, size});
  };
  const std::string convolution =
      "%4 = rewire.packed.winograd {channels=8, kernel_shape=[3, 3], strides=[1, 1], dilations=[1, 1], "
      "pads=[1, 1, 1, 1], activation=\"relu\"}(%3, %2)";
  CHECK(run(8, 5, 1, 1).after == Lines{"once:", "%2 = rewire.packed.winograd_weights(@1)",
                                       "%3 = rewire.transpose {perm=[0, 2, 3, 1]}(%0)", convolution,
                                       "%5 = rewire.transpose {perm=[0, 3, 1, 2]}(%4)", "output y = %5"});
  CHECK_FALSE(run(7, 5, 1, 1).changes());  // too few channels
  CHECK_FALSE(run(8, 4, 1, 1).changes());  // one tile
  CHECK_FALSE(run(8, 9, 2, 1).changes());
  CHECK(run(8, 9, 1, 2).changes());
  CHECK_FALSE(run(8, 12, 1, 5).changes());  // images of one position
}

TEST_CASE("winograd: small images do not wait for large weights") {
  const auto changes = [](std::int64_t channels, std::int64_t size) {
    onnx::ModelProto model = ModelOf({1, channels, size, size});
    const auto count = static_cast<std::size_t>(channels * channels * 9);
    AddFloats(model.mutable_graph(), "w", {channels, channels, 3, 3}, Counts(count));
    AddIntList(AddNode(model.mutable_graph(), "Conv", {"x", "w"}, "y"), "pads", {1, 1, 1, 1});
    return RunPass("winograd", model, {1, channels, size, size}).changes();
  };
  CHECK_FALSE(changes(256, 7));
  CHECK(changes(256, 14));
  CHECK(changes(128, 7));  // the second cache holds as many
}

TEST_CASE("pack-products: a convolution of each channel by itself") {
  onnx::ModelProto model = Conv(4, 1, 4);
  model.mutable_graph()->mutable_node(0)->set_output(0, "y");
  const std::string conv =
      "%4 = rewire.packed.depthwise {channels=4, kernel_shape=[3, 3], strides=[1, 1], dilations=[1, 1], "
      "pads=[1, 1, 1, 1]}(%3, %2)";
  CHECK(RunPass("pack-products", model, {1, 4, 5, 5}).after ==
        Lines{"once:", "%2 = rewire.transpose {perm=[1, 0]}(@1)",
              "%3 = rewire.transpose {perm=[0, 2, 3, 1]}(%0)", conv,
              "%5 = rewire.transpose {perm=[0, 3, 1, 2]}(%4)", "output y = %5"});
}

TEST_CASE("pack-products: several channels of each one by itself") {
  const auto lines = [](std::int64_t outputs) {
    onnx::ModelProto model = Conv(outputs, 1, 4);
    model.mutable_graph()->mutable_node(0)->set_output(0, "y");
    return RunPass("pack-products", model, {1, 4, 5, 5}).after;
  };
  const std::string conv =
      "%4 = rewire.packed.depthwise {channels=8, kernel_shape=[3, 3], strides=[1, 1], dilations=[1, 1], "
      "pads=[1, 1, 1, 1], multiplier=2}(%3, %2)";
  CHECK(lines(8).at(3) == conv);
  CHECK(KernelsOf(lines(20)) == Lines{"rewire.conv"});  // more would repeat the image too often
}

TEST_CASE("pack-products: convolutions that it leaves") {
  SECTION("of groups") {
    onnx::ModelProto model = Conv(8, 2, 2);
    model.mutable_graph()->mutable_node(0)->set_output(0, "y");
    CHECK_FALSE(RunPass("pack-products", model, {1, 4, 5, 5}).changes());
  }
  SECTION("by weights that are computed") {
    onnx::ModelProto model = Conv(8, 4, 1);
    model.mutable_graph()->mutable_node(0)->set_input(1, "v");
    model.mutable_graph()->mutable_node(0)->set_output(0, "y");
    AddNode(model.mutable_graph(), "Neg", {"w"}, "v");
    model.mutable_graph()->mutable_node()->SwapElements(0, 1);
    CHECK_FALSE(RunPass("pack-products", model, {1, 4, 5, 5}).changes());
  }
}

// x: f32[5, 1, 3] through a layer of 16 units.
onnx::ModelProto Recurrent(const std::string& type, std::int64_t gates, std::int64_t hidden,
                           std::int64_t directions = 1) {
  onnx::ModelProto model = ModelOf({5, 1, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  const auto count = static_cast<std::size_t>(directions * gates * hidden);
  AddFloats(graph, "w", {directions, gates * hidden, 3}, Counts(count * 3));
  AddFloats(graph, "r", {directions, gates * hidden, hidden},
            Counts(count * static_cast<std::size_t>(hidden)));
  onnx::NodeProto* node = AddNode(graph, type, {"x", "w", "r"}, "y");
  AddInt(node, "hidden_size", hidden);
  if (directions == 2) AddString(node, "direction", "bidirectional");
  return model;
}

TEST_CASE("pack-products: recurrent layers") {
  const Lines lstm = RunPass("pack-products", Recurrent("LSTM", 4, 16), {5, 1, 3}).after;
  CHECK(
      lstm ==
      Lines{
          "once:", "%2 = rewire.packed.pack {order=\"OI\"}(@1)", "%4 = rewire.packed.pack {order=\"OI\"}(@3)",
          "%5, %6, %7 = rewire.lstm {direction=\"forward\", layout=0, hidden_size=16, packed=1}(%0, %2, %4)",
          "output y = %5"});
  CHECK(RunPass("pack-products", Recurrent("GRU", 3, 16), {5, 1, 3}).changes());
  CHECK(RunPass("pack-products", Recurrent("RNN", 1, 16), {5, 1, 3}).changes());
}

TEST_CASE("pack-products: a GRU whose gates begin no panels") {
  onnx::ModelProto model = Recurrent("GRU", 3, 12);
  CHECK_FALSE(RunPass("pack-products", model, {5, 1, 3}).changes());
  // With the reset behind the product there is one product of all gates.
  AddInt(model.mutable_graph()->mutable_node(0), "linear_before_reset", 1);
  CHECK(RunPass("pack-products", model, {5, 1, 3}).changes());
}

TEST_CASE("pack-products: both directions of a recurrent layer") {
  const std::string layer =
      "%11, %12 = rewire.rnn {direction=\"bidirectional\", layout=0, hidden_size=16, packed=1}(%0, %5, %10)";
  CHECK(RunPass("pack-products", Recurrent("RNN", 1, 16, 2), {5, 1, 3}).after ==
        Lines{"once:", "%2 = rewire.packed.pack {order=\"OI\"}(@1)",
              "%4 = rewire.packed.pack {order=\"OI\"}(@3)", "%5 = rewire.concat {axis=0}(%2, %4)",
              "%7 = rewire.packed.pack {order=\"OI\"}(@6)", "%9 = rewire.packed.pack {order=\"OI\"}(@8)",
              "%10 = rewire.concat {axis=0}(%7, %9)", layer, "output y = %11"});
}

TEST_CASE("pack-onednn: convolutions of groups, where the library is there") {
  onnx::ModelProto model = Conv(8, 2, 2);
  AddNode(model.mutable_graph(), "Relu", {"conv"}, "y");
  const PassRun run = RunPass("pack-onednn", model, {1, 4, 5, 5});
  if (!KernelSet().AddLibrary("librewire_kernels_onednn.so")) {
    CHECK_FALSE(run.changes());
    return;
  }
  REQUIRE(run.after.size() == 4);
  CHECK_THAT(run.after[1], Catch::StartsWith("%2 = rewire.onednn.pack_conv {weights=[8, 2, 3, 3], group=2"));
  CHECK_THAT(run.after[2], Catch::StartsWith("%4 = rewire.onednn.conv {weights=[8, 2, 3, 3], group=2") &&
                               Catch::EndsWith("activation=\"relu\"}(%0, %2, @3)"));
}

TEST_CASE("pack-onednn: a convolution that is too small, and one by weights that are computed") {
  onnx::ModelProto model = Conv(4, 1, 4);
  SECTION("small") { model.mutable_graph()->mutable_node(0)->set_output(0, "y"); }
  SECTION("computed") {
    model = Conv(8, 2, 2);
    model.mutable_graph()->mutable_node(0)->set_input(1, "v");
    model.mutable_graph()->mutable_node(0)->set_output(0, "y");
    AddNode(model.mutable_graph(), "Neg", {"w"}, "v");
    model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  }
  CHECK_FALSE(RunPass("pack-onednn", model, {1, 4, 5, 5}).changes());
}

TEST_CASE("channels-last: images of one layout have nothing to move") {
  onnx::ModelProto model = Conv(8, 4, 1);
  AddNode(model.mutable_graph(), "Sigmoid", {"conv"}, "y");
  CHECK_FALSE(RunPass("channels-last", model, {1, 4, 5, 5}).changes());
}

// x with its channels last, so that it has an NHWC copy, and what follows it.
struct Image {
  onnx::ModelProto model = ModelOf({1, 4, 5, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  Image() { AddIntList(AddNode(graph, "Transpose", {"x"}, "first"), "perm", {0, 3, 1, 2}); }
  // To the layout of x again.
  Lines Finish(const std::string& name) {
    AddIntList(AddNode(graph, "Transpose", {name}, "y"), "perm", {0, 2, 3, 1});
    return RunPass("channels-last", model, {1, 4, 5, 3}).after;
  }
};

TEST_CASE("channels-last: what lies between two transposes") {
  Image image;
  SECTION("elements by themselves, and with a number for each channel") {
    AddFloats(image.graph, "channels", {3, 1, 1}, {1, 2, 3});
    AddNode(image.graph, "Relu", {"first"}, "a");
    AddNode(image.graph, "Mul", {"a", "channels"}, "b");
    AddNode(image.graph, "Add", {"b", "first"}, "c");
    CHECK(image.Finish("c") == Lines{"%1 = rewire.relu(%0)", "%3 = rewire.mul(%1, @2)",
                                     "%4 = rewire.add(%3, %0)", "output y = %4"});
  }
  SECTION("channels side by side") {
    AddNode(image.graph, "Exp", {"first"}, "a");
    AddInt(AddNode(image.graph, "Concat", {"first", "a"}, "b"), "axis", 1);
    CHECK(image.Finish("b") ==
          Lines{"%1 = rewire.exp(%0)", "%2 = rewire.concat {axis=3}(%0, %1)", "output y = %2"});
  }
  SECTION("rows side by side") {
    AddInt(AddNode(image.graph, "Concat", {"first", "first"}, "a"), "axis", -2);
    CHECK(image.Finish("a") == Lines{"%1 = rewire.concat {axis=1}(%0, %0)", "output y = %1"});
  }
  SECTION("parts of the channels, and of lines") {
    onnx::NodeProto* split = AddNode(image.graph, "Split", {"first"}, "a");
    split->add_output("rest");
    AddInt(split, "axis", 1);
    AddInts(image.graph, "parts", {1, 2});
    split->add_input("parts");
    AddInts(image.graph, "starts", {0, 1});
    AddInts(image.graph, "ends", {2, 3});
    AddInts(image.graph, "axes", {1, -1});
    AddNode(image.graph, "Slice", {"rest", "starts", "ends", "axes"}, "b");
    CHECK(image.Finish("b") ==
          Lines{"%1, %2 = rewire.split {axis=3}(%0)",
                "%3 = rewire.slice {starts=[0, 1], ends=[2, 3], axes=[3, 2], steps=[1, 1]}(%2)",
                "output y = %3"});
  }
  SECTION("borders") {
    AddInts(image.graph, "pads", {0, 1, 2, 3, 0, 4, 5, 6});
    AddNode(image.graph, "Pad", {"first", "pads"}, "a");
    CHECK(image.Finish("a") ==
          Lines{"%1 = rewire.pad {pads=[0, 2, 3, 1, 0, 5, 6, 4], mode=\"constant\"}(%0)", "output y = %1"});
  }
  SECTION("pooling, and the mean of each channel") {
    AddIntList(AddNode(image.graph, "MaxPool", {"first"}, "a"), "kernel_shape", {2, 2});
    AddNode(image.graph, "GlobalAveragePool", {"a"}, "b");
    CHECK(image.Finish("b") == Lines{"%1 = rewire.max_pool {strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, "
                                     "0], kernel_shape=[2, 2], layout=\"NHWC\"}(%0)",
                                     "%2 = rewire.reduce_mean {axes=[1, 2], keepdims=1}(%1)",
                                     "output y = %2"});
  }
}

TEST_CASE("channels-last: what needs the channels first") {
  Image image;
  SECTION("other dimensions") {
    AddInts(image.graph, "dims", {1, 3, 2, 10});
    AddNode(image.graph, "Reshape", {"first", "dims"}, "a");
  }
  SECTION("a number for each column") {
    AddFloats(image.graph, "columns", {5}, {1, 2, 3, 4, 5});
    AddNode(image.graph, "Mul", {"first", "columns"}, "a");
  }
  const Lines lines = image.Finish("a");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "%1 = rewire.transpose {perm=[0, 3, 1, 2]}(%0)");
  CHECK_THAT(lines[2], Catch::Contains("rewire.transpose {perm=[0, 2, 3, 1]}"));
}

TEST_CASE("pack-onednn: groups that do not divide the weights are an error of the run") {
  onnx::ModelProto model = ModelOf({1, 6, 4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {8, 2, 3, 3}, std::vector<float>(144, 1));
  AddInt(AddNode(graph, "Conv", {"x", "w"}, "y"), "group", 3);
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  CHECK_THAT(RunOnCounts(outcome.compiled.module, {1, 6, 4, 4}).error, Catch::Contains("rewire.conv"));
}

}  // namespace
}  // namespace rewire::test
