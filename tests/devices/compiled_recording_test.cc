// SPDX-License-Identifier: Apache-2.0
//
// Compiled models of open sizes are recorded: what the host computes follows from shapes alone.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

// y = x + i + (N + i) where the mask is not 0, else 0. The host makes both ranges.
onnx::ModelProto TwoRanges() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"});
  SetValue(graph->add_input(), "mask", {"N"}, onnx::TensorProto::INT64);
  AddFloats(graph, "zero", {}, {0});
  AddInts(graph, "first", {0}, true);
  AddInts(graph, "one", {1}, true);
  AddNode(graph, "Size", {"x"}, "size");
  AddNode(graph, "Add", {"size", "size"}, "end");
  AddNode(graph, "Range", {"first", "size", "one"}, "low");
  AddInt(AddNode(graph, "Cast", {"low"}, "low_real"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Add", {"x", "low_real"}, "sum");
  AddNode(graph, "Range", {"size", "end", "one"}, "high");
  AddInt(AddNode(graph, "Cast", {"high"}, "high_real"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Add", {"sum", "high_real"}, "all");
  AddInt(AddNode(graph, "Cast", {"mask"}, "given"), "to", onnx::TensorProto::BOOL);
  AddNode(graph, "Where", {"given", "all", "zero"}, "y");
  SetValue(graph->add_output(), "y", {"N"});
  return model;
}

TEST_CASE("a model whose host computes from shapes is recorded, and each replay reads its inputs") {
  compiler::CompileOptions options;
  options.device = DeviceName();
  options.least_device_work = 0;
  const bool arena = GENERATE(true, false);
  if (!arena) options.disabled_passes = {"arena", "shape-arena"};
  Outcome outcome = CompileProto(TwoRanges(), options);
  REQUIRE(outcome.message.empty());
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  for (const std::int64_t size : {5, 300}) {
    std::vector<float> x(static_cast<std::size_t>(size)), y(x.size());
    std::vector<std::int64_t> mask(x.size());
    vm.SetInput("x", TensorView(x.data(), {size}));
    vm.SetInput("mask", TensorView(mask.data(), kInt64, {size}));
    vm.SetOutput(0, TensorView(y.data(), {size}));
    const Status recorded = vm.TryRecord();
    if (TestDevice().properties().records != 0) {
      INFO((recorded ? "" : recorded.error().message()));
      CHECK(vm.recorded());
    }
    for (std::int64_t run = 0; run < 3; ++run) {
      std::vector<float> expected;
      for (std::int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<std::size_t>(i);
        x[at] = static_cast<float>(run * i);
        mask[at] = (i + run) % 3;
        expected.push_back(mask[at] != 0 ? static_cast<float>(run * i + 2 * i + size) : 0.0F);
      }
      vm.Invoke();
      CHECK(y == expected);
    }
  }
}

}  // namespace
}  // namespace rewire::test
