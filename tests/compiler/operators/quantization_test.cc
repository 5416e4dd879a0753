// SPDX-License-Identifier: Apache-2.0
// Quantized operators as quantizers write them: each against values worked out by ONNX's reference.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/one_output.h"
#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

// Types of 4 bits have no name in older headers.
constexpr auto kU4 = static_cast<onnx::TensorProto::DataType>(21);
constexpr auto kI4 = static_cast<onnx::TensorProto::DataType>(22);

void AddData(onnx::GraphProto* graph, const std::string& name, onnx::TensorProto::DataType type,
             const std::vector<std::int64_t>& shape, const std::vector<std::int32_t>& data) {
  onnx::TensorProto* tensor = AddWeight(graph, name, type, shape);
  for (const std::int32_t element : data) tensor->add_int32_data(element);
}

void AddToX(onnx::GraphProto* graph) { AddNode(graph, "Add", {"x", "d"}, "y"); }

TEST_CASE("a scale of [1] takes a zero point of []") {
  OneOutput model(17, {2});
  AddWeight(model.graph(), "q", onnx::TensorProto::INT32, {2})->add_int32_data(10);
  model.graph()->mutable_initializer(0)->add_int32_data(20);
  AddFloats(model.graph(), "scale", {1}, {0.5F});
  AddWeight(model.graph(), "zero", onnx::TensorProto::INT32, {})->add_int32_data(0);
  AddNode(model.graph(), "DequantizeLinear", {"q", "scale", "zero"}, "b");
  AddNode(model.graph(), "Add", {"x", "b"}, "y");
  model.Expect({2}, {2}, {5, 11});
}

TEST_CASE("a vector has a scale for each element, along an axis that counts from the back") {
  const std::int64_t axis = GENERATE(-1, 0);
  OneOutput model(17, {2});
  AddData(model.graph(), "q", onnx::TensorProto::INT8, {2}, {10, 20});
  AddFloats(model.graph(), "scale", {2}, {0.5F, 0.25F});
  AddInt(AddNode(model.graph(), "DequantizeLinear", {"q", "scale"}, "d"), "axis", axis);
  AddToX(model.graph());
  model.Expect({2}, {2}, {5, 6});
}

TEST_CASE("16 bits are quantized and dequantized") {
  OneOutput model(21, {4});
  onnx::GraphProto* graph = model.graph();
  AddFloats(graph, "scale", {}, {0.0001F});
  SECTION("unsigned") { AddData(graph, "zero", onnx::TensorProto::UINT16, {}, {40000}); }
  SECTION("signed") { AddData(graph, "zero", onnx::TensorProto::INT16, {}, {7232}); }
  AddNode(graph, "QuantizeLinear", {"x", "scale", "zero"}, "q");
  AddNode(graph, "DequantizeLinear", {"q", "scale", "zero"}, "y");
  // From 2.5535 on the largest integer stands for all.
  model.Expect({4}, {4}, {0, 1, 2, 2.5535F});
}

TEST_CASE("scales of blocks") {
  OneOutput model(21, {3, 2});
  onnx::GraphProto* graph = model.graph();
  AddData(graph, "q", kI8, {3, 2}, {1, 2, 3, 4, 5, 6});
  onnx::NodeProto* node = AddNode(graph, "DequantizeLinear", {"q", "scale", "zero"}, "d");
  AddToX(graph);
  SECTION("of rows, the last block cut short") {
    AddFloats(graph, "scale", {2, 2}, {1, 10, 100, 1000});
    AddData(graph, "zero", kI8, {2, 2}, {0, 1, 2, 3});
    AddInt(node, "axis", 0);
    AddInt(node, "block_size", 2);
    model.Expect({3, 2}, {3, 2}, {1, 11, 5, 33, 304, 3005});
  }
  SECTION("of columns") {
    AddFloats(graph, "scale", {3, 1}, {1, 10, 100});
    AddData(graph, "zero", kI8, {3, 1}, {0, 1, 2});
    AddInt(node, "block_size", 2);
    model.Expect({3, 2}, {3, 2}, {1, 3, 22, 33, 304, 405});
  }
  SECTION("of a shape that does not fit are an error when running") {
    AddFloats(graph, "scale", {3, 2}, {1, 1, 1, 1, 1, 1});
    AddData(graph, "zero", kI8, {3, 2}, {0, 0, 0, 0, 0, 0});
    AddInt(node, "axis", 0);
    AddInt(node, "block_size", 2);
    const Outcome outcome = CompileProto(*model.model());
    REQUIRE(outcome.message.empty());
    CHECK_THAT(
        RunOnCounts(outcome.compiled.module, {3, 2}).error,
        Catch::Contains("scale has shape [3, 2], expected that of x, [3, 2], with 2 blocks of 2 on axis 0"));
  }
  SECTION("without their size are refused") {
    AddFloats(graph, "scale", {3, 1}, {1, 10, 100});
    AddData(graph, "zero", kI8, {3, 1}, {0, 1, 2});
    const Outcome outcome = CompileProto(*model.model());
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason == "scales [3, 1] are those of blocks, and block_size is missing");
  }
}

TEST_CASE("blocks are quantized as they are dequantized") {
  OneOutput model(21, {2, 4});
  onnx::GraphProto* graph = model.graph();
  AddFloats(graph, "scale", {2, 2}, {1, 0.5F, 2, 4});
  AddData(graph, "zero", kU8, {2, 2}, {0, 1, 2, 3});
  for (const char* type : {"QuantizeLinear", "DequantizeLinear"}) {
    const bool first = type[0] == 'Q';
    onnx::NodeProto* node = AddNode(graph, type, {first ? "x" : "q", "scale", "zero"}, first ? "q" : "y");
    AddInt(node, "block_size", 2);
  }
  model.Expect({2, 4}, {2, 4}, {0, 1, 2, 3, 4, 4, 8, 8});
}

TEST_CASE("weights of 4 bits") {
  OneOutput model(21, {5});
  onnx::GraphProto* graph = model.graph();
  AddFloats(graph, "scale", {}, {0.5F});
  AddNode(graph, "DequantizeLinear", {"q", "scale", "zero"}, "d");
  AddToX(graph);
  // Two of them share a byte, the first one in its lower half.
  SECTION("signed") {
    AddData(graph, "q", kI4, {5}, {0x8F, 0x70, 0x03});
    AddData(graph, "zero", kI4, {}, {0x01});
    model.Expect({5}, {5}, {-1, -3.5F, 1.5F, 6, 5});
  }
  SECTION("unsigned") {
    AddData(graph, "q", kU4, {5}, {0x8F, 0x70, 0x03});
    AddData(graph, "zero", kU4, {}, {0x01});
    model.Expect({5}, {5}, {7, 4.5F, 1.5F, 6, 5});
  }
  SECTION("with too few bytes") {
    AddData(graph, "q", kI4, {5}, {0x8F, 0x70});
    AddData(graph, "zero", kI4, {}, {0x01});
    CHECK(CompileProto(*model.model()).message ==
          "model: tensor 'q': it has 2 bytes of data, its shape takes 3");
  }
}

TEST_CASE("quantizing to 4 bits") {
  OneOutput model(21, {5});
  AddFloats(model.graph(), "scale", {}, {0.5F});
  AddData(model.graph(), "zero", kI4, {}, {0x01});
  AddNode(model.graph(), "QuantizeLinear", {"x", "scale", "zero"}, "q");
  AddNode(model.graph(), "DequantizeLinear", {"q", "scale", "zero"}, "y");
  model.Expect({5}, {5}, {0, 1, 2, 3, 3});  // the largest is 7
}

TEST_CASE("DequantizeLinear gives the dtype of its scale") {
  OneOutput model(21, {2});
  onnx::GraphProto* graph = model.graph();
  AddData(graph, "q", kI8, {2}, {3, 4});
  AddData(graph, "scale", onnx::TensorProto::FLOAT16, {}, {0x3800});  // 0.5
  AddNode(graph, "DequantizeLinear", {"q", "scale"}, "h");
  AddInt(AddNode(graph, "Cast", {"h"}, "d"), "to", onnx::TensorProto::FLOAT);
  AddToX(graph);
  model.Expect({2}, {2}, {1.5F, 3});
}

}  // namespace
}  // namespace rewire::test
