// SPDX-License-Identifier: Apache-2.0
// The arena of tensors of known size: how it is laid out, what lies in it, and that it changes no result.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "rewire/compiler/passes/memory/arena_layout.h"
#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

using compiler::ArenaBlock;

bool Meet(const ArenaBlock& a, const ArenaBlock& b) { return a.begin <= b.end && b.begin <= a.end; }

TEST_CASE("blocks that are needed together lie apart") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaBlock> blocks(1 + below(60));
    for (ArenaBlock& block : blocks) {
      block.bytes = 1 + below(round % 2 == 0 ? 100 : 100000);
      block.begin = below(50);
      block.end = block.begin + below(8);
    }
    const std::uint64_t total = LayOut(&blocks);
    std::uint64_t most = 0;
    for (std::size_t place = 0; place < 60; ++place) {
      std::uint64_t live = 0;
      for (const ArenaBlock& block : blocks) {
        if (block.begin <= place && place <= block.end) live += (block.bytes + 63) / 64 * 64;
      }
      most = std::max(most, live);
    }
    CHECK(total >= most);
    CHECK(total <= 2 * most);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      CHECK(blocks[i].offset % compiler::kArenaAlignment == 0);
      CHECK(blocks[i].offset + blocks[i].bytes <= total);
      for (std::size_t k = 0; k < i; ++k) {
        const bool apart = blocks[i].offset + blocks[i].bytes <= blocks[k].offset ||
                           blocks[k].offset + blocks[k].bytes <= blocks[i].offset;
        CHECK((apart || !Meet(blocks[i], blocks[k])));
      }
    }
  }
}

TEST_CASE("a chain takes its two largest neighbors") {
  std::vector<ArenaBlock> chain = {{4096, 1, 2, 0}, {8192, 2, 3, 0}, {4096, 3, 4, 0}, {64, 4, 5, 0}};
  CHECK(LayOut(&chain) == 12288);
}

TEST_CASE("the pool has a list for each size class") {
  // One block of 4 KiB after another is one, two at once are two; a storage's object takes 128 bytes.
  CHECK(compiler::PooledBytes({{4096, 1, 1, 0}, {4096, 2, 2, 0}}) == 4096 + 128);
  CHECK(compiler::PooledBytes({{4096, 1, 2, 0}, {4096, 2, 2, 0}}) == 2 * (4096 + 128));
  CHECK(compiler::PooledBytes({{4096, 1, 1, 0}, {8192, 2, 2, 0}}) == 4096 + 8192 + 128);
  // A small one lies behind its object.
  CHECK(compiler::PooledBytes({{256, 1, 1, 0}}) == 256 + 128);
}

struct Planned {
  std::string text;
  std::uint64_t arena = 0, separate = 0;
};

// The answer is that of the program without an arena.
Planned Plan(const onnx::ModelProto& model, const Shape& shape, compiler::CompileOptions options = {}) {
  Planned planned;
  options.dump = [&](const std::string& stage, const std::string& program) {
    if (stage == "arena") planned.text = program;
  };
  Outcome with = CompileProto(model, options);
  REQUIRE(with.message.empty());
  planned.arena = with.compiled.arena_bytes;
  planned.separate = with.compiled.separate_bytes;
  compiler::CompileOptions without_pass = options;
  without_pass.disabled_passes = {"arena"};
  Outcome without = CompileProto(model, without_pass);
  REQUIRE(without.message.empty());
  CHECK(without.compiled.arena_bytes == 0);
  const Answer given = RunOnCounts(std::move(with.compiled.module), shape);
  const Answer expected = RunOnCounts(std::move(without.compiled.module), shape);
  CHECK(given.error.empty());
  CHECK(given.shape == expected.shape);
  CHECK(given.values == expected.values);
  return planned;
}

// The offsets in the line of the program that has `what`.
std::vector<int> OffsetsOf(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  const std::size_t start = text.rfind('\n', at) + 1;
  const std::string outputs = text.substr(start, text.find(" = ", start) - start);
  std::vector<int> offsets;
  for (std::size_t i = outputs.find(" at "); i != std::string::npos; i = outputs.find(" at ", i + 1)) {
    offsets.push_back(std::stoi(outputs.substr(i + 4)));
  }
  return offsets;
}

onnx::ModelProto LayoutModel(const std::vector<Dim>& dims) {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", dims);
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

// A product whose result is the program's own, and differs by name.
void AddProduct(onnx::GraphProto* graph, const std::string& in, const std::string& out, std::int64_t from,
                std::int64_t to) {
  std::vector<float> weights(static_cast<std::size_t>(from * to));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>((i * 7 + out.size() + static_cast<std::size_t>(out.back())) % 5) - 2.0F;
  }
  AddFloats(graph, out + ".w", {from, to}, weights);
  AddNode(graph, "MatMul", {in, out + ".w"}, out);
}

// x [rows, columns] goes into two products, which are joined along the outermost axis.
onnx::ModelProto Joined(std::int64_t rows, std::int64_t columns) {
  onnx::ModelProto model = LayoutModel({rows, columns});
  onnx::GraphProto* graph = model.mutable_graph();
  AddProduct(graph, "x", "a", columns, columns);
  AddProduct(graph, "x", "b", columns, columns);
  AddNode(graph, "Neg", {"b"}, "c");
  AddInt(AddNode(graph, "Concat", {"a", "c"}, "joined"), "axis", 0);
  AddProduct(graph, "joined", "y.long", columns, 1);
  AddInt(AddNode(graph, "ReduceSum", {"y.long"}, "y"), "keepdims", 0);
  return model;
}

TEST_CASE("what is joined along the outermost axis lies end to end") {
  const Planned planned = Plan(Joined(4, 16), {4, 16});
  const int joined = OffsetsOf(planned.text, "rewire.concat").at(0);
  CHECK(OffsetsOf(planned.text, "MatMul 'a'").at(0) == joined);
  CHECK(OffsetsOf(planned.text, "MatMul 'b'").at(0) == joined + 256);
  CHECK(planned.arena <= planned.separate);
}

// The second product would lie behind the 48 bytes of the first.
TEST_CASE("what would lie at an odd place of what is joined is copied there") {
  const Planned planned = Plan(Joined(3, 4), {3, 4});
  CHECK(OffsetsOf(planned.text, "MatMul 'b'").at(0) % 64 == 0);
}

TEST_CASE("what is taken out along the outermost axis stays where it is") {
  onnx::ModelProto model = LayoutModel({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddProduct(graph, "x", "a", 16, 16);
  SECTION("by a split") {
    onnx::NodeProto* split = AddNode(graph, "Split", {"a"}, "b");
    split->add_output("c");
    AddInt(split, "axis", 0);
  }
  SECTION("by slices") {
    AddInts(graph, "0", {0});
    AddInts(graph, "2", {2});
    AddInts(graph, "4", {4});
    AddNode(graph, "Slice", {"a", "0", "2"}, "b");
    AddNode(graph, "Slice", {"a", "2", "4"}, "c");
  }
  AddProduct(graph, "b", "d", 16, 16);
  AddProduct(graph, "c", "e", 16, 16);
  AddNode(graph, "Add", {"d", "e"}, "f");
  AddInt(AddNode(graph, "ReduceSum", {"f"}, "y"), "keepdims", 0);
  const Planned planned = Plan(model, {4, 16});
  const int whole = OffsetsOf(planned.text, "MatMul 'a'").at(0);
  const bool split = planned.text.find("rewire.split") != std::string::npos;
  const std::vector<int> parts = split ? OffsetsOf(planned.text, "rewire.split")
                                       : std::vector<int>{OffsetsOf(planned.text, "Slice 'b'").at(0),
                                                          OffsetsOf(planned.text, "Slice 'c'").at(0)};
  CHECK(parts == std::vector<int>{whole, whole + 128});
}

TEST_CASE("what is written over one part does not show in another") {
  onnx::ModelProto model = LayoutModel({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddProduct(graph, "x", "a", 16, 16);
  AddInts(graph, "0", {0});
  AddInts(graph, "1", {1});
  AddInts(graph, "2", {2});
  AddInts(graph, "3", {3});
  AddNode(graph, "Slice", {"a", "0", "2"}, "b");
  AddNode(graph, "Slice", {"a", "1", "3"}, "c");
  AddNode(graph, "Neg", {"b"},
          "d");  // over b, while c, which has one of its rows, and a are still to be read
  AddProduct(graph, "d", "e", 16, 16);
  AddProduct(graph, "c", "f", 16, 16);
  AddNode(graph, "Add", {"e", "f"}, "g");
  AddProduct(graph, "a", "late", 16, 16);  // the product is there until then anyway
  AddInt(AddNode(graph, "Concat", {"g", "late"}, "h"), "axis", 0);
  AddInt(AddNode(graph, "ReduceSum", {"h"}, "y"), "keepdims", 0);
  const Planned planned = Plan(model, {4, 16});
  INFO(planned.text);
  CHECK(planned.text.find("over input 0") != std::string::npos);
  // The second slice stays in the product; the first, which is written over, is a copy.
  const int whole = OffsetsOf(planned.text, "MatMul 'a'").at(0);
  CHECK(OffsetsOf(planned.text, "Slice 'c'").at(0) == whole + 64);
  CHECK(OffsetsOf(planned.text, "Slice 'b'").at(0) != whole);
}

TEST_CASE("what is joined twice, or beside a part of itself, is copied") {
  onnx::ModelProto model = LayoutModel({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddProduct(graph, "x", "a", 16, 16);
  std::string other = "a";
  SECTION("twice") {}
  SECTION("a part") {
    AddInts(graph, "0", {0});
    AddInts(graph, "2", {2});
    AddNode(graph, "Slice", {"a", "0", "2"}, "part");
    other = "part";
  }
  AddInt(AddNode(graph, "Concat", {"a", other}, "joined"), "axis", 0);
  AddInt(AddNode(graph, "ReduceSum", {"joined"}, "y"), "keepdims", 0);
  const Planned planned = Plan(model, {4, 16});
  CHECK(OffsetsOf(planned.text, "MatMul 'a'") != OffsetsOf(planned.text, "rewire.concat"));
}

TEST_CASE("results and what a loop carries are not in an arena") {
  onnx::ModelProto model = LayoutModel({64, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {3}, true);
  AddProduct(graph, "x", "a", 16, 16);
  AddProduct(graph, "a", "start", 16, 16);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "start"}, "last");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "i", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "v", {64, 16});
  AddNode(body, "Identity", {"go"}, "go_on");
  AddProduct(body, "v", "inside", 16, 48);
  AddProduct(body, "inside", "narrow", 48, 32);
  AddProduct(body, "narrow", "wide", 32, 48);
  AddProduct(body, "wide", "next", 48, 16);
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "next", {64, 16});
  AddProduct(graph, "last", "c", 16, 16);
  AddProduct(graph, "c", "d", 16, 16);
  AddProduct(graph, "d", "e", 16, 16);
  AddInt(AddNode(graph, "ReduceSum", {"e"}, "y"), "keepdims", 0);
  const Planned planned = Plan(model, {64, 16});
  CHECK(planned.arena == (48 + 32) * 64 * 4);
  CHECK(OffsetsOf(planned.text, "MatMul 'start'").empty());
  CHECK(OffsetsOf(planned.text, "MatMul 'next'").empty());
  CHECK(OffsetsOf(planned.text, "ReduceSum 'y'").empty());
  CHECK(OffsetsOf(planned.text, "MatMul 'inside'").size() == 1);
}

TEST_CASE("what leaves a branch is not in an arena, what stays there is") {
  onnx::ModelProto model = LayoutModel({64, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInt(AddNode(graph, "ReduceSum", {"x"}, "sum"), "keepdims", 0);
  AddFloats(graph, "limit", {}, {0});
  AddNode(graph, "Greater", {"sum", "limit"}, "is_more");
  onnx::NodeProto* branch = AddNode(graph, "If", {"is_more"}, "chosen");
  for (const std::string name : {"then_branch", "else_branch"}) {
    onnx::GraphProto* block = AddGraph(branch, name);
    AddProduct(block, "x", name + ".a", 16, 48);
    AddProduct(block, name + ".a", name + ".b", 48, 32);
    AddProduct(block, name + ".b", name + ".c", 32, 40);
    AddProduct(block, name + ".c", name + ".d", 40, 24);
    AddProduct(block, name + ".d", name + ".e", 24, 16);
    SetValue(block->add_output(), name + ".e", {64, 16});
  }
  AddInt(AddNode(graph, "ReduceSum", {"chosen"}, "y"), "keepdims", 0);
  const Planned planned = Plan(model, {64, 16});
  // .a and .b of one branch, and the condition, which is let go behind the branches.
  CHECK(planned.arena == (48 + 32) * 64 * 4 + 64);
  for (const std::string name : {"then_branch", "else_branch"}) {
    CHECK(OffsetsOf(planned.text, "MatMul '" + name + ".d'").size() == 1);
    CHECK(OffsetsOf(planned.text, "MatMul '" + name + ".e'").empty());
  }
}

compiler::CompileOptions AtMost(std::int64_t rows) {
  compiler::CompileOptions options;
  options.max_dims = {{"N", rows}};
  return options;
}

TEST_CASE("what has a largest size lies in an arena at that size") {
  onnx::ModelProto model = LayoutModel({"N", 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddProduct(graph, "x", "a", 16, 32);
  AddProduct(graph, "a", "b", 32, 48);
  AddProduct(graph, "b", "c", 48, 16);
  AddInt(AddNode(graph, "ReduceSum", {"c"}, "y"), "keepdims", 0);
  for (const std::int64_t rows : {1, 3, 20}) {
    const Planned planned = Plan(model, {rows, 16}, AtMost(20));
    CHECK(planned.arena == (32 + 48) * 20 * 4);
    CHECK(OffsetsOf(planned.text, "MatMul 'b'") != OffsetsOf(planned.text, "MatMul 'a'"));
    CHECK(OffsetsOf(planned.text, "MatMul 'c'") == OffsetsOf(planned.text, "MatMul 'a'"));
    CHECK(OffsetsOf(planned.text, "ReduceSum 'y'").empty());
  }
  // Without it, nothing says how large the arena would be.
  CHECK(Plan(model, {3, 16}).arena == 0);
}

TEST_CASE("what is cut off at a size, of a dimension without a largest, is not in an arena") {
  onnx::ModelProto model = LayoutModel({"N", 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "0", {0});
  AddInts(graph, "512", {512});
  AddNode(graph, "Slice", {"x", "0", "512"}, "rows");
  AddProduct(graph, "rows", "a", 16, 32);
  AddProduct(graph, "a", "b", 32, 16);
  AddInt(AddNode(graph, "ReduceSum", {"b"}, "y"), "keepdims", 0);
  CHECK(Plan(model, {3, 16}).arena == 0);
  CHECK(Plan(model, {3, 16}, AtMost(20)).arena == (32 + 16) * 20 * 4);
}

TEST_CASE("parts whose places depend on a dimension are copied") {
  onnx::ModelProto model = LayoutModel({"N", 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddProduct(graph, "x", "a", 16, 16);
  AddProduct(graph, "x", "b", 16, 16);
  AddInt(AddNode(graph, "Concat", {"a", "b"}, "joined"), "axis", 0);
  AddInt(AddNode(graph, "ReduceSum", {"joined"}, "y"), "keepdims", 0);
  for (const std::int64_t rows : {3, 20}) {
    const Planned planned = Plan(model, {rows, 16}, AtMost(20));
    const int joined = OffsetsOf(planned.text, "rewire.concat").at(0);
    const int a = OffsetsOf(planned.text, "MatMul 'a'").at(0),
              b = OffsetsOf(planned.text, "MatMul 'b'").at(0);
    CHECK((a + 20 * 64 <= joined || joined + 2 * 20 * 64 <= a));
    CHECK((b + 20 * 64 <= joined || joined + 2 * 20 * 64 <= b));
    CHECK((a + 20 * 64 <= b || b + 20 * 64 <= a));
  }
}

TEST_CASE("what data makes large is not in an arena, whatever the largest input") {
  onnx::ModelProto model = LayoutModel({"N", 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "NonZero", {"x"}, "places");
  AddInt(AddNode(graph, "ReduceSum", {"x"}, "sum"), "keepdims", 0);
  onnx::NodeProto* cast = AddNode(graph, "Cast", {"places"}, "floats");
  AddInt(cast, "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Exp", {"floats"}, "large");
  AddInt(AddNode(graph, "ReduceSum", {"large"}, "total"), "keepdims", 0);
  AddNode(graph, "Sub", {"total", "sum"}, "y");
  const Planned planned = Plan(model, {3, 16}, AtMost(20));
  CHECK(OffsetsOf(planned.text, "Cast 'floats'").empty());
}

}  // namespace
}  // namespace rewire::test
