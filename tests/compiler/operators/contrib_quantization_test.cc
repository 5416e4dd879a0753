// SPDX-License-Identifier: Apache-2.0
// Quantized operators of com.microsoft: each against values worked out by hand, or against the operators of
// ONNX that it stands for.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/one_output.h"
#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

class ContribModel : public OneOutput {
 public:
  explicit ContribModel(const std::vector<Dim>& dims) : OneOutput(17, dims) {
    onnx::OperatorSetIdProto* set = model()->add_opset_import();
    set->set_domain("com.microsoft");
    set->set_version(1);
    AddFloats(graph(), "s", {}, {0.5F});
    AddWhole(graph(), "z", {}, kU8, 10);
    AddFloats(graph(), "ys", {}, {1});
    AddWhole(graph(), "yz", {}, kU8, 20);
  }
  onnx::NodeProto* Add(const std::string& type, const std::vector<std::string>& inputs,
                       const std::string& output) {
    onnx::NodeProto* node = AddNode(graph(), type, inputs, output);
    node->set_domain("com.microsoft");
    return node;
  }
  // x, quantized to "q" by s and z.
  void QuantizeX() { AddNode(graph(), "QuantizeLinear", {"x", "s", "z"}, "q"); }
  // "p", quantized by ys and yz, as the answer.
  void Finish() { AddNode(graph(), "DequantizeLinear", {"p", "ys", "yz"}, "y"); }
  void Bytes(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape,
             const std::vector<std::int32_t>& elements) {
    onnx::TensorProto* tensor = AddWeight(graph(), name, type, shape);
    for (const std::int32_t element : elements) tensor->add_int32_data(element);
  }
  std::string Reason() {
    const Outcome outcome = CompileProto(*model());
    return outcome.unsupported.empty() ? "message: " + outcome.message : outcome.unsupported[0].reason;
  }
};

TEST_CASE("QLinearAdd and QLinearMul") {
  ContribModel model({3});
  model.QuantizeX();
  model.Bytes("b", kU8, {3}, {12, 14, 8});  // 1, 2, -1
  SECTION("added") {
    model.Add("QLinearAdd", {"q", "s", "z", "b", "s", "z", "ys", "yz"}, "p");
    model.Finish();
    model.Expect({3}, {3}, {1, 3, 1});
  }
  SECTION("multiplied") {
    model.Add("QLinearMul", {"q", "s", "z", "b", "s", "z", "ys", "yz"}, "p");
    model.Finish();
    model.Expect({3}, {3}, {0, 2, -2});
  }
  SECTION("without a zero of the result") {
    model.Add("QLinearAdd", {"q", "s", "z", "b", "s", "z", "ys"}, "p");
    AddNode(model.graph(), "DequantizeLinear", {"p", "ys"}, "y");
    model.Expect({3}, {3}, {1, 3, 1});
  }
  SECTION("without a tensor") {
    model.Add("QLinearAdd", {"", "s", "z", "b", "s", "z", "ys"}, "y");
    CHECK(model.Reason() == "input 0 is missing");
  }
}

TEST_CASE("quantized functions of one tensor") {
  ContribModel model({2, 2});
  AddFloats(model.graph(), "two", {}, {2});
  AddNode(model.graph(), "Sub", {"x", "two"}, "below");
  AddNode(model.graph(), "QuantizeLinear", {"below", "s", "z"}, "q");  // -2, -1, 0, 1
  const std::vector<std::string> inputs = {"q", "s", "z", "ys", "yz"};
  SECTION("LeakyRelu") {
    AddFloat(model.Add("QLinearLeakyRelu", inputs, "p"), "alpha", 0.5F);
    model.Finish();
    model.Expect({2, 2}, {2, 2}, {-1, 0, 0, 1});  // -0.5 rounds to the even 0
  }
  SECTION("the mean over an axis") {
    onnx::NodeProto* node = model.Add("QLinearReduceMean", inputs, "p");
    AddIntList(node, "axes", {0});
    AddInt(node, "keepdims", 0);
    model.Finish();
    model.Expect({2, 2}, {2}, {-1, 0});
  }
  SECTION("Softmax of an old operator set takes all axes from its own on") {
    model.graph()->mutable_initializer(2)->set_float_data(0, 0.25F);
    onnx::NodeProto* node = model.Add("QLinearSoftmax", inputs, "p");
    AddInt(node, "axis", 0);
    AddInt(node, "opset", GENERATE(11, 13));
    const bool whole = node->attribute(1).i() == 11;
    model.Finish();
    model.Expect({2, 2}, {2, 2},
                 whole ? std::vector<float>{0, 0, 0.25F, 0.75F} : std::vector<float>{0, 0, 1, 1});
  }
}

TEST_CASE("quantized pools with the channels last") {
  ContribModel model({1, 2, 2, 2});
  model.QuantizeX();
  const std::vector<std::string> inputs = {"q", "s", "z", "ys", "yz"};
  SECTION("a window") {
    onnx::NodeProto* node = model.Add("QLinearAveragePool", inputs, "p");
    AddIntList(node, "kernel_shape", {2, 1});
    AddInt(node, "channels_last", 1);
    model.Finish();
    model.Expect({1, 2, 2, 2}, {1, 1, 2, 2}, {2, 3, 4, 5});
  }
  SECTION("all of it") {
    AddInt(model.Add("QLinearGlobalAveragePool", inputs, "p"), "channels_last", 1);
    model.Finish();
    model.Expect({1, 2, 2, 2}, {1, 1, 1, 2}, {3, 4});
  }
  SECTION("of no image") {
    model.Bytes("flat", kU8, {2, 2}, {1, 2, 3, 4});
    onnx::NodeProto* node = model.Add("QLinearGlobalAveragePool", {"flat", "s", "z", "ys", "yz"}, "y");
    AddInt(node, "channels_last", 1);
    CHECK(model.Reason() == "input [2, 2] has no spatial axes");
  }
}

TEST_CASE("QLinearConv with the channels last") {
  ContribModel model({1, 1, 2, 2});
  model.QuantizeX();
  model.Bytes("w", kU8, {1, 2, 1, 1}, {12, 14});  // 1, 2
  onnx::NodeProto* node = model.Add("QLinearConv", {"q", "s", "z", "w", "s", "z", "ys", "yz"}, "p");
  AddInt(node, "channels_last", 1);
  model.Finish();
  model.Expect({1, 1, 2, 2}, {1, 1, 2, 1}, {2, 8});
}

TEST_CASE("QLinearConcat and QLinearWhere") {
  ContribModel model({2});
  model.QuantizeX();
  model.Bytes("b", kU8, {2}, {14, 16});  // 2, 3
  SECTION("one behind the other") {
    AddInt(model.Add("QLinearConcat", {"ys", "yz", "q", "s", "z", "b", "s", "z"}, "p"), "axis", 0);
    model.Finish();
    model.Expect({2}, {4}, {0, 1, 2, 3});
  }
  SECTION("one or the other") {
    AddFloats(model.graph(), "half", {}, {0.5F});
    AddNode(model.graph(), "Greater", {"x", "half"}, "c");
    model.Add("QLinearWhere", {"c", "q", "s", "z", "b", "s", "z", "ys", "yz"}, "p");
    model.Finish();
    model.Expect({2}, {2}, {2, 1});
  }
  SECTION("of a tensor without its scale") {
    AddInt(model.Add("QLinearConcat", {"ys", "yz", "q", "s", "z", "b"}, "y"), "axis", 0);
    CHECK(model.Reason() == "it has 6 inputs, expected 2 and 3 for each tensor");
  }
}

TEST_CASE("QGemm") {
  ContribModel model({1, 2});
  model.QuantizeX();
  model.Bytes("b", kI8, {3, 2}, {1, 2, 3, 4, 5, 6});
  AddFloats(model.graph(), "bs", {3}, {1, 0.5F, 2});
  model.Bytes("bz", kI8, {3}, {0, 0, 1});
  model.Bytes("c", kI32, {3}, {2, 4, 6});
  const bool floats = GENERATE(false, true);
  std::vector<std::string> inputs = {"q", "s", "z", "b", "bs", "bz", "c"};
  if (!floats) inputs.insert(inputs.end(), {"ys", "yz"});
  onnx::NodeProto* node = model.Add("QGemm", inputs, floats ? "y" : "p");
  AddInt(node, "transB", 1);
  AddFloat(node, "alpha", 2);
  if (!floats) model.Finish();
  // 2 * (0 b + 1 b') and a bias by 2 * 0.5 * bs
  model.Expect({1, 2}, {1, 3}, {6, 6, 32});
}

TEST_CASE("products of integers that give floats") {
  ContribModel model({1, 2});
  model.Bytes("b", kI8, {2, 2}, {1, 2, 3, 4});
  AddFloats(model.graph(), "bs", {2}, {1, 0.5F});
  model.Bytes("bz", kI8, {}, {1});
  AddFloats(model.graph(), "bias", {2}, {10, 20});
  SECTION("of integers") {
    model.QuantizeX();
    model.Add("MatMulIntegerToFloat", {"q", "b", "s", "bs", "z", "bz", "bias"}, "y");
  }
  SECTION("of integers, with scales and a bias of float16") {
    model.QuantizeX();
    AddFloats(model.graph(), "one", {}, {1});
    for (const char* name : {"s", "bs", "bias", "one"}) {
      onnx::NodeProto* cast = AddNode(model.graph(), "Cast", {name}, std::string("half_") + name);
      AddInt(cast, "to", onnx::TensorProto::FLOAT16);
    }
    model.Add("MatMulIntegerToFloat", {"q", "b", "half_s", "half_bs", "z", "bz", "half_bias"}, "product");
    AddNode(model.graph(), "Mul", {"product", "half_one"}, "half");
    AddInt(AddNode(model.graph(), "Cast", {"half"}, "y"), "to", onnx::TensorProto::FLOAT);
  }
  SECTION("of floats, quantized on the way") {
    model.Add("DynamicQuantizeMatMul", {"x", "b", "bs", "bz", "bias"}, "y");
  }
  model.Expect({1, 2}, {1, 2}, {12, 21.5F});
}

TEST_CASE("weights of few bits in blocks") {
  ContribModel model({1, 5});
  const auto add = [&](std::int64_t bits, const std::vector<std::string>& inputs) {
    onnx::NodeProto* node = model.Add("MatMulNBits", inputs, "y");
    AddInt(node, "K", 5);
    AddInt(node, "N", 2);
    AddInt(node, "bits", bits);
    AddInt(node, "block_size", 4);
  };
  AddFloats(model.graph(), "scales", {4}, {1, 10, 0.5F, 1});
  // Columns 9 10 11 12 | 13 and 8 7 6 5 | 4, then nothing of meaning.
  model.Bytes("four", kU8, {2, 2, 2}, {0xA9, 0xCB, 0xFD, 0xFF, 0x78, 0x56, 0x04, 0x00});
  SECTION("the usual zero, which is 8") {
    add(4, {"x", "four", "scales"});
    model.Expect({1, 5}, {1, 2}, {220, -23});
  }
  SECTION("zeros of their own") {
    model.Bytes("zeros", kU8, {2}, {0x98, 0x47});
    add(4, {"x", "four", "scales", "zeros"});
    model.Expect({1, 5}, {1, 2}, {180, -4});
  }
  SECTION("zeros of floats, and a bias") {
    AddFloats(model.graph(), "zeros", {2, 2}, {8, 9, 7, 4});
    AddFloats(model.graph(), "bias", {2}, {1, 2});
    add(4, {"x", "four", "scales", "zeros", "", "bias"});
    model.Expect({1, 5}, {1, 2}, {181, -2});
  }
  SECTION("8 bits") {
    model.Bytes("eight", kU8, {2, 2, 4},
                {129, 130, 131, 132, 133, 0, 0, 0, 128, 127, 126, 125, 124, 0, 0, 0});
    add(8, {"x", "eight", "scales"});
    model.Expect({1, 5}, {1, 2}, {220, -23});
  }
  SECTION("of another size") {
    model.Bytes("short", kU8, {2, 2, 1}, {0, 0, 0, 0});
    add(4, {"x", "short", "scales"});
    CHECK(model.Reason() == "input 1 is [2, 2, 1], expected [2, 2, 2]");
  }
  SECTION("rows with the scale and the zero of any block") {
    // Scales 10 1 10 1 1 and 1 0.5 1 0.5 0.5; zeros 9 8 9 8 8 and 4 7 4 7 7.
    model.Bytes("zeros", kU8, {2}, {0x98, 0x47});
    model.Bytes("order", onnx::TensorProto::INT32, {5}, {1, 0, 1, 0, 0});
    add(4, {"x", "four", "scales", "zeros", "order"});
    model.Expect({1, 5}, {1, 2}, {74, -5});
  }
  SECTION("rows with the scale of any block, and those of a last block that is not full") {
    model.Bytes("order", onnx::TensorProto::INT32, {8}, {1, 0, 1, 0, 0, 1, 1, 1});
    add(4, {"x", "four", "scales", "", "order"});
    model.Expect({1, 5}, {1, 2}, {94, -17});
  }
  SECTION("with a block that is not there") {
    model.Bytes("order", onnx::TensorProto::INT32, {5}, {0, 0, 0, 0, 2});
    add(4, {"x", "four", "scales", "", "order"});
    CHECK(model.Reason() == "g_idx has 2, expected 0 to 1");
  }
  SECTION("with blocks of too few rows") {
    model.Bytes("order", onnx::TensorProto::INT32, {4}, {0, 0, 0, 0});
    add(4, {"x", "four", "scales", "", "order"});
    CHECK(model.Reason() == "g_idx is [4], expected [5]");
  }
}

TEST_CASE("an LSTM with quantized weights is that of the weights") {
  // Two weights by four gates of one state; one scale for all or one for each column.
  const bool per_column = GENERATE(false, true);
  ContribModel contrib({2, 1, 1});
  contrib.Bytes("w", kI8, {1, 1, 4}, {10, -20, 30, -40});
  contrib.Bytes("r", kI8, {1, 1, 4}, {5, 6, -7, 8});
  const std::int64_t columns = 4;
  const std::vector<float> scales =
      per_column ? std::vector<float>{0.01F, 0.02F, 0.03F, 0.04F} : std::vector<float>{0.02F};
  const Shape shape = per_column ? Shape{1, columns} : Shape{1};
  AddFloats(contrib.graph(), "ws", shape, scales);
  contrib.Bytes("wz", kI8, shape, std::vector<std::int32_t>(scales.size(), 1));
  contrib.Add("DynamicQuantizeLSTM", {"x", "w", "r", "", "", "", "", "", "ws", "wz", "ws", "wz"}, "y");
  AddInt(contrib.graph()->mutable_node(0), "hidden_size", 1);

  OneOutput plain(17, {2, 1, 1});
  const auto floats = [&](const char* name, const std::vector<float>& stored) {
    std::vector<float> values;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      values.push_back((stored[i] - 1) * scales[per_column ? i : 0]);
    }
    AddFloats(plain.graph(), name, {1, columns, 1}, values);
  };
  floats("w", {10, -20, 30, -40});
  floats("r", {5, 6, -7, 8});
  AddInt(AddNode(plain.graph(), "LSTM", {"x", "w", "r"}, "y"), "hidden_size", 1);
  const Answer expected = plain.Run({2, 1, 1});
  contrib.Expect({2, 1, 1}, expected.shape, expected.values);
  CHECK(expected.values[1] != 0);
}

TEST_CASE("16 bits by the operators of com.microsoft") {
  ContribModel model({3});
  AddFloats(model.graph(), "fine", {}, {0.0001F});
  model.Bytes("zero", onnx::TensorProto::UINT16, {}, {30000});
  model.Add("QuantizeLinear", {"x", "fine", "zero"}, "q");
  model.Add("DequantizeLinear", {"q", "fine", "zero"}, "y");
  model.Expect({3}, {3}, {0, 1, 2});
}

}  // namespace
}  // namespace rewire::test
