// SPDX-License-Identifier: Apache-2.0
// The tools name all nodes of a kernel that does the work of several, and the one of them that makes NaN.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/names/source_note.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

using Catch::Contains;

constexpr std::size_t kNodes = 8;

std::string NameOf(std::size_t node) { return "node_" + std::to_string(node); }

// A chain of `kNodes` nodes of which the one at `planted` is of the kind `op`. The others keep signs and make
// no NaN. A cube takes two steps.
onnx::ModelProto Chain(const std::string& op, std::size_t planted) {
  const std::vector<std::string> harmless = {"Tanh", "Pow", "Softsign", "Erf", "Mul"};
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 2});
  SetValue(graph->add_input(), "divisor", {2, 2});
  AddFloats(graph, "three", {}, {3});
  AddFloats(graph, "half", {}, {0.5F});
  std::string value = "x";
  for (std::size_t i = 0; i < kNodes; ++i) {
    const std::string kind = i == planted ? op : harmless[i % harmless.size()];
    std::vector<std::string> inputs = {value};
    if (kind == "Div") inputs.emplace_back("divisor");
    if (kind == "Pow") inputs.emplace_back("three");
    if (kind == "Mul") inputs.emplace_back("half");
    value = "value_" + std::to_string(i);
    AddNode(graph, kind, inputs, value)->set_name(NameOf(i));
  }
  SetValue(graph->add_output(), value, {2, 2});
  return model;
}

class Session {
 public:
  explicit Session(const onnx::ModelProto& model) {
    folder_.Write("model.onnx", model.SerializeAsString());
    const Finished done = RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx"}, folder_.path());
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
  }
  // The square root and the logarithm of -2 are NaN, and so is 0 / 0.
  Finished Finish(const std::string& program, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"model.rwx", "-i", "x=2x2xf32=1,-2,0,0.5", "-i",
                                          "divisor=2x2xf32=1,1,0,1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(program, arguments, folder_.path());
  }
  std::string Run(const std::string& program, const std::vector<std::string>& more) const {
    const Finished done = Finish(program, more);
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    return done.out;
  }
  std::string Debug(const std::string& lines) const {
    folder_.Write("script", lines + "quit\n");
    return Run("vm-debug", {"-x", "script"});
  }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

TEST_CASE("the node of a fused chain that makes the first NaN is named") {
  const std::string op = GENERATE("Sqrt", "Log", "Div");
  const std::size_t planted = GENERATE(range(std::size_t{0}, kNodes));
  const Session session(Chain(op, planted));
  const std::string node = op + " '" + NameOf(planted) + "'";
  INFO(node);
  const std::string caught = session.Debug("catch nan\nrun\n");
  CHECK_THAT(caught, Contains("rewire.fused at main@"));
  CHECK_THAT(caught, Contains("  made by " + node + "\n"));
  CHECK_THAT(session.Run("vm-run", {"--dump-values", "values"}),
             Contains(node + " has made the first NaN, in "));
  const auto index = nlohmann::json::parse(ReadWholeFile(session.folder().path() / "values" / "index.json"));
  CHECK(index["values"].back()["makes_nan"] == node);
  CHECK(index["values"].back()["nodes"].size() == kNodes);
}

TEST_CASE("all nodes of a fused chain are known to the debugger, the profile and the page") {
  const Session session(Chain("Abs", 6));
  const std::string profile = session.Run("vm-run", {"--profile", "--report", "page.html"});
  const std::string page = ReadWholeFile(session.folder().path() / "page.html");
  std::string place;
  for (std::size_t i = 0; i < kNodes; ++i) {
    CHECK_THAT(profile, Contains("'" + NameOf(i) + "'"));
    CHECK_THAT(page, Contains("'" + NameOf(i) + "'"));
    const std::string out = session.Debug("to " + NameOf(i) + "\nwhere\n");
    const std::string here = out.substr(out.find("(vm-debug) where"));
    if (i == 0) place = here;
    CHECK_THAT(here, Contains("main@"));
    CHECK(here == place);
  }
  session.folder().Write("wrong", "break node_77\n");
  CHECK_THAT(session.Finish("vm-debug", {"-x", "wrong"}).err, Contains("did you mean 'node_7'?"));
}

TEST_CASE("a kernel with what follows it names the product first") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 2});
  AddFloats(graph, "w", {2, 2}, {1, 2, 3, 4});
  AddFloats(graph, "b", {2}, {1, 2});
  AddNode(graph, "MatMul", {"x", "w"}, "product")->set_name("mat");
  AddNode(graph, "Add", {"product", "b"}, "sum")->set_name("bias");
  AddNode(graph, "Relu", {"sum"}, "y")->set_name("act");
  SetValue(graph->add_output(), "y", {2, 2});
  TempFolder folder;
  folder.Write("model.onnx", model.SerializeAsString());
  REQUIRE(RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx"}, folder.path()).exit_code == 0);
  CHECK_THAT(RunProgram("vm-dis", {"model.rwx"}, folder.path()).out,
             Contains("\"MatMul 'mat', Add 'bias', Relu 'act'\""));
}

TEST_CASE("a pattern that becomes one kernel keeps the names of its nodes") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 2});
  AddNode(graph, "Sigmoid", {"x"}, "factor")->set_name("gate");
  AddNode(graph, "Mul", {"x", "factor"}, "y")->set_name("product");
  SetValue(graph->add_output(), "y", {2, 2});
  TempFolder folder;
  folder.Write("model.onnx", model.SerializeAsString());
  REQUIRE(RunProgram("vm-compile", {"model.onnx", "-o", "model.rwx"}, folder.path()).exit_code == 0);
  const std::string code = RunProgram("vm-dis", {"model.rwx"}, folder.path()).out;
  CHECK_THAT(code, Contains("rewire.swish"));
  CHECK_THAT(code, Contains("\"Sigmoid 'gate', Mul 'product'\""));
}

TEST_CASE("a kernel that is given NaN is not said to make it") {
  const Session session(Chain("Abs", 6));
  session.folder().Write("script", "input x=2x2xf32=1,nan,0,0.5\ncatch nan\nrun\nquit\n");
  const std::string caught = session.Run("vm-debug", {"-x", "script"});
  CHECK_THAT(caught, Contains("rewire.fused at main@"));
  CHECK_THAT(caught, !Contains("made by"));
}

TEST_CASE("a note of several nodes is read as it was written") {
  std::string note;
  AddSteps("Sqrt 'a + b'", 1, &note);
  AddSteps("Pow 'it's, one'", 2, &note);
  AddSteps("Pow 'it's, one'", 1, &note);
  AddSteps("Div 'd', Erf 'e'", 1, &note);
  CHECK(note == "Sqrt 'a + b' + Pow 'it's, one' (3 steps) + Div 'd', Erf 'e'");
  const std::vector<NoteStage> stages = StagesOf(note);
  REQUIRE(stages.size() == 3);
  CHECK(stages[0].nodes == std::vector<std::string_view>{"Sqrt 'a + b'"});
  CHECK(stages[1].steps == 3);
  CHECK(stages[1].nodes == std::vector<std::string_view>{"Pow 'it's, one'"});
  CHECK(stages[2].nodes == std::vector<std::string_view>{"Div 'd'", "Erf 'e'"});
  CHECK(JoinNotes(note, "Relu 'r', Erf 'e'") == note + ", Relu 'r'");
  const std::string both = JoinNotes("Pow 'p' (2 steps)", "Relu 'r'");
  const std::vector<NoteStage> joined = StagesOf(both);
  REQUIRE(joined.size() == 1);
  CHECK(joined[0].steps == 2);
  CHECK(joined[0].nodes == std::vector<std::string_view>{"Pow 'p'", "Relu 'r'"});
  CHECK(JoinNotes("", "Relu 'r'") == "Relu 'r'");
  CHECK(FirstNodeOf("line 4, (2 steps) + more") == "line 4, (2 steps) + more");
  CHECK(StagesOf("").size() == 1);
}

}  // namespace
}  // namespace rewire::test
