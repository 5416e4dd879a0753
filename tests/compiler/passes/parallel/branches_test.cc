// SPDX-License-Identifier: Apache-2.0
// Small operators that run at once: which ones, how they are shared out, and that results stay the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/passes/parallel/branch_groups.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

using compiler::BranchGroup;

std::size_t CallsIn(const Lines& lines) {
  return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("rewire.branches") != std::string::npos;
  }));
}

// The line of the only call.
std::string CallOf(const PassRun& run) {
  REQUIRE(CallsIn(run.after) == 1);
  return *std::find_if(run.after.begin(), run.after.end(), [](const std::string& line) {
    return line.find("rewire.branches") != std::string::npos;
  });
}

bool Has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

// `count` branches that begin at x, each a term that is added and a chain of these operators, and their sum.
onnx::ModelProto Branches(const std::vector<Dim>& dims, int count, const std::vector<std::string>& chain) {
  onnx::ModelProto model = ModelOf(dims);
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::string> ends;
  for (int branch = 0; branch < count; ++branch) {
    // Equal branches would be merged.
    const std::string term = "t" + std::to_string(branch);
    std::string last = "s" + std::to_string(branch);
    AddFloats(graph, term, {1}, {0.125f * static_cast<float>(branch)});
    AddNode(graph, "Add", {"x", term}, last);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const std::string next = "b" + std::to_string(branch) + "_" + std::to_string(i);
      AddNode(graph, chain[i], {last}, next);
      last = next;
    }
    ends.push_back(last);
  }
  AddNode(graph, "Sum", ends, "y");
  return model;
}

TEST_CASE("branches: four chains become one call") {
  const PassRun run = RunPass("branches", Branches({128, 128}, 4, {"Tanh", "Sigmoid", "Exp"}), {128, 128});
  const std::string call = CallOf(run);
  CHECK(Has(call, "kernels=\"rewire.add rewire.tanh rewire.sigmoid rewire.exp rewire.add"));
  // Each chain writes one tensor: what its first operator makes, the others write over.
  CHECK(Has(call, "inputs=5"));
  CHECK(Has(call, "outputs=[0, 1, 2, 3]"));
  CHECK(Has(call, "calls=[0, 3, 0, 1, 5, 0, 2, 5, 5, 0, 2, 5, 5, 0, 2, 5, 5, 1, 3, 0, 2, 6, 1, 2, 6, 6, "));
  CHECK(std::none_of(run.after.begin(), run.after.end(), [](const std::string& line) {
    return line.find("= rewire.tanh") != std::string::npos;
  }));
}

TEST_CASE("branches: what gains nothing stays as it is") {
  const auto unchanged = [](const onnx::ModelProto& model, const Shape& shape) {
    return !RunPass("branches", model, shape).changes();
  };
  SECTION("a chain") {
    CHECK(unchanged(Branches({128, 128}, 1, {"Tanh", "Sigmoid", "Exp", "Tanh"}), {128, 128}));
  }
  SECTION("little work") { CHECK(unchanged(Branches({8, 8}, 4, {"Tanh", "Sigmoid", "Exp"}), {8, 8})); }
  SECTION("less time than a thread needs to wake up") {
    CHECK(unchanged(Branches({64, 64}, 4, {"Tanh", "Sigmoid", "Exp"}), {64, 64}));
  }
  SECTION("operators that are split by themselves") {
    CHECK(unchanged(Branches({256, 256}, 4, {"Tanh", "Sigmoid"}), {256, 256}));
  }
  SECTION("one long chain beside short ones") {
    onnx::ModelProto model =
        Branches({128, 128}, 1, {"Tanh", "Sigmoid", "Exp", "Tanh", "Sigmoid", "Tanh", "Exp"});
    AddNode(model.mutable_graph(), "Relu", {"x"}, "z");
    SetValue(model.mutable_graph()->add_output(), "z", {});
    compiler::CompileOptions options;
    Lines lines;
    options.dump = [&](const std::string& stage, const std::string& text) {
      if (stage == "branches") lines.push_back(text);
    };
    REQUIRE(CompileProto(model, options).message.empty());
    CHECK(CallsIn(lines) == 0);
  }
  SECTION("sizes that are not known") {
    CHECK(unchanged(Branches({"N", 128}, 4, {"Tanh", "Sigmoid", "Exp"}), {128, 128}));
  }
  SECTION("operators that need not give the same twice") {
    onnx::ModelProto model = Branches({128, 128}, 2, {"Tanh"});
    for (const std::string name : {"p", "q"}) {
      AddNode(model.mutable_graph(), "RandomNormalLike", {"x"}, name);
      AddNode(model.mutable_graph(), "Tanh", {name}, name + "t");
    }
    Lines lines;
    compiler::CompileOptions options;
    options.disabled_passes = {"dead-code"};
    options.dump = [&](const std::string& stage, const std::string& text) {
      if (stage == "branches") lines.push_back(text);
    };
    REQUIRE(CompileProto(model, options).message.empty());
    for (const std::string& text : lines) {
      const std::size_t at = text.find("kernels=\"");
      if (at != std::string::npos)
        CHECK(text.substr(at, text.find('"', at + 9) - at).find("random") == std::string::npos);
    }
  }
}

// The fewest elements of each power, in powers of two, from which on a call is made of `branches` chains of
// powers, each with a result of its own.
std::int64_t LeastElements(int branches, int length) {
  for (std::int64_t elements = 64; elements <= 16384; elements *= 2) {
    onnx::ModelProto model = ModelOf({elements});
    onnx::GraphProto* graph = model.mutable_graph();
    for (int branch = 0; branch < branches; ++branch) {
      std::string last = "x";
      for (int i = 0; i < length; ++i) {
        const std::string name = "p" + std::to_string(branch) + "_" + std::to_string(i);
        AddFloats(graph, name + ".exponent", {1}, {1.1F + static_cast<float>(branch)});
        AddNode(graph, "Pow", {last, name + ".exponent"}, name);
        last = name;
      }
      SetValue(graph->add_output(), last, {});
    }
    AddNode(graph, "Identity", {"x"}, "y");
    std::vector<std::string> off = compiler::PassNames();
    std::erase(off, "branches");
    compiler::CompileOptions options;
    options.disabled_passes.insert(off.begin(), off.end());
    Lines lines;
    options.dump = [&](const std::string& stage, const std::string& text) {
      if (stage == "branches") lines.push_back(text);
    };
    REQUIRE(CompileProto(model, options).message.empty());
    if (CallsIn(lines) != 0) return elements;
  }
  return 1 << 30;
}

TEST_CASE("branches: a call takes at most a fiftieth of its operators' time") {
  // The same operators in few branches and in as many as there are: each adds an input and an output, whose
  // checks take longer.
  const std::int64_t few = LeastElements(4, 16), many = LeastElements(64, 1);
  CHECK(few <= 2048);
  CHECK(many >= 4 * few);
}

TEST_CASE("branches: more memory at once than before is worth it only to a degree") {
  // A tensor of 64 KiB of each branch lives at once, where before it was that of one branch.
  CHECK_FALSE(RunPass("branches", Branches({128, 128}, 8, {"Tanh", "ReduceMean"}), {128, 128}).changes());
  CHECK(RunPass("branches", Branches({128, 128}, 4, {"Tanh", "ReduceMean"}), {128, 128}).changes());
}

TEST_CASE("branches: what others read is not written over") {
  onnx::ModelProto model = Branches({128, 128}, 4, {"Tanh", "Sigmoid", "Exp"});
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("a later node") {
    graph->mutable_node(graph->node_size() - 1)->set_output(0, "s");
    AddNode(graph, "Add", {"s", "b1_0"}, "y");
    CHECK(Has(CallOf(RunPass("branches", model, {128, 128})), "outputs=[0, 1, 2, 3, 3]"));
  }
  SECTION("another node of the branch") {
    onnx::NodeProto* node = graph->mutable_node(7);
    REQUIRE(node->output(0) == "b1_2");
    node->set_op_type("Mul");
    node->add_input("b1_0");
    CHECK(Has(CallOf(RunPass("branches", model, {128, 128})), "outputs=[0, 1, 2, 2, 3]"));
  }
}

TEST_CASE("branches: tensors of a branch follow each other in the same memory") {
  // A transpose writes over nothing: two tensors take turns.
  const PassRun run = RunPass(
      "branches", Branches({128, 128}, 2, {"Transpose", "Tanh", "Transpose", "Sigmoid", "Transpose", "Exp"}),
      {128, 128});
  CHECK(Has(CallOf(run), "outputs=[0, 0, 1, 1]"));
}

TEST_CASE("branches: views are made inside, and behind where others read them") {
  onnx::ModelProto model = ModelOf({128, 128});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "flat", {16384});
  AddInts(graph, "wide", {64, 256});
  std::vector<std::string> ends;
  for (const std::string name : {"a", "b", "c", "d"}) {
    AddNode(graph, "Tanh", {"x"}, name + "0");
    AddNode(graph, "Reshape", {name + "0", "wide"}, name + "1");
    AddNode(graph, "Softmax", {name + "1"}, name + "2");
    AddNode(graph, "Sigmoid", {name + "2"}, name + "3");
    AddNode(graph, "Reshape", {name + "3", "flat"}, name + "4");
    ends.push_back(name + "4");
  }
  AddNode(graph, "Concat", ends, "y");
  AddInt(graph->mutable_node(graph->node_size() - 1), "axis", 0);
  const PassRun run = RunPass("branches", model, {128, 128});
  const std::string call = CallOf(run);
  CHECK(Has(call, "views=[1, 2, 64, 256, "));
  CHECK(std::count_if(run.after.begin(), run.after.end(), [](const std::string& line) {
          return line.find("reshape") != std::string::npos;
        }) == 4);
}

// Between these no operators are elementwise, so that each stays a call of its own.
const std::vector<std::string> kNotFused = {"Softmax", "Tanh", "Softmax"};

TEST_CASE("branches: parallel decides, and both programs give the same to the bit") {
  const onnx::ModelProto model = Branches({128, 128}, 4, kNotFused);
  compiler::CompileOptions on, off;
  off.parallel = Parallel::kOff;
  Outcome with = CompileProto(model, on), without = CompileProto(model, off);
  const auto calls = [](const Module& module) {
    return std::count_if(module.kernels.begin(), module.kernels.end(),
                         [](const KernelImport& kernel) { return kernel.name == "rewire.branches"; });
  };
  CHECK(calls(with.compiled.module) == 1);
  CHECK(calls(without.compiled.module) == 0);
  const Answer given = RunOnCounts(std::move(with.compiled.module), {128, 128});
  const Answer expected = RunOnCounts(std::move(without.compiled.module), {128, 128});
  CHECK(given.error.empty());
  CHECK(given.values == expected.values);
}

TEST_CASE("branches: parallel decides in C, too") {
  const std::string model = Branches({128, 128}, 4, kNotFused).SerializeAsString();
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  RewireCompileReport report{};
  report.struct_size = sizeof(report);
  const auto compile = [&] {
    RewireExecutable* executable = nullptr;
    const RewireStatus status =
        rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, &report, &executable);
    rewire_executable_destroy(executable);
    return status;
  };
  REQUIRE(compile() == kRewireOk);
  const std::uint64_t at_once = report.kernel_calls;
  options.parallel = kRewireParallelOff;
  REQUIRE(compile() == kRewireOk);
  CHECK(report.kernel_calls == at_once + 15);  // one call stands for four by four
  options.parallel = 2;
  CHECK(compile() == kRewireInvalidArgument);
  CHECK(std::string(rewire_last_error_message()).find("parallel is 2, which stands for nothing") !=
        std::string::npos);
}

TEST_CASE("branches: vm-compile --parallel, and vm-run on two threads") {
  const TempFolder folder;
  folder.Write("model.onnx", Branches({128, 128}, 4, kNotFused).SerializeAsString());
  const auto calls = [&](const std::string& how, const std::string& to) {
    const Finished compiled =
        RunProgram("vm-compile", {"model.onnx", "--parallel", how, "-o", to}, folder.path());
    INFO(compiled.err);
    const std::size_t at = compiled.out.find(" kernel calls");
    REQUIRE(at != std::string::npos);
    return std::stoi(compiled.out.substr(compiled.out.rfind(' ', at - 1) + 1));
  };
  CHECK(calls("off", "off.rwx") == calls("auto", "auto.rwx") + 15);
  for (const std::string name : {"off", "auto"}) {
    const Finished run =
        RunProgram("vm-run", {name + ".rwx", "--random", "--threads", "2", "--output", "y=@" + name + ".npy"},
                   folder.path());
    INFO(run.err);
    CHECK(run.exit_code == 0);
  }
  CHECK(ReadWholeFile(folder.path() / "off.npy") == ReadWholeFile(folder.path() / "auto.npy"));
  CHECK(RunProgram("vm-compile", {"model.onnx", "--parallel", "on"}, folder.path()).exit_code != 0);
}

// A block of nodes that each read the outputs of the nodes listed.
class Sketch {
 public:
  std::size_t Add(const std::vector<std::size_t>& from, double time) {
    compiler::Node* node = graph_.NewNode(compiler::NodeKind::kKernel);
    for (const std::size_t i : from) node->inputs.push_back(graph_.main.nodes[i]->outputs[0]);
    node->outputs = {graph_.NewValue("v", compiler::TensorOf(kFloat32, {}))};
    node->outputs[0]->producer = node;
    graph_.main.nodes.push_back(node);
    times_.push_back(time);
    return times_.size() - 1;
  }
  std::vector<BranchGroup> Groups() const {
    return compiler::FindBranchGroups(graph_.main, [&](const compiler::Node& node) {
      const auto& nodes = graph_.main.nodes;
      const double time =
          times_[static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), &node) - nodes.begin())];
      return time < 0 ? std::optional<double>() : time;
    });
  }

 private:
  compiler::Graph graph_;
  std::vector<double> times_;
};

TEST_CASE("branches lie between a fork and a join") {
  Sketch sketch;
  sketch.Add({}, 50000);
  for (int i = 0; i < 3; ++i) sketch.Add({0}, 100000);
  sketch.Add({1, 2, 3}, 50000);
  sketch.Add({4}, 50000);
  const std::vector<BranchGroup> groups = sketch.Groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].begin == 1);
  CHECK(groups[0].end == 4);
  CHECK(groups[0].branches == 3);
}

TEST_CASE("the two longest branches are the first and the last") {
  Sketch sketch;
  for (const double time : {10000, 90000, 20000, 80000}) sketch.Add({}, time);
  const std::vector<BranchGroup> groups = sketch.Groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].branch == std::vector<std::size_t>{2, 0, 1, 3});
}

TEST_CASE("a node without a time, and a group between two of them") {
  Sketch sketch;
  for (const double time : {90000, 90000, -1, 90000, 90000, 90000, -1, 90000}) sketch.Add({}, time);
  const std::vector<BranchGroup> groups = sketch.Groups();
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].end == 2);
  CHECK(groups[1].begin == 3);
  CHECK(groups[1].end == 6);
}

TEST_CASE("many branches become few") {
  Sketch sketch;
  for (int i = 0; i < 40; ++i) sketch.Add({}, 2000);
  const std::vector<BranchGroup> groups = sketch.Groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].branches == 8);
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(std::count(groups[0].branch.begin(), groups[0].branch.end(), i) == 5);
}

TEST_CASE("groups have at most 64 operators and 8 branches, however many there are") {
  for (const std::size_t chains : {2U, 9U, 70U}) {
    Sketch sketch;
    for (std::size_t i = 0; i < 300; ++i)
      sketch.Add(i < chains ? std::vector<std::size_t>{} : std::vector<std::size_t>{i - chains}, 20000);
    const std::vector<BranchGroup> groups = sketch.Groups();
    CAPTURE(chains);
    REQUIRE(groups.size() > 2);
    for (const BranchGroup& group : groups) {
      CHECK(group.end - group.begin <= 64);
      CHECK(group.branches <= 8);
      CHECK(group.branch.size() == group.end - group.begin);
      CHECK(*std::max_element(group.branch.begin(), group.branch.end()) < group.branches);
    }
  }
}

}  // namespace
}  // namespace rewire::test
