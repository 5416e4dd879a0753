// SPDX-License-Identifier: Apache-2.0
// Strings: positions in lists that the compiler knows. Which operators take them, and what the executable's
// metadata says of outputs.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

using Texts = std::vector<std::string>;

void AddTexts(onnx::NodeProto* node, const std::string& name, const Texts& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute->add_strings(value);
}

// "x" [N] of floats becomes "word": 0 is "none", 1 "some", 2 "none" again, any other "many".
onnx::ModelProto Words() {
  onnx::ModelProto model = EmptyModel(17);
  onnx::OperatorSetIdProto* domain = model.add_opset_import();
  domain->set_domain("ai.onnx.ml");
  domain->set_version(4);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"});
  AddInt(AddNode(graph, "Cast", {"x"}, "number"), "to", onnx::TensorProto::INT64);
  onnx::NodeProto* encoder = AddNode(graph, "LabelEncoder", {"number"}, "word");
  encoder->set_domain("ai.onnx.ml");
  AddIntList(encoder, "keys_int64s", {0, 1, 2});
  AddTexts(encoder, "values_strings", {"none", "some", "none"});
  AddString(encoder, "default_string", "many");
  return model;
}

std::string ListOf(const Module& module, const std::string& key) {
  for (const auto& [name, value] : module.metadata) {
    if (name == key) return value;
  }
  return "";
}

void Give(onnx::ModelProto* model, const std::string& output, onnx::TensorProto::DataType type) {
  SetValue(model->mutable_graph()->add_output(), output, {"N"}, type);
}

TEST_CASE("an output of strings has its list in the metadata") {
  onnx::ModelProto model = Words();
  SECTION("as it is") { Give(&model, "word", onnx::TensorProto::STRING); }
  SECTION("moved") {
    AddInts(model.mutable_graph(), "shape", {-1, 1});
    AddNode(model.mutable_graph(), "Reshape", {"word", "shape"}, "column");
    AddInt(AddNode(model.mutable_graph(), "Cast", {"column"}, "text"), "to", onnx::TensorProto::STRING);
    AddNode(model.mutable_graph(), "Identity", {"text"}, "same");
    Give(&model, "same", onnx::TensorProto::STRING);
  }
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  CHECK(ListOf(outcome.compiled.module, "strings main.0") == R"(["none","some","many"])");
}

TEST_CASE("strings are looked up when compiling") {
  onnx::ModelProto model = Words();
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<float> expected;
  SECTION("LabelEncoder") {
    onnx::NodeProto* encoder = AddNode(graph, "LabelEncoder", {"word"}, "y");
    encoder->set_domain("ai.onnx.ml");
    AddTexts(encoder, "keys_strings", {"many", "none"});
    onnx::AttributeProto* values = encoder->add_attribute();
    values->set_name("values_floats");
    values->set_type(onnx::AttributeProto::FLOATS);
    values->add_floats(7.5F);
    values->add_floats(8.5F);
    expected = {8.5F, -0.0F, 8.5F, 7.5F};
  }
  SECTION("OneHotEncoder") {
    onnx::NodeProto* encoder = AddNode(graph, "OneHotEncoder", {"word"}, "y");
    encoder->set_domain("ai.onnx.ml");
    AddTexts(encoder, "cats_strings", {"some", "many"});
    expected = {0, 0, 1, 0, 0, 0, 0, 1};
  }
  SECTION("CategoryMapper") {
    onnx::NodeProto* mapper = AddNode(graph, "CategoryMapper", {"word"}, "place");
    mapper->set_domain("ai.onnx.ml");
    AddTexts(mapper, "cats_strings", {"some", "many"});
    AddIntList(mapper, "cats_int64s", {4, 5});
    AddInt(AddNode(graph, "Cast", {"place"}, "y"), "to", onnx::TensorProto::FLOAT);
    expected = {-1, 4, -1, 5};
  }
  Give(&model, "y", onnx::TensorProto::FLOAT);
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {4}).values == expected);
  CHECK(ListOf(outcome.compiled.module, "strings main.0").empty());
}

TEST_CASE("a constant of strings gives its elements") {
  onnx::ModelProto model = Words();
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("of the graph") {
    onnx::TensorProto* names = AddWeight(graph, "names", onnx::TensorProto::STRING, {4});
    for (const char* name : {"b", "a", "b", "c"}) names->add_string_data(name);
  }
  SECTION("of a node") {
    AddTexts(AddNode(graph, "Constant", {}, "names"), "value_strings", {"b", "a", "b", "c"});
  }
  AddNode(graph, "Gather", {"names", "number"}, "y");
  Give(&model, "y", onnx::TensorProto::STRING);
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  CHECK(ListOf(outcome.compiled.module, "strings main.0") == R"(["b","a","c"])");
}

TEST_CASE("strings are scattered among those of another list") {
  onnx::ModelProto model = Words();
  onnx::GraphProto* graph = model.mutable_graph();
  const bool by_row = GENERATE(false, true);
  for (const auto& [name, values] : {std::pair("names", Texts{"b", "a"}), std::pair("more", Texts{"c"})}) {
    const auto count = static_cast<std::int64_t>(values.size());
    onnx::TensorProto* texts = AddWeight(graph, name, onnx::TensorProto::STRING, {count});
    for (const std::string& value : values) texts->add_string_data(value);
  }
  AddInts(graph, "flat", {1});
  onnx::TensorProto* row = AddWeight(graph, "row", onnx::TensorProto::INT64, {1, 1});
  row->add_int64_data(1);
  onnx::NodeProto* node = AddNode(graph, by_row ? "ScatterND" : "ScatterElements",
                                  {"names", by_row ? "row" : "flat", "more"}, "y");
  Give(&model, "y", onnx::TensorProto::STRING);
  CHECK(ListOf(CompileProto(model).compiled.module, "strings main.0") == R"(["b","a","c"])");
  AddString(node, "reduction", "max");
  const Outcome reduced = CompileProto(model);
  REQUIRE(reduced.unsupported.size() == 1);
  CHECK(reduced.unsupported[0].reason == "strings under the reduction 'max'");
}

TEST_CASE("what strings cannot become is refused") {
  onnx::ModelProto model = Words();
  onnx::GraphProto* graph = model.mutable_graph();
  std::string reason;
  SECTION("arithmetic") {
    AddNode(graph, "Add", {"word", "word"}, "y");
    reason = "input 0, 'word', is strings";
  }
  SECTION("indices") {
    AddNode(graph, "Gather", {"x", "word"}, "y");
    reason = "input 1, 'word', is strings";
  }
  SECTION("one side of a comparison") {
    AddNode(graph, "Equal", {"word", "x"}, "y");
    reason = "one input is strings, the other is not";
  }
  SECTION("one part of several") {
    AddInt(AddNode(graph, "Concat", {"word", "x"}, "y"), "axis", 0);
    reason = "some inputs are strings, others are not";
  }
  SECTION("what is scattered") {
    AddInts(graph, "zero", {0});
    AddNode(graph, "ScatterElements", {"word", "zero", "x"}, "y");
    reason = "some inputs are strings, others are not";
  }
  SECTION("one branch of a choice") {
    AddInt(AddNode(graph, "Cast", {"x"}, "yes"), "to", onnx::TensorProto::BOOL);
    AddNode(graph, "Where", {"yes", "word", "x"}, "y");
    reason = "some inputs are strings, others are not";
  }
  SECTION("keys that are numbers") {
    onnx::NodeProto* encoder = AddNode(graph, "LabelEncoder", {"word"}, "y");
    encoder->set_domain("ai.onnx.ml");
    AddIntList(encoder, "keys_int64s", {1});
    AddIntList(encoder, "values_int64s", {1});
    reason = "keys are numbers, X is not";
  }
  SECTION("the results of one branch alone") {
    AddNode(graph, "ReduceMax", {"x"}, "most");
    AddInt(AddNode(graph, "Cast", {"most"}, "yes"), "to", onnx::TensorProto::BOOL);
    onnx::NodeProto* branch = AddNode(graph, "If", {"yes"}, "y");
    for (const std::string name : {"then_branch", "else_branch"}) {
      onnx::GraphProto* body = AddGraph(branch, name);
      AddNode(body, "Identity", {name[0] == 't' ? "word" : "number"}, "inner_" + name);
      SetValue(body->add_output(), "inner_" + name, {"N"}, onnx::TensorProto::STRING);
    }
    reason = "output 0 is strings in one branch alone";
  }
  SECTION("what a loop stacks up, or carries later alone") {
    const bool stacks = GENERATE(true, false);
    AddInts(graph, "twice", {2});
    onnx::NodeProto* loop = AddNode(graph, "Loop", {"twice", ""}, "y");
    onnx::GraphProto* body = AddGraph(loop, "body");
    for (const char* name : {"iteration", "before"})
      SetValue(body->add_input(), name, {}, onnx::TensorProto::INT64);
    AddNode(body, "Identity", {"before"}, "after");
    SetValue(body->add_output(), "after", {}, onnx::TensorProto::BOOL);
    if (!stacks) {
      loop->add_input("number");
      SetValue(body->add_input(), "carried", {"N"}, onnx::TensorProto::INT64);
    }
    AddNode(body, "Identity", {"word"}, "inner");
    SetValue(body->add_output(), "inner", {"N"}, onnx::TensorProto::STRING);
    reason = stacks ? "its body stacks up strings"
                    : "carried value 0 is strings either at first or later, not both";
  }
  SECTION("a number of rounds") {
    onnx::NodeProto* loop = AddNode(graph, "Loop", {"word", ""}, "y");
    (void)AddGraph(loop, "body");
    reason = "input 0 is strings";
  }
  SECTION("the width of a border") {
    AddNode(graph, "Pad", {"x", "word"}, "y");
    reason = "input 1 is strings";
  }
  SECTION("what fills the border of numbers") {
    AddInts(graph, "pads", {1, 1});
    AddNode(graph, "Pad", {"x", "pads", "word"}, "y");
    reason = "strings fill the border of numbers";
  }
  SECTION("numbers in the border of strings") {
    AddInts(graph, "pads", {1, 1});
    AddInts(graph, "zero", {0});
    AddNode(graph, "Pad", {"word", "pads", "zero"}, "y");
    reason = "numbers fill the border of strings";
  }
  Give(&model, "y", onnx::TensorProto::FLOAT);
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == reason);
}

TEST_CASE("a list that metadata cannot hold is refused") {
  onnx::ModelProto model = Words();
  onnx::AttributeProto* values = model.mutable_graph()->mutable_node(1)->mutable_attribute(1);
  Give(&model, "word", onnx::TensorProto::STRING);
  SECTION("too long") {
    values->set_strings(0, std::string(65520, 'n'));
    CHECK(CompileProto(model).message ==
          "model: the list 'strings main.0' takes 65545 bytes, the limit is 65536");
  }
  SECTION("no text") {
    values->set_strings(0, "\xff");
    CHECK(CompileProto(model).message == "model: the list 'strings main.0' is not UTF-8");
  }
}

TEST_CASE("inputs and outputs of strings bring their lists along, behind all others") {
  onnx::ModelProto model = EmptyModel(20);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "a", {"N"}, onnx::TensorProto::STRING);
  SetValue(graph->add_input(), "b", {1}, onnx::TensorProto::STRING);
  AddNode(graph, "StringConcat", {"a", "b"}, "y");
  AddNode(graph, "Identity", {"a"}, "z");
  Give(&model, "y", onnx::TensorProto::STRING);
  SetValue(graph->add_output(), "z", {"N"}, onnx::TensorProto::STRING);
  SECTION("as metadata says") {
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const Module& module = outcome.compiled.module;
    std::vector<std::string> inputs;
    for (const NamedType& input : module.functions[0].inputs) inputs.push_back(input.name);
    CHECK(inputs == std::vector<std::string>{"a", "b", "a.offsets", "a.bytes", "b.offsets", "b.bytes"});
    const Array<std::string>& outputs = module.functions[0].output_names;
    CHECK(std::vector<std::string>(outputs.begin(), outputs.end()) ==
          std::vector<std::string>{"y", "z", "y.offsets", "y.bytes", "z.offsets", "z.bytes"});
    CHECK(ListOf(module, "input strings main.0") == R"({"bytes":3,"offsets":2})");
    CHECK(ListOf(module, "input strings main.1") == R"({"bytes":5,"offsets":4})");
    CHECK(ListOf(module, "strings main.0") == R"({"bytes":3,"offsets":2})");
    CHECK(ListOf(module, "strings main.1") == R"({"bytes":5,"offsets":4})");
  }
  SECTION("each output for itself, also where several have one list") {
    AddNode(graph, "Identity", {"z"}, "again");
    SetValue(graph->add_output(), "again", {"N"}, onnx::TensorProto::STRING);
    AddNode(graph, "Reshape", {"a", "rows"}, "turned");
    AddInts(graph, "rows", {-1, 1});
    SetValue(graph->add_output(), "turned", {"N", 1}, onnx::TensorProto::STRING);
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const Module& module = outcome.compiled.module;
    CHECK(ListOf(module, "strings main.1") == R"({"bytes":7,"offsets":6})");
    CHECK(ListOf(module, "strings main.2") == R"({"bytes":9,"offsets":8})");
    CHECK(ListOf(module, "strings main.3") == R"({"bytes":11,"offsets":10})");
  }
  SECTION("unless an input has the name") {
    SetValue(graph->add_input(), "b.bytes", {1});
    CHECK(CompileProto(model).message == "model: the name 'b.bytes' is needed for an input's strings");
  }
  SECTION("unless an output has the name") {
    AddNode(graph, "Shape", {"a"}, "z.offsets");
    SetValue(graph->add_output(), "z.offsets", {1}, onnx::TensorProto::INT64);
    CHECK(CompileProto(model).message == "model: the name 'z.offsets' is needed for an output's strings");
  }
  SECTION("unless its rank is not known") {
    graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    const Outcome outcome = CompileProto(model);
    REQUIRE(!outcome.unsupported.empty());
    CHECK(outcome.unsupported[0].reason == "it is strings and declares no shape");
  }
}

TEST_CASE("strings of constants are made when compiling") {
  onnx::ModelProto model = EmptyModel(20);
  onnx::GraphProto* graph = model.mutable_graph();
  AddTexts(AddNode(graph, "Constant", {}, "a"), "value_strings", {"x", "y"});
  AddNode(graph, "StringConcat", {"a", "a"}, "y");
  Give(&model, "y", onnx::TensorProto::STRING);
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  CHECK(ListOf(outcome.compiled.module, "strings main.0") == R"(["xx","yy"])");
  CHECK(outcome.compiled.kernel_calls == 0);
}

TEST_CASE("maps are a tensor, and their keys metadata") {
  onnx::ModelProto model = EmptyModel(17);
  onnx::OperatorSetIdProto* domain = model.add_opset_import();
  domain->set_domain("ai.onnx.ml");
  domain->set_version(1);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  onnx::NodeProto* node = AddNode(graph, "ZipMap", {"x"}, "y");
  node->set_domain("ai.onnx.ml");
  graph->add_output()->set_name("y");
  std::string keys, reason;
  SECTION("of strings") {
    AddTexts(node, "classlabels_strings", {"a", "\"b\""});
    keys = R"(["a","\"b\""])";
  }
  SECTION("of numbers") {
    AddIntList(node, "classlabels_int64s", {3, 5});
    keys = "[3,5]";
  }
  SECTION("of too many") {
    AddIntList(node, "classlabels_int64s", {3, 5, 7});
    reason = "X has shape [N, 2] with 3 keys";
  }
  const Outcome outcome = CompileProto(model);
  if (!reason.empty()) {
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason == reason);
    return;
  }
  REQUIRE(outcome.message.empty());
  CHECK(ListOf(outcome.compiled.module, "keys main.0") == keys);
  CHECK(RunOnCounts(outcome.compiled.module, {2, 2}).values == std::vector<float>{0, 1, 2, 3});
}

}  // namespace
}  // namespace rewire::test
