// SPDX-License-Identifier: Apache-2.0
// Operators whose results' sizes only a run knows: what is the same in every run is known before.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

constexpr onnx::TensorProto::DataType kF32 = onnx::TensorProto::FLOAT, kI64 = onnx::TensorProto::INT64,
                                      kBool = onnx::TensorProto::BOOL;

// An input of the model: its shape, and the least and most of its elements.
struct Input {
  onnx::TensorProto::DataType type;
  Shape shape;
  std::int64_t least = 0, most = 9;
};

struct RankedCase {
  const char* type;
  std::vector<Input> inputs;
  int outputs = 1;
  std::int64_t opset = 18;
  std::function<void(onnx::NodeProto* node, onnx::GraphProto* graph)> add = {};
};

std::vector<RankedCase> Cases() {
  const auto axis = [](std::int64_t value) {
    return [value](onnx::NodeProto* node, onnx::GraphProto* /*graph*/) { AddInt(node, "axis", value); };
  };
  // Appends an input that is a constant list of integers.
  const auto list = [](std::vector<std::int64_t> values) {
    return [values](onnx::NodeProto* node, onnx::GraphProto* graph) {
      AddInts(graph, "list", values);
      node->add_input("list");
    };
  };
  return {
      {"NonMaxSuppression", {{kF32, {1, 6, 4}}, {kF32, {1, 2, 6}}, {kI64, {1}, 0, 6}}},
      {"NonZero", {{kI64, {5}, 0, 1}}},
      {"NonZero", {{kI64, {3, 4, 2}, 0, 1}}},
      {"Compress", {{kF32, {3, 4}}, {kBool, {4}, 0, 1}}},
      {"Compress", {{kF32, {3, 4, 5}}, {kBool, {4}, 0, 1}}, 1, 18, axis(1)},
      {"Compress", {{kF32, {3, 4, 5}}, {kBool, {5}, 0, 1}}, 1, 18, axis(-1)},
      {"Unique", {{kI64, {3, 4}, 0, 5}}, 4},
      {"Unique", {{kI64, {4, 2}, 0, 1}}, 4, 18, axis(0)},
      {"Unique", {{kI64, {2, 5, 1}, 0, 1}}, 4, 18, axis(1)},
      {"TopK", {{kF32, {3, 7}}, {kI64, {1}, 1, 7}}, 2},
      {"TopK", {{kF32, {3, 7, 2}}, {kI64, {1}, 1, 3}}, 2, 18, axis(0)},
      {"OneHot", {{kI64, {3, 4}, 0, 3}, {kI64, {}, 1, 6}, {kF32, {2}}}},
      {"OneHot", {{kI64, {3, 4}, 0, 3}, {kI64, {}, 1, 6}, {kF32, {2}}}, 1, 18, axis(0)},
      {"Slice", {{kF32, {6, 5, 4}}, {kI64, {1}, 0, 2}, {kI64, {1}, 2, 6}}},
      {"Slice", {{kF32, {6, 5, 4}}, {kI64, {1}, 0, 1}, {kI64, {1}, 2, 4}}, 1, 18, list({2})},
      {"Pad",
       {{kF32, {3, 4}}, {kI64, {2}, 0, 3}},
       1,
       18,
       [](onnx::NodeProto* node, onnx::GraphProto* graph) {
         AddInts(graph, "axes", {1});
         node->add_input("");
         node->add_input("axes");
       }},
      {"Expand", {{kF32, {3, 1}}, {kI64, {1}, 1, 5}}},
      {"Expand", {{kF32, {4, 1, 1}}, {kI64, {2}, 1, 5}}},
      {"ConstantOfShape", {{kI64, {2}, 0, 4}}},
      {"Range", {{kI64, {}, 0, 3}, {kI64, {}, 4, 9}, {kI64, {}, 1, 2}}},
      {"Tile", {{kF32, {3, 4}}, {kI64, {2}, 0, 3}}},
      {"MaxUnpool",
       {{kF32, {1, 2, 2, 2}}, {kI64, {1, 2, 2, 2}, 0, 7}, {kI64, {4}, 2, 3}},
       1,
       18,
       [](onnx::NodeProto* node, onnx::GraphProto* graph) {
         AddIntList(node, "kernel_shape", {2, 2});
         AddIntList(node, "strides", {2, 2});
         // The image's shape is computed from sizes that the run knows: [1, 2, n + n, n + n].
         AddInts(graph, "first", {1, 2});
         AddNode(graph, "Slice", {"i2", "from", "to"}, "sizes");
         AddInts(graph, "from", {2});
         AddInts(graph, "to", {4});
         AddNode(graph, "Add", {"sizes", "sizes"}, "doubled");
         AddInt(AddNode(graph, "Concat", {"first", "doubled"}, "shape"), "axis", 0);
         node->set_input(2, "shape");
       }},
      {"AffineGrid",
       {{kF32, {2, 2, 3}}, {kI64, {4}, 1, 5}},
       1,
       20,
       [](onnx::NodeProto* node, onnx::GraphProto* graph) {
         AddInts(graph, "first", {2, 3});
         AddInts(graph, "from", {2});
         AddInts(graph, "to", {4});
         AddNode(graph, "Slice", {"i1", "from", "to"}, "sizes");
         AddInt(AddNode(graph, "Concat", {"first", "sizes"}, "shape"), "axis", 0);
         node->set_input(1, "shape");
       }},
      {"Resize",
       {{kF32, {2, 3, 4, 4}}, {kI64, {2}, 1, 8}},
       1,
       18,
       [](onnx::NodeProto* node, onnx::GraphProto* /*graph*/) {
         node->set_input(1, "");
         node->add_input("");
         node->add_input("i1");
         AddIntList(node, "axes", {2, 3});
       }},
      {"CenterCropPad",
       {{kF32, {3, 6, 4}}, {kI64, {1}, 2, 9}},
       1,
       18,
       [](onnx::NodeProto* node, onnx::GraphProto* /*graph*/) { AddIntList(node, "axes", {1}); }},
      {"DFT", {{kF32, {2, 8, 1}}, {kI64, {}, 2, 8}}, 1, 17, axis(1)},
      {"STFT", {{kF32, {1, 32, 1}}, {kI64, {}, 2, 5}, {kF32, {8}}}, 1, 17},
  };
}

onnx::ModelProto RankedModel(const RankedCase& each) {
  onnx::ModelProto model = EmptyModel(each.opset);
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::string> names;
  for (const Input& input : each.inputs) {
    names.push_back("i" + std::to_string(names.size()));
    SetValue(graph->add_input(), names.back(), {input.shape.begin(), input.shape.end()}, input.type);
  }
  onnx::NodeProto node;
  node.set_op_type(each.type);
  for (const std::string& name : names) node.add_input(name);
  for (int i = 0; i < each.outputs; ++i) {
    node.add_output("o" + std::to_string(i));
    graph->add_output()->set_name(node.output(i));
  }
  // The added nodes stand in front of the node.
  if (each.add) each.add(&node, graph);
  *graph->add_node() = node;
  return model;
}

Tensor RandomTensor(const Input& input, std::mt19937* random) {
  const std::size_t count = static_cast<std::size_t>(
      std::accumulate(input.shape.begin(), input.shape.end(), std::int64_t{1}, std::multiplies<>()));
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  std::vector<std::uint8_t> bools;
  for (std::size_t i = 0; i < count; ++i) {
    const auto span = static_cast<std::uint32_t>(input.most - input.least + 1);
    const std::int64_t element = input.least + static_cast<std::int64_t>((*random)() % span);
    floats.push_back(static_cast<float>(element));
    integers.push_back(element);
    bools.push_back(static_cast<std::uint8_t>(element));
  }
  const DLDataType dtype = input.type == kF32 ? kFloat32 : input.type == kI64 ? kInt64 : kBool8;
  void* data = input.type == kF32   ? static_cast<void*>(floats.data())
               : input.type == kI64 ? static_cast<void*>(integers.data())
                                    : static_cast<void*>(bools.data());
  Result<Tensor> tensor = Tensor::CopyOf(TensorView(data, dtype, input.shape));
  REQUIRE(tensor);
  return *std::move(tensor);
}

// The dimensions of each output of a run.
std::vector<Shape> RunOnce(const Program& program, const RankedCase& each, std::mt19937* random) {
  VirtualMachine vm(program);
  for (std::size_t i = 0; i < each.inputs.size(); ++i)
    REQUIRE(vm.TrySetInput("i" + std::to_string(i), RandomTensor(each.inputs[i], random)));
  const Status done = vm.TryInvoke();
  INFO(done.error().message());
  REQUIRE(done);
  std::vector<Shape> shapes;
  for (int i = 0; i < each.outputs; ++i) {
    const Value output = each.outputs == 1 ? vm.result() : vm.result().field(static_cast<std::uint32_t>(i));
    shapes.emplace_back(output.tensor().shape().begin(), output.tensor().shape().end());
  }
  return shapes;
}

TEST_CASE("a dimension that is the same in every run is known before it") {
  for (const RankedCase& each : Cases()) {
    std::string inputs;
    for (const Input& input : each.inputs) inputs += " " + std::to_string(input.shape.size());
    INFO(each.type << " of ranks" << inputs);
    Outcome outcome = CompileProto(RankedModel(each));
    for (const compiler::Unsupported& node : outcome.unsupported) UNSCOPED_INFO(node.reason);
    INFO(outcome.message);
    REQUIRE(outcome.message.empty());
    const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
    REQUIRE(executable);
    const Result<Program> program = Program::Link(*executable);
    REQUIRE(program);
    std::mt19937 random(1);
    const std::vector<Shape> first = RunOnce(*program, each, &random);
    std::vector<std::vector<bool>> varies;
    for (const Shape& shape : first) varies.emplace_back(shape.size(), false);
    for (int run = 0; run < 40; ++run) {
      const std::vector<Shape> shapes = RunOnce(*program, each, &random);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        REQUIRE(shapes[i].size() == first[i].size());
        for (std::size_t d = 0; d < shapes[i].size(); ++d)
          varies[i][d] = varies[i][d] || shapes[i][d] != first[i][d];
      }
    }
    const rewire::Type& result = executable->module().functions[0].result;
    std::size_t node = each.outputs == 1 ? 0 : 1;  // behind the tuple
    for (std::size_t i = 0; i < first.size(); ++i, ++node) {
      INFO("output " << i);
      const rewire::TypeNode& type = result.nodes[node];
      REQUIRE(type.dims.size() == first[i].size());
      for (std::size_t d = 0; d < first[i].size(); ++d) {
        INFO("axis " << d);
        if (varies[i][d]) {
          CHECK(type.dims[d] < 0);
        } else {
          CHECK(type.dims[d] == first[i][d]);
        }
      }
    }
  }
}

// The positions of the boxes that are left, which detectors gather by.
TEST_CASE("the length of index tuples that NonMaxSuppression gives is known") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 6, 4});
  AddFloats(graph, "scores", {1, 1, 6}, {1, 2, 3, 4, 5, 6});
  AddInts(graph, "most", {6});
  AddNode(graph, "NonMaxSuppression", {"x", "scores", "most"}, "picks");
  AddFloats(graph, "table", {1, 1, 6}, {10, 20, 30, 40, 50, 60});
  AddNode(graph, "GatherND", {"table", "picks"}, "y");
  graph->add_output()->set_name("y");
  const Outcome outcome = CompileProto(model);
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  // Boxes of 0, 1, 2, ... do not overlap.
  CHECK(RunOnCounts(outcome.compiled.module, {1, 6, 4}).values == std::vector<float>{60, 50, 40, 30, 20, 10});
}

}  // namespace
}  // namespace rewire::test
