// SPDX-License-Identifier: Apache-2.0
// Errors name what is wrong with a schema, or with a node of an operator that has one.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/operator_schema.h"
#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

using Schema = OperatorSchema;

std::string ErrorOf(const std::string& of_operator) {
  const auto read = ParseOperatorSchemas("{\"operators\": [" + of_operator + "]}", "ops.json");
  return read ? "no error" : read.error().message();
}

TEST_CASE("schemas: JSON that is no schema is refused with its place") {
  CHECK(ErrorOf("{") == "ops.json: it is no JSON");
  CHECK(ParseOperatorSchemas("[]", "ops.json").error().message() ==
        "ops.json: expected an object with operators, given []");
  CHECK(ErrorOf("{\"domain\": \"a\"}") == "ops.json.operators[0]: the key 'name' is missing");
  const std::string head = R"({"domain": "a", "name": "B", "inputs": [], "outputs": [{"name": "y")";
  CHECK(ErrorOf(head + "}]}") == "no error");
  CHECK(ErrorOf(head + R"(, "dtyp": "f32"}]})") ==
        "ops.json.operators[0].outputs[0]: there is no key 'dtyp'; did you mean 'dtype'? The keys: name, "
        "dtype, shape, shape_function, variadic");
  CHECK(ErrorOf(head + R"(, "shape": [1.5]}]})") ==
        "ops.json.operators[0].outputs[0].shape[0]: expected a number or an expression, given 1.5");
  CHECK(ErrorOf(head + R"(, "dtype": 3}]})") ==
        "ops.json.operators[0].outputs[0].dtype: expected a text, given 3");
  CHECK(ErrorOf(R"({"domain": "a", "name": "B", "inputs": [{"name": "x", "optional": 1}], "outputs": []})") ==
        "ops.json.operators[0].inputs[0].optional: expected true or false, given 1");
  CHECK(ErrorOf(head + R"(}], "attributes_as": "keys"})") ==
        "ops.json.operators[0].attributes_as: expected arguments, factory or node, given \"keys\"");
  const std::string attribute = head + R"(}], "attributes": [{"name": "a", "type": )";
  CHECK(ErrorOf(attribute + "\"tensor\"}]}") ==
        "ops.json.operators[0].attributes[0].type: expected int, float, string, ints or floats, given "
        "\"tensor\"");
  const std::pair<const char*, const char*> wrong[] = {{"int", "an integer"},
                                                       {"float", "a number"},
                                                       {"string", "a text"},
                                                       {"ints", "a list of integers"},
                                                       {"floats", "a list of numbers"}};
  for (const auto& [type, expected] : wrong) {
    CHECK(ErrorOf(attribute + "\"" + type + "\", \"default\": {}}]}") ==
          std::string("ops.json.operators[0].attributes[0].default: expected ") + expected + ", given {}");
  }
}

Schema Valid() {
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Own";
  schema.kernel = "acme.own";
  schema.inputs = {{"x", {"f32"}, Schema::Shape{"N", "4"}}, {"bias", {}, {}, true}};
  schema.outputs = {{"y", "x", Schema::Shape{"N", "k"}}};
  schema.attributes = {{"k", std::int64_t{2}}, {"must", 0.0, true}};
  return schema;
}

// A node with x of f32[3, 4], unless the test says otherwise.
struct WrongModel {
  WrongModel() {
    onnx::OperatorSetIdProto* opset = proto.add_opset_import();
    opset->set_domain("com.acme");
    opset->set_version(1);
    onnx::GraphProto* graph = proto.mutable_graph();
    SetValue(graph->add_input(), "x", {3, 4});
    SetValue(graph->add_output(), "y", {3, ""});
    node = AddNode(graph, "Own", {"x"}, "y");
    node->set_domain("com.acme");
    onnx::AttributeProto* must = node->add_attribute();
    must->set_name("must");
    must->set_type(onnx::AttributeProto::FLOAT);
    must->set_f(1);
  }
  onnx::ModelProto proto = EmptyModel();
  onnx::NodeProto* node = nullptr;
};

std::string SchemaError(const Schema& schema) {
  CompileOptions options;
  options.operators = {schema};
  return CompileProto(WrongModel().proto, options).message;
}

TEST_CASE("schemas: one that no node can fit is refused") {
  CHECK(SchemaError(Valid()).empty());
  const std::string where = "operator 'Own' of domain 'com.acme': ";
  Schema schema = Valid();
  const auto with = [&](auto change) {
    schema = Valid();
    change();
    return SchemaError(schema);
  };
  CHECK(with([&] { schema.name = "a b"; }) == "operator 'a b' of domain 'com.acme': 'a b' is no name");
  CHECK(with([&] { schema.outputs.clear(); }) == where + "it has no output");
  CHECK(with([&] { schema.inputs[1].name = "x"; }) == where + "the name 'x' is given twice");
  CHECK(with([&] { schema.attributes[0].name = "x"; }) == where + "the name 'x' is given twice");
  CHECK(with([&] { schema.attributes[0].name = "N"; }) ==
        where + "the name 'N' is a dimension's and an attribute's");
  CHECK(with([&] { schema.inputs[0].name = "x y"; }) ==
        where + "input 'x y': expected a name of letters, digits and _");
  CHECK(with([&] { schema.inputs[0].dtypes = {"f33"}; }) == where + "input 'x': there is no dtype 'f33'");
  CHECK(with([&] {
          schema.inputs[0].shape = {"a...", "b..."};
        }) == where + "input 'x': its shape has two '...'");
  CHECK(with([&] {
          schema.inputs[0].shape = {"N", "2 * N"};
        }) == where + "input 'x': dimension '2 * N': expected a name, a number or '...'");
  CHECK(with([&] { schema.outputs[0].dtype = "z"; }) ==
        where + "output 'y': 'z' is neither a dtype nor an input");
  CHECK(with([&] { schema.outputs[0].shape = {"M"}; }) ==
        where + "output 'y': dimension 'M': 'M' is no dimension of an input and no integer attribute");
  CHECK(with([&] { schema.outputs[0].shape = {"must"}; }) ==
        where + "output 'y': dimension 'must': 'must' is no dimension of an input and no integer attribute");
  CHECK(with([&] { schema.outputs[0].shape = {"rest..."}; }) ==
        where + "output 'y': no input has dimensions 'rest...'");
  CHECK(with([&] { schema.outputs[0].shape = {"?"}; }) ==
        where +
            "output 'y': '?' needs a shape function (shape_function) or a kernel that returns it (returns)");
  CHECK(with([&] {
          schema.returns = true;
          schema.outputs[0].shape = {"?"};
        }).empty());
  CHECK(with([&] {
          schema.returns = true;
          schema.outputs[0].shape = {"?"};
          schema.outputs[0].shape_function = "f";
        }) == where + "output 'y': the kernel returns it, so a shape function has no use");
  CHECK(with([&] { schema.inputs[0].variadic = true; }) == where + "input 'x' is variadic and not the last");
  CHECK(with([&] { schema.outputs[0].variadic = true; }) ==
        where + "output 'y' is variadic, but the kernel does not return its outputs");
  CHECK(with([&] {
          schema.returns = true;
          schema.outputs = {{"a", "", {}, {}, true}, {"y"}};
        }) == where + "output 'a' is variadic and not the last");
  CHECK(with([&] {
          schema.outputs[0].shape.reset();
          schema.outputs[0].shape_function = "f";
        }) == where + "output 'y': a shape function needs a shape, with '?' for each size that it computes");
  CHECK(with([&] {
          schema.inputs.clear();
          schema.outputs = {{"y"}};
        }) == where + "output 'y': dtype and shape are needed, as there is no input to take them from");
}

std::string ReasonOf(const onnx::ModelProto& model, const Schema& schema) {
  CompileOptions options;
  options.operators = {schema};
  const Outcome outcome = CompileProto(model, options);
  return outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
}

TEST_CASE("schemas: a node that does not fit its own is reported") {
  const auto with = [](auto change) {
    WrongModel model;
    change(&model);
    return ReasonOf(model.proto, Valid());
  };
  const auto set_x = [](WrongModel* model, const std::vector<Dim>& dims, onnx::TensorProto::DataType type) {
    model->proto.mutable_graph()->mutable_input(0)->Clear();
    SetValue(model->proto.mutable_graph()->mutable_input(0), "x", dims, type);
  };
  CHECK(with([](WrongModel*) {}).empty());
  CHECK(with([](WrongModel* m) { m->node->clear_attribute(); }) == "attribute 'must' is missing");
  CHECK(with([](WrongModel* m) { AddInt(m->node, "other", 1); }) == "attribute 'other' is not known");
  CHECK(with([](WrongModel* m) { AddString(m->node, "k", "2"); }) ==
        "attribute 'k' is of type STRING, expected INT");
  CHECK(with([](WrongModel* m) { m->node->set_input(0, ""); }) == "input 'x' is missing");
  CHECK(with([](WrongModel* m) { m->node->add_output("z"); }) == "it has 2 outputs, its schema has 1");
  CHECK(with([](WrongModel* m) {
          for (int i = 0; i < 2; ++i) m->node->add_input("x");
        }) == "it has 3 inputs, expected at least 1, at most 2");
  CHECK(with([&](WrongModel* m) {
          set_x(m, {3, 4}, onnx::TensorProto::INT64);
        }) == "input 'x' is i64, its schema has f32");
  CHECK(with([&](WrongModel* m) {
          set_x(m, {3, 5}, onnx::TensorProto::FLOAT);
        }) == "input 'x': dimension 1 is 5, and '4' in its schema is 4");
  CHECK(with([&](WrongModel* m) { set_x(m, {3}, onnx::TensorProto::FLOAT); }) ==
        "input 'x' has 1 dimensions, its schema has [N, 4]");
  CHECK(with([](WrongModel* m) { AddInt(m->node, "k", -1); }) == "its output comes out with shape [3, -1]");

  Schema same = Valid();
  same.inputs[1] = {"bias", {}, Schema::Shape{"N"}};
  WrongModel twice;
  twice.node->add_input("b");
  SetValue(twice.proto.mutable_graph()->add_input(), "b", {5});
  CHECK(ReasonOf(twice.proto, same) == "input 'bias': dimension 0 is 5, and 'N' in its schema is 3");

  same = Valid();
  same.inputs = {{"x", {}, Schema::Shape{"all..."}}, {"bias", {}, Schema::Shape{"all..."}}};
  same.outputs = {{"y"}};
  CHECK(ReasonOf(twice.proto, same) == "input 'bias' has 1 dimensions 'all...', an input before it has 2");
  same.inputs[0].shape = {"3", "all..."};
  CHECK(ReasonOf(twice.proto, same) == "input 'bias': dimension 0 is 5, and 'all...' in its schema is 4");
  same.inputs[1].optional = true;
  same.inputs[0].shape.reset();
  same.outputs[0].shape = {"all..."};
  CHECK(ReasonOf(WrongModel().proto, same) ==
        "output 'y': the input with the dimensions 'all...' is missing");

  Schema of_bias = Valid();
  of_bias.outputs[0].dtype = "bias";
  CHECK(ReasonOf(WrongModel().proto, of_bias) == "input 'bias' is missing, and output 'y' has its dtype");
  of_bias = Valid();
  of_bias.outputs[0].shape = {"bias[0]"};
  CHECK(ReasonOf(WrongModel().proto, of_bias) ==
        "output 'y': dimension 'bias[0]': 'bias[0]' is no dimension of an input and no integer attribute");
}

TEST_CASE("schemas: an unknown domain says how to give them") {
  const Outcome outcome = CompileProto(WrongModel().proto);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason ==
        "no operators of domain 'com.acme' are known; give its schema (vm-compile --operators FILE.json, "
        "or LIBRARY.json beside the LIBRARY.so of --kernels, CompileOptions::operators) and a kernel: "
        "docs/own-operators.md");
}

}  // namespace
}  // namespace rewire::test
