// SPDX-License-Identifier: Apache-2.0
// Weights that are packed when a program is loaded, because packed ones would make the file much larger.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

std::vector<float> Numbers(std::int64_t count) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i % 7) - 3);
  return numbers;
}

// The program's constants, in the order of its table: "name", or "name at load" of those that are computed
// then. Without the pass, none is, and the results are the same.
std::vector<std::string> Constants(const onnx::ModelProto& model, const Shape& shape) {
  compiler::CompileOptions options;
  options.disabled_passes = {"pack-at-load"};
  const Outcome packed = CompileProto(model, options), given = CompileProto(model);
  REQUIRE(packed.message.empty());
  REQUIRE(given.message.empty());
  for (const Constant& constant : packed.compiled.module.constants)
    CHECK(constant.kind == ConstantKind::kData);
  CHECK(RunOnCounts(given.compiled.module, shape).values ==
        RunOnCounts(packed.compiled.module, shape).values);
  std::vector<std::string> names;
  for (const Constant& constant : given.compiled.module.constants)
    names.push_back(constant.name + (constant.kind == ConstantKind::kComputed ? " at load" : ""));
  return names;
}

// A product of x: f32[2, rows] by each of these weights, which have as many columns.
onnx::ModelProto Products(std::int64_t rows, const Ints& columns) {
  onnx::ModelProto model = ModelOf({2, rows});
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::string> products;
  for (const std::int64_t count : columns) {
    const std::string name = "w" + std::to_string(products.size());
    AddFloats(graph, name, {rows, count}, Numbers(rows * count));
    products.push_back("product" + name);
    AddNode(graph, "MatMul", {"x", name}, products.back());
  }
  AddInt(AddNode(graph, "Concat", products, "y"), "axis", 1);
  return model;
}

TEST_CASE("pack-at-load: one column is packed as 16") {
  // The bytes of 15 columns are added, at most 8 KiB.
  CHECK(Constants(Products(136, {1}), {2, 136}) == std::vector<std::string>{"w0.packed"});
  CHECK(Constants(Products(137, {1}), {2, 137}) == std::vector<std::string>{"w0.packed at load", "w0"});
  CHECK(Constants(Products(400, {16}), {2, 400}) == std::vector<std::string>{"w0.packed"});
}

TEST_CASE("pack-at-load: only those that grow most") {
  // By 11, 15 and 8 columns of 400 bytes. 19 columns are 7,600 bytes.
  CHECK(Constants(Products(100, {5, 1, 8}), {2, 100}) ==
        std::vector<std::string>{"w0.packed", "w2.packed", "w1.packed at load", "w1"});
}

TEST_CASE("pack-at-load: large weights may grow by a sixteenth") {
  // 300 columns become 304, and one 16. That is a sixteenth of 304 columns.
  CHECK(Constants(Products(300, {300, 16, 1}), {2, 300}) ==
        std::vector<std::string>{"w0.packed", "w1.packed", "w2.packed"});
  CHECK(Constants(Products(300, {300, 1}), {2, 300}) ==
        std::vector<std::string>{"w0.packed", "w1.packed at load", "w1"});
}

TEST_CASE("pack-at-load: weights that are packed in parts") {
  const auto constants = [](std::int64_t channels) {
    onnx::ModelProto model = ModelOf({1, channels, 2, 2});
    AddFloats(model.mutable_graph(), "w", {channels, 1, 2, 2}, Numbers(channels * 4));
    AddIntList(AddNode(model.mutable_graph(), "ConvTranspose", {"x", "w"}, "y"), "strides", {2, 2});
    return Constants(model, {1, channels, 2, 2});
  };
  // Each of the window's two rows becomes 16 columns of 2. The parts are joined at load, too.
  const std::string shape = "shape [1, 1, 4, 4]";
  CHECK(constants(73) == std::vector<std::string>{"w.packed", shape});
  CHECK(constants(146) == std::vector<std::string>{"w.packed at load", shape, "w", "w.packed#1"});
  CHECK(constants(147) == std::vector<std::string>{"w.packed at load", shape, "w", "w#1"});
}

TEST_CASE("pack-at-load: weights that several products share count once") {
  onnx::ModelProto model = ModelOf({2, 100});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {100, 1}, Numbers(100));
  AddNode(graph, "Neg", {"x"}, "negative");
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddNode(graph, "MatMul", {"negative", "w"}, "b");
  AddNode(graph, "Sub", {"a", "b"}, "y");
  CHECK(Constants(model, {2, 100}) == std::vector<std::string>{"w.packed"});
}

}  // namespace
}  // namespace rewire::test
