// SPDX-License-Identifier: Apache-2.0
// Shapes of tensors with open sizes: computed once and together, and right.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

// x: f32[N, M].
onnx::ModelProto FunctionModel() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", "M"});
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

// Passes that would join the nodes, or let them share memory, are left out.
compiler::CompileOptions Separate() {
  compiler::CompileOptions options;
  options.disabled_passes = {"fuse-elementwise", "in-place", "common-subexpressions"};
  return options;
}

// The attribute of the kernels that compute shapes.
std::vector<std::vector<std::int64_t>> OutputsOfCalls(const Module& module) {
  std::vector<std::vector<std::int64_t>> calls;
  for (const KernelImport& kernel : module.kernels) {
    if (kernel.name != "rewire.shape.sizes") continue;
    for (const Attribute& attribute : kernel.attributes) {
      if (attribute.name != "outputs") continue;
      const auto& lengths = std::get<Array<std::int64_t>>(attribute.value);
      calls.emplace_back(lengths.begin(), lengths.end());
    }
  }
  return calls;
}

std::size_t ShapeCalls(const Module& module) {
  return static_cast<std::size_t>(
      std::count_if(module.kernels.begin(), module.kernels.end(), [](const KernelImport& kernel) {
        return std::string_view(kernel.name.data(), kernel.name.size()).substr(0, 13) == "rewire.shape.";
      }));
}

TEST_CASE("tensors of an input's shape take that, and one call computes all sizes") {
  onnx::ModelProto model = FunctionModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Exp", {"x"}, "e");
  AddNode(graph, "Neg", {"e"}, "n");
  AddInt(AddNode(graph, "Concat", {"e", "n"}, "wide"), "axis", 1);
  AddInt(AddNode(graph, "Concat", {"n", "e"}, "high"), "axis", 0);
  AddNode(graph, "Transpose", {"wide"}, "turned");
  AddNode(graph, "MatMul", {"turned", "x"}, "square");
  AddNode(graph, "ReduceSum", {"high"}, "sum");
  AddNode(graph, "Add", {"square", "sum"}, "y");
  const Outcome outcome = CompileProto(model, Separate());
  REQUIRE(outcome.message == "");
  // The bytes of x's shape; [N, 2 M] and its bytes, which [2 N, M] has, too; [2 M, N]; and [2 M, M] with its
  // bytes.
  CHECK(OutputsOfCalls(outcome.compiled.module) ==
        std::vector<std::vector<std::int64_t>>{{-1, 2, -1, 2, 2, 2, -1}});
  CHECK(ShapeCalls(outcome.compiled.module) == 1);
  const Answer answer = RunOnCounts(outcome.compiled.module, {1, 2});
  CHECK(answer.error == "");
  CHECK(answer.shape == Shape{4, 2});
  CHECK(answer.values[0] == Approx(0));  // exp(0) * 0
  CHECK(answer.values[1] == Approx(1));
  CHECK(answer.values[3] == Approx(std::exp(1)));
  CHECK(answer.values[7] == Approx(-std::exp(1)));
}

TEST_CASE("a size that a run may make negative is not computed early") {
  onnx::ModelProto model = FunctionModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "pads", {0, -3, 0, 0});
  AddNode(graph, "Exp", {"x"}, "e");
  AddNode(graph, "Pad", {"e", "pads"}, "y");
  const Outcome outcome = CompileProto(model, Separate());
  REQUIRE(outcome.message == "");
  CHECK(OutputsOfCalls(outcome.compiled.module).size() == 2);
  CHECK(RunOnCounts(outcome.compiled.module, {1, 4}).values == std::vector<float>{std::exp(3.0F)});
  CHECK_THAT(RunOnCounts(outcome.compiled.module, {1, 2}).error, Catch::Contains("Pad 'y'"));
}

TEST_CASE("what one call computes of different sizes is not taken for equal by the bound of memory") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 24});
  SetValue(graph->add_input(), "z", {"M", 24});
  for (const std::string input : {"x", "z"}) {
    AddInt(AddNode(graph, "Concat", {input, input}, input + ".twice"), "axis", 0);
    AddInt(AddNode(graph, "Gemm", {input + ".twice", input + ".twice"}, input + ".square"), "transB", 1);
    AddNode(graph, "ReduceSum", {input + ".square"}, input + ".sum");
  }
  AddNode(graph, "Add", {"x.sum", "z.sum"}, "y");
  SetValue(graph->add_output(), "y", {});
  compiler::CompileOptions options = Separate();
  options.max_dims = {{"N", 64}, {"M", 64}};
  Outcome outcome = CompileProto(model, options);
  REQUIRE(outcome.message == "");
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  const Result<MemoryBound> bound = program->TryMemoryBound({});
  REQUIRE(bound);
  REQUIRE(bound->unbounded.empty());
  std::vector<float> data(64 * 24, 1.0F);
  for (const std::int64_t rows : {1, 7, 32, 64}) {
    for (const std::int64_t others : {1, 9, 33, 64}) {
      VirtualMachine vm(*program);
      const std::int64_t of_x[] = {rows, 24}, of_z[] = {others, 24};
      REQUIRE(vm.TrySetInput("x", TensorView(data.data(), {of_x[0], of_x[1]})));
      REQUIRE(vm.TrySetInput("z", TensorView(data.data(), {of_z[0], of_z[1]})));
      REQUIRE(vm.TryInvoke());
      CHECK(vm.bytes_peak() <= bound->bytes);
    }
  }
}

}  // namespace
}  // namespace rewire::test
