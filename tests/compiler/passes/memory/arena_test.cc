// SPDX-License-Identifier: Apache-2.0
// A run of a compiled model whose shapes are all known takes its memory bound, to the byte, and the data that
// the bound counts is the compiler's arena.
#include <catch2/catch.hpp>
#include <new>
#include <numeric>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

std::vector<float> Weights(const std::vector<std::int64_t>& shape) {
  std::vector<float> values(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) * 0.1F - 0.6F;
  return values;
}

void AddWeights(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& shape) {
  AddFloats(graph, name, shape, Weights(shape));
}

void AddIntList(onnx::NodeProto* node, const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

struct ArenaCase {
  const char* what;
  Shape input;
  void (*build)(onnx::GraphProto* graph);  // from x to y
};

void Convolutions(onnx::GraphProto* graph) {
  AddWeights(graph, "w1", {16, 3, 3, 3});
  AddWeights(graph, "w2", {16, 1, 3, 3});
  AddWeights(graph, "w3", {24, 16, 1, 1});
  AddIntList(AddNode(graph, "Conv", {"x", "w1"}, "a"), "pads", {1, 1, 1, 1});
  AddNode(graph, "Relu", {"a"}, "b");
  onnx::NodeProto* depthwise = AddNode(graph, "Conv", {"b", "w2"}, "c");
  AddInt(depthwise, "group", 16);
  AddIntList(depthwise, "strides", {2, 2});
  AddNode(graph, "HardSigmoid", {"c"}, "d");
  AddNode(graph, "Conv", {"d", "w3"}, "e");
  AddNode(graph, "GlobalAveragePool", {"e"}, "f");
  AddNode(graph, "Mul", {"e", "f"}, "y");
}

void Resizing(onnx::GraphProto* graph) {
  AddWeights(graph, "w", {4, 6, 2, 2});
  AddFloats(graph, "scales", {4}, {1, 1, 2, 2});
  AddIntList(AddNode(graph, "ConvTranspose", {"x", "w"}, "a"), "strides", {2, 2});
  AddNode(graph, "Resize", {"a", "", "scales"}, "b");  // nearest
  AddNode(graph, "Sigmoid", {"b"}, "c");
  onnx::NodeProto* linear = AddNode(graph, "Resize", {"c", "", "scales"}, "y");
  onnx::AttributeProto* mode = linear->add_attribute();
  mode->set_name("mode");
  mode->set_type(onnx::AttributeProto::STRING);
  mode->set_s("linear");
}

void Attention(onnx::GraphProto* graph) {
  for (const std::string name : {"q", "k", "v"}) {
    AddWeights(graph, name + ".w", {48, 48});
    AddNode(graph, "MatMul", {"x", name + ".w"}, name);
  }
  AddIntList(AddNode(graph, "Transpose", {"k"}, "kt"), "perm", {0, 2, 1});
  AddNode(graph, "MatMul", {"q", "kt"}, "scores");
  AddInt(AddNode(graph, "Softmax", {"scores"}, "p"), "axis", -1);
  AddNode(graph, "MatMul", {"p", "v"}, "context");
  AddNode(graph, "Add", {"context", "x"}, "sum");
  AddWeights(graph, "y.w", {48, 20});
  AddNode(graph, "MatMul", {"sum", "y.w"}, "y");
}

void Recurrent(onnx::GraphProto* graph) {
  AddWeights(graph, "w", {1, 128, 16});
  AddWeights(graph, "r", {1, 128, 32});
  onnx::NodeProto* lstm = AddNode(graph, "LSTM", {"x", "w", "r"}, "all");
  AddInt(lstm, "hidden_size", 32);
  AddInts(graph, "last", {-1});
  AddNode(graph, "Gather", {"all", "last"}, "y");
}

void Parts(onnx::GraphProto* graph) {
  AddWeights(graph, "w", {32, 32});
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  onnx::NodeProto* split = AddNode(graph, "Split", {"a"}, "b");
  split->add_output("c");
  AddInt(split, "axis", 0);
  AddNode(graph, "Exp", {"b"}, "d");
  AddNode(graph, "MatMul", {"c", "w"}, "e");
  AddInt(AddNode(graph, "Concat", {"d", "e"}, "f"), "axis", 0);
  AddNode(graph, "MatMul", {"f", "w"}, "y");
}

// Aligned as the bound asks.
struct Elements {
  explicit Elements(Span<const std::int64_t> shape)
      : count(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())),
        data(static_cast<float*>(
            ::operator new (static_cast<std::size_t>(count) * sizeof(float), std::align_val_t{64}))) {
    std::fill_n(data, count, 0.25F);
  }
  ~Elements() { ::operator delete (data, std::align_val_t{64}); }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  std::int64_t count;
  float* data;
};

TEST_CASE("what a static model takes is known before it runs") {
  const ArenaCase each = GENERATE(
      ArenaCase{"convolutions", {1, 3, 20, 20}, Convolutions}, ArenaCase{"resizing", {1, 4, 9, 7}, Resizing},
      ArenaCase{"attention", {2, 40, 48}, Attention}, ArenaCase{"a recurrent layer", {12, 3, 16}, Recurrent},
      ArenaCase{"parts of tensors", {40, 32}, Parts});
  INFO(each.what);
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {each.input.begin(), each.input.end()});
  each.build(model.mutable_graph());
  SetValue(model.mutable_graph()->add_output(), "y", {});
  Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  const std::uint64_t arena = outcome.compiled.arena_bytes;
  CHECK((arena > 0 || std::string(each.what) == "a recurrent layer"));
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  const Elements x(each.input);
  for (const bool bind : {false, true}) {
    CAPTURE(bind);
    MemoryBoundOptions options;
    options.outputs_bound = bind;
    const Result<MemoryBound> bound = program->TryMemoryBound({}, options);
    REQUIRE(bound);
    CHECK(bound->unbounded.empty());
    CHECK(bound->undeclared_workspace.empty());
    // The recurrent layer has one tensor inside, and no arena.
    if (bind && arena > 0) CHECK(bound->storage == arena);
    VirtualMachine vm(*program);
    REQUIRE(vm.TrySetInput("x", TensorView(x.data, DTypeOf<float>(), each.input)));
    const TypeNode& type = executable->module().functions[0].result.nodes[0];
    const Elements y(type.dims);
    if (bind) REQUIRE(vm.TrySetOutput("y", TensorView(y.data, DTypeOf<float>(), type.dims)));
    const Status done = vm.TryInvoke();
    INFO((done ? "" : done.error().message()));
    REQUIRE(done);
    CHECK(vm.bytes_peak() == bound->bytes);
  }
}

}  // namespace
}  // namespace rewire::test
