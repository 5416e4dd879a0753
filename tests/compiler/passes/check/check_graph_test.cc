// SPDX-License-Identifier: Apache-2.0
// The check of the graph after each pass: it names the pass, whatever a pass breaks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/compiler/passes/check/broken_graphs.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::test {
namespace {

// Adds a graph's input or output without a type.
void Declare(onnx::ValueInfoProto* info, const std::string& name) { info->set_name(name); }

// A loop that carries "v" and stacks it up; it reads "s" of the graph around it.
void AddLoop(onnx::GraphProto* graph) {
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"trips", "", "m"}, "carried");
  loop->add_output("stacked");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "i", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
  Declare(body->add_input(), "v");
  AddNode(body, "Identity", {"go"}, "go.out");
  AddNode(body, "Add", {"v", "s"}, "sum");
  AddNode(body, "Tanh", {"sum"}, "v.out");
  AddNode(body, "Mul", {"v.out", "s"}, "row");
  for (const char* name : {"go.out", "v.out", "row"}) Declare(body->add_output(), name);
}

void AddIf(onnx::GraphProto* graph) {
  onnx::NodeProto* branches = AddNode(graph, "If", {"condition"}, "chosen");
  for (const bool first : {true, false}) {
    onnx::GraphProto* body = AddGraph(branches, first ? "then_branch" : "else_branch");
    AddNode(body, first ? "Exp" : "Neg", {"s"}, "one");
    AddNode(body, "Mul", {"one", "m"}, "two");
    Declare(body->add_output(), "two");
  }
}

// A model with all that a graph may have: layers of images, blocks, views, what is made once.
onnx::ModelProto Everything(bool open) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<Dim> dims = {2, 4, 16, 16};
  if (open) dims = {"N", 4, "H", "W"};
  SetValue(graph->add_input(), "x", dims);
  AddFloats(graph, "w1", {4, 4, 3, 3}, Numbers(144));
  AddFloats(graph, "w2", {4, 2, 3, 3}, Numbers(72));
  AddFloats(graph, "w3", {4, 8}, Numbers(32));
  AddFloats(graph, "w4", {4, 6}, Numbers(24));
  AddFloats(graph, "zero", {}, {0});
  AddInts(graph, "trips", {3}, true);
  AddInts(graph, "rows", {0, -1});
  AddInts(graph, "cut", {-1, 2});
  AddIntList(AddNode(graph, "Conv", {"x", "w1"}, "a"), "pads", {1, 1, 1, 1});
  AddNode(graph, "Relu", {"a"}, "b");
  onnx::NodeProto* grouped = AddNode(graph, "Conv", {"b", "w2"}, "g");
  AddInt(grouped, "group", 2);
  AddIntList(grouped, "pads", {1, 1, 1, 1});
  AddNode(graph, "Add", {"b", "g"}, "c");
  AddIntList(AddNode(graph, "MaxPool", {"c"}, "p"), "kernel_shape", {2, 2});
  AddNode(graph, "Tanh", {"p"}, "t");
  AddInt(AddNode(graph, "Concat", {"t", "p"}, "joined"), "axis", 1);
  AddNode(graph, "GlobalAveragePool", {"p"}, "pooled");
  AddNode(graph, "Reshape", {"pooled", "rows"}, "q");
  AddNode(graph, "MatMul", {"q", "w3"}, "m");
  AddNode(graph, "MatMul", {"q", "w4"}, "product");
  AddNode(graph, "Reshape", {"q", "cut"}, "view");
  AddNode(graph, "Softmax", {"m"}, "s");
  AddIntList(AddNode(graph, "Transpose", {"s"}, "turned"), "perm", {1, 0});
  AddIntList(AddNode(graph, "Transpose", {"joined"}, "late"), "perm", {0, 2, 1, 3});
  // Sizes that differ, for which an arena takes less memory than a pool.
  AddInt(AddNode(graph, "Concat", {"x", "x", "x", "x"}, "wide"), "axis", 0);
  AddInt(AddNode(graph, "Concat", {"wide", "wide", "wide", "wide"}, "wider"), "axis", 0);
  AddIntList(AddNode(graph, "Transpose", {"wider"}, "widest"), "perm", {3, 0, 2, 1});
  AddInt(AddNode(graph, "ReduceMax", {"widest"}, "greatest"), "keepdims", 0);
  AddInt(AddNode(graph, "ReduceSum", {"x"}, "sum of x"), "keepdims", 0);
  AddNode(graph, "Greater", {"sum of x", "zero"}, "condition");
  AddLoop(graph);
  AddIf(graph);
  for (const char* name : {"carried", "stacked", "chosen", "turned", "late", "product", "view", "greatest"})
    Declare(graph->add_output(), name);
  return model;
}

// A model may bring a kernel that no library has, and a reshape that does not fit, in a branch that no run
// takes.
bool ModelsHave(const Breaking& breaking) {
  const std::string name = breaking.name;
  return name == "a kernel that is not there" || name == "a view of more elements";
}

// The passes that run for a model on the host.
std::set<std::string> RunningPasses(const std::string& model) {
  std::set<std::string> passes;
  const Outcome whole =
      CompileBytes(model, "", {}, [&](const std::string& pass, compiler::Graph*) { passes.insert(pass); });
  INFO(whole.message);
  REQUIRE(whole.message.empty());
  return passes;
}

// The subject of the message. Constants are folded while the model is lowered.
std::string StageOf(const std::string& pass) {
  return pass == "fold-constants" ? "lowering the model" : "the pass '" + pass + "'";
}

// Breaks the graph in each way, behind one in `step` of the passes.
void BreakBehindPasses(std::size_t step) {
  std::map<std::string, std::size_t> of_pass, of_breaking;
  std::set<std::pair<std::string, std::string>> done;
  for (const bool open : {false, true}) {
    const std::string model = Everything(open).SerializeAsString();
    std::size_t number = 0;
    for (const std::string& pass : RunningPasses(model)) {
      // A pass begins with another way than the one before it, so that each way meets passes of all kinds.
      std::size_t way = number++;
      for (const Breaking& breaking : Breakings()) {
        // One that has not been tried is: some fit behind few passes.
        if (way++ % step != 0 && of_breaking[breaking.name] != 0) continue;
        if (pass == "fold-constants" && ModelsHave(breaking)) continue;
        // Open sizes are for what known ones do not have.
        if (done.contains({pass, breaking.name})) continue;
        bool broken = false;
        const Outcome outcome =
            CompileBytes(model, "", {}, [&](const std::string& behind, compiler::Graph* graph) {
              if (behind == pass) broken = breaking.apply(graph);
            });
        if (!broken) continue;
        ++of_pass[pass];
        ++of_breaking[breaking.name];
        done.emplace(pass, breaking.name);
        INFO(breaking.name << ": " << outcome.message);
        CHECK_THAT(outcome.message, Catch::Contains(StageOf(pass) + " broke the program"));
        CHECK_THAT(outcome.message, Catch::Contains(breaking.message));
      }
    }
  }
  for (const std::string& pass : compiler::PassNames()) {
    // A pass whose library is missing does not run.
    if (pass == "pack-onednn" && !KernelSet().AddLibrary("librewire_kernels_onednn.so")) continue;
    INFO(pass);
    CHECK(of_pass[pass] >= 25 / step);
  }
  for (const Breaking& breaking : Breakings()) {
    INFO(breaking.name);
    CHECK(of_breaking[breaking.name] >= 1);
  }
}

TEST_CASE("check-passes: each way of breaking a graph, behind a fifth of the passes") {
  BreakBehindPasses(5);
}

// The long form, which takes a quarter of a minute, and ten minutes under sanitizers: compiler_packing_test
// "[.long]".
TEST_CASE("check-passes: each way of breaking a graph, behind each pass", "[.long]") { BreakBehindPasses(1); }

TEST_CASE("check-passes: only if options ask for it") {
  const std::string model = Everything(false).SerializeAsString();
  // A wrong note, which no program shows.
  const auto breaks = [](const std::string& /*pass*/, compiler::Graph* graph) {
    for (const compiler::Node* node : graph->main.nodes) {
      if (node->outputs[0]->type.rank() == 2) node->outputs[0]->channels_last = true;
    }
  };
  compiler::CompileOptions options;
  options.check_passes = true;
  CHECK_THAT(CompileBytes(model, "", options, breaks).message,
             Catch::Contains("expected an image where the channels are last"));
  options.check_passes = false;
  CHECK(CompileBytes(model, "", options, breaks).message.empty());
}

}  // namespace
}  // namespace rewire::test
