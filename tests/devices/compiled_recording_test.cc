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

// Computes y[i] = x[i] + (2 i + 1) + (2 (N + i) + 1) + (2 (2 N + i) + 1) + (2 (3 N + i) + 1) if the mask is
// not 0, else 0. The host makes the numbers k N + i and k N + i + 1.
onnx::ModelProto FourRanges() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"});
  SetValue(graph->add_input(), "mask", {"N"}, onnx::TensorProto::INT64);
  AddFloats(graph, "zero", {}, {0});
  AddInts(graph, "one", {1}, true);
  AddInts(graph, "end0", {0}, true);
  AddNode(graph, "Size", {"x"}, "size");
  std::string sum = "x";
  for (int k = 0; k < 4; ++k) {
    const std::string begin = "end" + std::to_string(k), end = "end" + std::to_string(k + 1);
    const std::string turn = std::to_string(k);
    AddNode(graph, "Add", {begin, "size"}, end);
    AddNode(graph, "Range", {begin, end, "one"}, "range" + turn);
    AddInt(AddNode(graph, "Cast", {"range" + turn}, "real" + turn), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "Add", {sum, "real" + turn}, "half" + turn);
    // On the host, where nothing else reads the range.
    AddNode(graph, "Add", {"range" + turn, "one"}, "next" + turn);
    AddInt(AddNode(graph, "Cast", {"next" + turn}, "after" + turn), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "Add", {"half" + turn, "after" + turn}, "sum" + turn);
    sum = "sum" + turn;
  }
  AddInt(AddNode(graph, "Cast", {"mask"}, "given"), "to", onnx::TensorProto::BOOL);
  AddNode(graph, "Where", {"given", sum, "zero"}, "y");
  SetValue(graph->add_output(), "y", {"N"});
  return model;
}

TEST_CASE("a model whose host computes from shapes is recorded, and each replay reads its inputs") {
  compiler::CompileOptions options;
  options.device = DeviceName();
  options.least_device_work = 0;
  // With a limit, the ranges are parts of an arena.
  const bool limited = GENERATE(false, true);
  if (limited) options.max_dims = {{"N", 300}};
  Outcome outcome = CompileProto(FourRanges(), options);
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
        expected.push_back(mask[at] != 0 ? static_cast<float>(run * i + 8 * i + 12 * size + 4) : 0.0F);
      }
      vm.Invoke();
      CHECK(y == expected);
    }
  }
}

}  // namespace
}  // namespace rewire::test
