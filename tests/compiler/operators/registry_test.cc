// SPDX-License-Identifier: Apache-2.0
// The table of operators: what its rows say of attributes and versions, and that every node is held against
// it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/attribute_rules.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

// An operator's attributes over a range of operator sets, both included.
struct Version {
  std::string type;
  int since = 0, until = compiler::kNewestOpset;
  std::set<std::string> attributes;
};

std::vector<Version> ReadVersions() {
  std::ifstream file(std::string(SourceDir()) + "/tests/compiler/onnx_attributes.txt");
  std::vector<Version> versions;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#') continue;
    std::istringstream words(line);
    Version version;
    words >> version.type >> version.since;
    for (std::string name; words >> name;) version.attributes.insert(name);
    if (!versions.empty() && versions.back().type == version.type) versions.back().until = version.since - 1;
    versions.push_back(std::move(version));
  }
  return versions;
}

// The list names operators of ONNX's own domains alone, and those of others with their domain.
std::string ListedName(const compiler::DomainOperator& known) {
  const std::string domain = known.domain;
  const bool other = domain == "com.microsoft" || domain == "ai.onnx.ml";
  return other ? domain + ":" + known.row->type : known.row->type;
}

bool Overlap(const Version& version, const std::string& name, const compiler::Operator& row) {
  const int until = row.until == 0 ? compiler::kNewestOpset : row.until;
  return version.type == name && version.since <= until && row.since <= version.until;
}

TEST_CASE("rows know the attributes that ONNX gives their operators, and no others") {
  const std::vector<Version> versions = ReadVersions();
  REQUIRE(versions.size() > 200);
  for (const compiler::DomainOperator& operator_of : compiler::AllOperators()) {
    const compiler::Operator* row = operator_of.row;
    if (std::string(operator_of.domain) == "tflite") continue;  // import/read_tflite_test.cc has these
    std::set<std::string> known;
    bool seen = false;
    for (const Version& version : versions) {
      if (!Overlap(version, ListedName(operator_of), *row)) continue;
      seen = true;
      for (const std::string& name : version.attributes) {
        if (name == "consumed_inputs") continue;
        INFO(row->type << " of operator set " << version.since << ": " << name);
        const auto rule = compiler::FindRule(row->attributes, name);
        REQUIRE(rule);
        CHECK((rule->before == 0 || rule->before > version.until));
        known.insert(name);
      }
    }
    INFO(row->type << " from operator set " << row->since << " on");
    CHECK(seen);
    std::string_view rules = row->attributes;
    while (const auto rule = compiler::NextRule(&rules)) {
      // An attribute that has come later is read in earlier versions too, where a model has it.
      INFO(std::string(rule->name));
      CHECK(known.contains(std::string(rule->name)));
    }
  }
}

TEST_CASE("docs/operators.md has the rows of the table, and names none of them as not known") {
  std::ifstream page(std::string(SourceDir()) + "/docs/operators.md");
  REQUIRE(page);
  std::multiset<std::string> listed, rows;
  std::set<std::string> absent, known;
  std::string domain;
  bool is_absent = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) domain = line.substr(3);
    if (line.rfind("| operator | ", 0) == 0) is_absent = false;
    if (line.rfind("| operators | ", 0) == 0) is_absent = true;
    if (line.rfind("| ", 0) != 0 || line.rfind("| operator", 0) == 0) continue;
    const std::size_t end = line.find(" |", 2);
    const std::string names = line.substr(2, end - 2);
    if (!is_absent) {
      listed.insert(domain + " " + names + " " + line.substr(end + 3, line.find(" |", end + 2) - end - 3));
      continue;
    }
    std::istringstream words(names);
    for (std::string name; std::getline(words >> std::ws, name, ',');) absent.insert(domain + " " + name);
  }
  for (const compiler::DomainOperator& each : compiler::AllOperators()) {
    const std::string name = std::string(*each.domain == 0 ? "ai.onnx" : each.domain) + " " + each.row->type;
    const int since = each.row->since, until = each.row->until;
    rows.insert(name + " " + std::to_string(since) +
                (until == 0       ? "+"
                 : until == since ? ""
                                  : " to " + std::to_string(until)));
    known.insert(name);
  }
  CHECK(listed == rows);
  CHECK(absent.size() > 50);
  for (const std::string& name : absent) CHECK(known.count(name) == 0);
}

// The reasons for which a model of one node is not supported.
std::string ReasonFor(const onnx::ModelProto& model) {
  const Outcome outcome = CompileProto(model);
  if (outcome.unsupported.size() != 1) return "message: " + outcome.message;
  return outcome.unsupported[0].reason;
}

TEST_CASE("an operator set that is newer than the table is not guessed") {
  const auto relu = [](std::int64_t opset) {
    onnx::ModelProto model = EmptyModel(opset);
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {2});
    AddNode(graph, "Relu", {"x"}, "y");
    SetValue(graph->add_output(), "y", {2});
    return model;
  };
  CHECK(CompileProto(relu(compiler::kNewestOpset)).message.empty());
  const Outcome newer = CompileProto(relu(99));
  REQUIRE(newer.unsupported.size() == 1);
  CHECK(newer.unsupported[0].node == "y");
  CHECK(newer.unsupported[0].opset == 99);
  CHECK(newer.unsupported[0].reason == "operator set 99 is newer than 28, the newest that is known");
}

TEST_CASE("attributes are not guessed") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 3});
  SetValue(graph->add_output(), "y", {2, 3});
  SECTION("that nobody knows") {
    AddInt(AddNode(graph, "Relu", {"x"}, "y"), "bogus", 3);
    CHECK(ReasonFor(model) == "attribute 'bogus' is not known");
  }
  SECTION("that have become inputs") {
    AddIntList(AddNode(graph, "Unsqueeze", {"x"}, "y"), "axes", {0});
    CHECK(ReasonFor(model) == "attribute 'axes' is not known from operator set 13 on");
  }
  SECTION("of another type") {
    AddInt(AddNode(graph, "LeakyRelu", {"x"}, "y"), "alpha", 1);
    CHECK(ReasonFor(model) == "attribute 'alpha' is of type INT, expected FLOAT");
  }
  SECTION("that are there twice") {
    onnx::NodeProto* node = AddNode(graph, "Softmax", {"x"}, "y");
    AddInt(node, "axis", 0);
    AddInt(node, "axis", 1);
    CHECK(ReasonFor(model) == "attribute 'axis' is given twice");
  }
  SECTION("with a value that is not supported") {
    model.mutable_opset_import(0)->set_version(8);
    for (const char* name : {"scale", "bias", "mean", "variance"}) AddFloats(graph, name, {3}, {1, 1, 1});
    AddInt(AddNode(graph, "BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, "y"), "spatial",
           0);
    CHECK(ReasonFor(model) == "attribute 'spatial' is 0, only 1 is supported");
  }
  SECTION("that this form of the operator does not look at") {
    model.mutable_opset_import(0)->set_version(10);
    AddFloats(graph, "scales", {2}, {2, 2});
    AddString(AddNode(graph, "Resize", {"x", "scales"}, "y"), "nearest_mode", "ceil");
    CHECK(ReasonFor(model) == "attribute 'nearest_mode' is not supported in this form of the operator");
  }
  SECTION("that contradict the weights") {
    graph->mutable_input(0)->Clear();
    SetValue(graph->mutable_input(0), "x", {1, 1, 4, 4});
    AddFloats(graph, "w", {1, 1, 2, 2}, {1, 1, 1, 1});
    AddIntList(AddNode(graph, "Conv", {"x", "w"}, "y"), "kernel_shape", {3, 3});
    CHECK(ReasonFor(model) == "kernel_shape is [3, 3], the weights are [1, 1, 2, 2]");
  }
}

TEST_CASE("a hint of old operator sets is passed over") {
  onnx::ModelProto model = EmptyModel(5);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddIntList(AddNode(graph, "Relu", {"x"}, "y"), "consumed_inputs", {0});
  SetValue(graph->add_output(), "y", {2});
  CHECK(CompileProto(model).message.empty());
}

TEST_CASE("nodes behind one that is not supported are judged too") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddNode(graph, "Frobnicate", {"x"}, "a");
  AddNode(graph, "Relu", {"a"}, "b");
  AddInt(AddNode(graph, "Relu", {"b"}, "c"), "bogus", 1);
  onnx::NodeProto* branch = AddNode(graph, "If", {"c"}, "d");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto* body = AddGraph(branch, name);
    AddNode(body, std::string("Strange_") + name, {"b"}, std::string("inner_") + name);
    SetValue(body->add_output(), std::string("inner_") + name, {2});
  }
  AddNode(graph, "Neg", {"d"}, "y");
  SetValue(graph->add_output(), "y", {2});
  const Outcome outcome = CompileProto(model);
  std::vector<std::string> nodes;
  for (const compiler::Unsupported& node : outcome.unsupported)
    nodes.push_back(node.node + ": " + node.reason);
  CHECK(nodes == std::vector<std::string>{"a: the operator is not known; docs/operators.md lists those that "
                                          "are, docs/own-operators.md says how to add one",
                                          "c: attribute 'bogus' is not known",
                                          "inner_then_branch: the operator is not known; docs/operators.md "
                                          "lists those that are, docs/own-operators.md says how to add one",
                                          "inner_else_branch: the operator is not known; docs/operators.md "
                                          "lists those that are, docs/own-operators.md says how to add one"});
  CHECK(outcome.message == "model: 4 of 7 nodes are not supported");
}

TEST_CASE("inputs and initializers of types that are not known are lines of the list") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "words", {2}, onnx::TensorProto::UNDEFINED);
  SetValue(graph->add_input(), "x", {2});
  AddWeight(graph, "more", onnx::TensorProto::FLOAT, {2})->set_data_type(99);
  AddNode(graph, "Identity", {"words"}, "a");
  AddNode(graph, "Identity", {"more"}, "b");
  AddInt(AddNode(graph, "Relu", {"x"}, "c"), "bogus", 1);
  SetValue(graph->add_output(), "c", {2});
  const Outcome outcome = CompileProto(model);
  std::vector<std::string> lines;
  for (const compiler::Unsupported& line : outcome.unsupported)
    lines.push_back(line.node + " (" + line.op_type + "): " + line.reason);
  CHECK(lines == std::vector<std::string>{
                     "more (initializer): tensor 'more': element type data type 99 is not supported",
                     "words (input): 'words' has element type UNDEFINED",
                     "c (Relu): attribute 'bogus' is not known"});
  CHECK(outcome.message == "model: 3 of 5 nodes, inputs and initializers are not supported");
}

}  // namespace
}  // namespace rewire::test
