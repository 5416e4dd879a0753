// SPDX-License-Identifier: Apache-2.0
// The arena that is laid out when the program runs: what lies in it, and on what, and how large it is.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

struct PlannedShapes {
  std::string text;
  compiler::Compiled compiled;

  // How the line of the program that has `what` says it: "block 1 on [0]"; "" for none.
  std::string BlockOf(const std::string& what) const {
    const std::size_t at = text.find("; " + what + "\n");
    REQUIRE(at != std::string::npos);
    const std::string line = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at));
    const std::size_t start = line.find("block ");
    return start == std::string::npos ? "" : line.substr(start, line.find(']', start) + 1 - start);
  }
};

// The answers are those of the program without this arena.
PlannedShapes Plan(const onnx::ModelProto& model, const std::vector<Shape>& shapes) {
  PlannedShapes planned;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& stage, const std::string& program) {
    if (stage == "shape-arena") planned.text = program;
  };
  const Outcome with = CompileProto(model, options);
  REQUIRE(with.message.empty());
  options.disabled_passes = {"shape-arena"};
  const Outcome without = CompileProto(model, options);
  for (const Shape& shape : shapes) {
    const Answer given = RunOnCounts(with.compiled.module, shape);
    const Answer expected = RunOnCounts(without.compiled.module, shape);
    CHECK(given.error.empty());
    CHECK(given.shape == expected.shape);
    CHECK(given.values == expected.values);
  }
  planned.compiled = with.compiled;
  return planned;
}

onnx::ModelProto ShapesModel(const std::vector<Dim>& dims) {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", dims);
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

// Four times as long, so that its result does not fit where its input lies.
void AddWider(onnx::GraphProto* graph, const std::string& in, const std::string& out) {
  AddInt(AddNode(graph, "Concat", {in, in, in, in}, out), "axis", 0);
}

void AddEnd(onnx::GraphProto* graph, const std::string& in) {
  AddInt(AddNode(graph, "ReduceMax", {in}, "y"), "keepdims", 0);
}

TEST_CASE("tensors of sizes that the inputs tell lie in one arena") {
  onnx::ModelProto model = ShapesModel({256, "N"});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWider(graph, "x", "a");
  AddWider(graph, "a", "b");
  AddNode(graph, "Transpose", {"b"}, "c");
  AddNode(graph, "Transpose", {"c"}, "d");
  AddEnd(graph, "d");
  const PlannedShapes planned = Plan(model, {{256, 1}, {256, 3}, {256, 40}});
  INFO(planned.text);
  CHECK(planned.BlockOf("Concat 'b'") == "block 0 on []");
  CHECK(planned.BlockOf("Transpose 'd'") == "block 1 on []");
  CHECK(planned.BlockOf("Transpose 'c'") == "block 2 on [1, 0]");
  CHECK(planned.BlockOf("Concat 'a'") == "block 3 on [0]");
  CHECK(planned.BlockOf("ReduceMax 'y'").empty());
  SECTION("as large as the two that are there at once") {
    const Result<Executable> executable = Executable::FromModule(planned.compiled.module);
    REQUIRE(executable);
    const Result<Program> program = Program::Link(*executable);
    REQUIRE(program);
    MemoryBoundOptions options;
    options.max_dims = {{"N", 40}};
    const Result<MemoryBound> bound = program->TryMemoryBound("main", options);
    REQUIRE(bound);
    REQUIRE(bound->unbounded.empty());
    const std::uint64_t two = 2 * std::uint64_t{40} * 4096 * 4;
    CHECK(bound->storage >= two);
    CHECK(bound->storage < two + 1024);  // beside the arena, a few numbers
    std::vector<float> x(40 * 256, 1.0F);
    VirtualMachine vm(*program);
    REQUIRE(vm.TrySetInput("x", TensorView(x.data(), {256, 40})));
    REQUIRE(vm.TryInvoke());
    CHECK(vm.bytes_peak() <= bound->bytes);
    CHECK(vm.bytes_peak() >= two);
  }
}

TEST_CASE("equal sizes are computed once, with one number for what is known of them") {
  onnx::ModelProto model = ShapesModel({256, "N"});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWider(graph, "x", "a");
  AddWider(graph, "a", "b");  // f32[4096, N]
  AddNode(graph, "Transpose", {"b"}, "c");
  AddNode(graph, "Transpose", {"c"}, "d");
  AddEnd(graph, "d");
  const PlannedShapes planned = Plan(model, {{256, 3}});
  std::vector<std::int64_t> program;
  for (const KernelImport& kernel : planned.compiled.module.kernels) {
    if (kernel.name != "rewire.shape.layout") continue;
    const auto& codes = std::get<Array<std::int64_t>>(kernel.attributes[0].value);
    program.assign(codes.begin(), codes.end());
  }
  // Push a number, push axis 1 of shape 0, multiply, store.
  CHECK(program == std::vector<std::int64_t>{0, 16384, 1, 0, 1, 3, 7, 0, 4096, 1, 0, 1, 3, 7});
}

TEST_CASE("sizes that are computed through others") {
  onnx::ModelProto model =
      ShapesModel({1, 64, "height_of_the_page_that_is_read", "width_of_the_page_that_is_read"});
  onnx::GraphProto* graph = model.mutable_graph();
  std::string last = "x";
  for (int i = 0; i < 9; ++i) {  // expressions become so long that they get names of their own
    const std::string next = "p" + std::to_string(i);
    onnx::NodeProto* pool = AddNode(graph, "MaxPool", {last}, next);
    for (const auto& [name, value] :
         {std::pair("kernel_shape", 3), std::pair("strides", i % 2 == 0 ? 2 : 1)}) {
      onnx::AttributeProto* list = pool->add_attribute();
      list->set_name(name);
      list->set_type(onnx::AttributeProto::INTS);
      list->add_ints(value);
      list->add_ints(value);
    }
    last = next;
  }
  AddEnd(graph, last);
  const PlannedShapes planned = Plan(model, {{1, 64, 200, 190}, {1, 64, 191, 197}});
  INFO(planned.text);
  CHECK(planned.text.find('$') != std::string::npos);
  for (const char* pool : {"p0", "p1", "p7", "p8"}) {
    CHECK_FALSE(planned.BlockOf("MaxPool '" + std::string(pool) + "'").empty());
  }
}

TEST_CASE("what is not known when the inputs are there, or leaves, is not in it") {
  onnx::ModelProto model = ShapesModel({256, "N"});
  onnx::GraphProto* graph = model.mutable_graph();
  AddWider(graph, "x", "a");
  AddWider(graph, "a", "b");
  AddNode(graph, "Transpose", {"b"}, "c");
  AddNode(graph, "Transpose", {"c"}, "d");
  SECTION("a size that comes of data") {
    AddNode(graph, "NonZero", {"d"}, "places");
    AddInt(AddNode(graph, "Cast", {"places"}, "floats"), "to", onnx::TensorProto::FLOAT);
    AddEnd(graph, "floats");
    const PlannedShapes planned = Plan(model, {{256, 3}});
    CHECK(planned.BlockOf("Cast 'floats'").empty());
    CHECK_FALSE(planned.BlockOf("Transpose 'c'").empty());
  }
  SECTION("a result") {
    AddNode(graph, "Transpose", {"d"}, "y");
    const PlannedShapes planned = Plan(model, {{256, 3}});
    CHECK(planned.BlockOf("Transpose 'y'").empty());
  }
  SECTION("what a loop carries") {
    AddInts(graph, "turns", {3}, true);
    onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "d"}, "last");
    onnx::GraphProto* body = AddGraph(loop, "body");
    SetValue(body->add_input(), "i", {}, onnx::TensorProto::INT64);
    SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
    SetValue(body->add_input(), "v", {4096, "N"});
    AddNode(body, "Identity", {"go"}, "go_on");
    AddNode(body, "Transpose", {"v"}, "turned");
    AddNode(body, "Transpose", {"turned"}, "next");
    SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
    SetValue(body->add_output(), "next", {4096, "N"});
    AddEnd(graph, "last");
    const PlannedShapes planned = Plan(model, {{256, 3}});
    CHECK(planned.BlockOf("Transpose 'next'").empty());
    CHECK(planned.BlockOf("Transpose 'd'").empty());
    CHECK_FALSE(planned.BlockOf("Transpose 'turned'").empty());
  }
}

TEST_CASE("small models, or of a large batch only, have none: laying out takes time") {
  onnx::ModelProto model = GENERATE(ShapesModel({16, "N"}), ShapesModel({"N", 256}));
  onnx::GraphProto* graph = model.mutable_graph();
  AddWider(graph, "x", "a");
  AddWider(graph, "a", "b");
  AddNode(graph, "Transpose", {"b"}, "c");
  AddEnd(graph, "c");
  const PlannedShapes planned = Plan(model, {});
  CHECK(planned.text.find("arena by shape") == std::string::npos);
}

}  // namespace
}  // namespace rewire::test
