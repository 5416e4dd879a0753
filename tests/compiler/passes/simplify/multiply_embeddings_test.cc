// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings that a recurrent layer reads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/loader/ffi_shim/half.h"

namespace rewire::test {
namespace {

std::vector<float> Counts(std::int64_t count, float by) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 11 - 5) * by);
  return values;
}

// x f32[4], its elements taken as rows of a table, through a layer with 3 inputs and 2 units.
// The table may be of f16, with its rows cast.
onnx::ModelProto Model(const std::string& type, std::int64_t gates, bool table_is_a_result = false,
                       bool halves = false, std::int64_t rows = 9) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {4});
  AddInt(AddNode(graph, "Cast", {"x"}, "integers"), "to", onnx::TensorProto::INT64);
  AddInts(graph, "as_rows", {4, 1});
  AddNode(graph, "Reshape", {"integers", "as_rows"}, "ids");
  if (halves) {
    onnx::TensorProto* table = AddWeight(graph, "table", onnx::TensorProto::FLOAT16, {rows, 3});
    for (const float element : Counts(rows * 3, 0.1F)) table->add_int32_data(ffi_shim::FloatToHalf(element));
    AddNode(graph, "Gather", {"table", "ids"}, "narrow");
    AddInt(AddNode(graph, "Cast", {"narrow"}, "rows"), "to", onnx::TensorProto::FLOAT);
  } else {
    AddFloats(graph, "table", {rows, 3}, Counts(rows * 3, 0.1F));
    AddNode(graph, "Gather", {"table", "ids"}, "rows");
  }
  AddFloats(graph, "w", {1, gates * 2, 3}, Counts(gates * 6, 0.2F));
  AddFloats(graph, "r", {1, gates * 2, 2}, Counts(gates * 4, 0.3F));
  AddFloats(graph, "b", {1, gates * 4}, Counts(gates * 4, 0.05F));
  AddNode(graph, type, {"rows", "w", "r", "b"}, table_is_a_result ? "layer" : "y");
  if (table_is_a_result) {
    AddNode(graph, "ReduceSum", {"rows"}, "sum");
    AddNode(graph, "Add", {"layer", "sum"}, "y");
  }
  SetValue(graph->add_output(), "y", {4, 1, 1, 2});
  return model;
}

TEST_CASE("a table is multiplied by the weights of the layer that alone reads its rows") {
  compiler::CompileOptions without;
  without.disabled_passes = {"multiply-embeddings"};
  for (const auto& [type, gates] :
       {std::pair<const char*, std::int64_t>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    INFO(type);
    for (const auto& [shared, halves] :
         {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
      const onnx::ModelProto model = Model(type, gates, shared, halves);
      const Outcome plain = CompileProto(model, without), multiplied = CompileProto(model);
      REQUIRE(plain.message.empty());
      REQUIRE(multiplied.message.empty());
      CHECK((plain.compiled.constant_bytes == multiplied.compiled.constant_bytes) == shared);
      const Answer expected = RunOnCounts(plain.compiled.module, {4});
      const Answer given = RunOnCounts(multiplied.compiled.module, {4});
      REQUIRE(expected.error.empty());
      REQUIRE(given.error.empty());
      REQUIRE(given.shape == expected.shape);
      for (std::size_t i = 0; i < expected.values.size(); ++i)
        CHECK(static_cast<double>(given.values[i]) ==
              Approx(static_cast<double>(expected.values[i])).margin(1e-6));
    }
  }
}

bool IsMultiplied(const onnx::ModelProto& model) {
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  const auto& constants = outcome.compiled.module.constants;
  return std::any_of(constants.begin(), constants.end(),
                     [](const Constant& constant) { return constant.name == "table.multiplied"; });
}

TEST_CASE("a table is multiplied where the file grows little by that") {
  const auto with_rows = [](std::int64_t rows, bool halves = false) {
    return Model("LSTM", 4, false, halves, rows);
  };
  SECTION("by 4 KiB: of each row 3 numbers become 8, and 24 weights of 96 bytes are no longer there") {
    CHECK(IsMultiplied(with_rows(209)));
    CHECK_FALSE(IsMultiplied(with_rows(210)));
  }
  SECTION("a row of f16 has 6 bytes") {
    CHECK(IsMultiplied(with_rows(161, true)));
    CHECK_FALSE(IsMultiplied(with_rows(162, true)));
  }
  SECTION("a row of 3 numbers becomes one of 2") {
    CHECK(IsMultiplied(Model("RNN", 1, false, false, 20000)));
  }
  SECTION("a table that something else reads stays in the file") {
    for (const std::int64_t rows : {131, 132}) {
      onnx::ModelProto model = with_rows(rows);
      onnx::GraphProto* graph = model.mutable_graph();
      CHECK(IsMultiplied(model));
      AddInt(AddNode(graph, "ReduceMax", {"x"}, "largest"), "keepdims", 0);
      AddNode(graph, "Add", {"table", "largest"}, "z");
      SetValue(graph->add_output(), "z", {rows, 3});
      CHECK(IsMultiplied(model) == (rows == 131));
    }
  }
}

TEST_CASE("what is computed of weights while compiling lies on the device that reads it") {
  compiler::CompileOptions options;
  options.device = "opencl";
  options.least_device_work = 0;
  for (const bool halves : {false, true}) {
    const Outcome outcome = CompileProto(Model("LSTM", 4, false, halves), options);
    REQUIRE(outcome.message.empty());
    int tables = 0;
    for (const Constant& constant : outcome.compiled.module.constants) {
      if (constant.name.find(".multiplied") == std::string::npos) continue;
      ++tables;
      CHECK(constant.kind == ConstantKind::kData);
      CHECK(constant.type.device == 1);
    }
    CHECK(tables == 1);
  }
}

TEST_CASE("the multiplied rows do not go by the name of the model's rows") {
  const auto names_rows = [](const Module& module) {
    for (const auto& [key, value] : module.metadata) {
      if (key.rfind("values main.", 0) == 0 && value.find("\"rows\"") != std::string::npos) return true;
    }
    return false;
  };
  compiler::CompileOptions without;
  without.disabled_passes = {"multiply-embeddings"};
  const onnx::ModelProto model = Model("LSTM", 4, false, false);
  CHECK(names_rows(CompileProto(model, without).compiled.module));
  CHECK_FALSE(names_rows(CompileProto(model).compiled.module));
}

}  // namespace
}  // namespace rewire::test
