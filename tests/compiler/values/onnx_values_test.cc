// SPDX-License-Identifier: Apache-2.0
// Values that ONNX leaves open (docs/onnx-values.md): each row of onnx_values.txt as a model, whose answer
// does not depend on what the compiler knows of its inputs.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>

#include "rewire/compiler/import/dtypes.h"
#include "rewire/tests/compiler/values/node_text.h"
#include "rewire/tests/compiler/values/run_model.h"
#include "rewire/vm/loader/ffi_shim/half.h"

namespace rewire::test {
namespace {

// The lines of a case by the first word of their keys; an input's line has its name in front.
using ValueCase = std::map<std::string, std::vector<std::string>>;

std::vector<ValueCase> ReadTable() {
  std::ifstream file(REWIRE_ONNX_VALUES);
  REQUIRE(file);
  std::vector<ValueCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' '), colon = line.find(": ");
    REQUIRE(colon != std::string::npos);
    const std::string key = line.substr(0, std::min(space, colon));
    if (key == "case") cases.emplace_back();
    cases.back()[key].push_back(space < colon ? line.substr(space + 1) : line.substr(colon + 2));
  }
  return cases;
}

const std::string& One(const ValueCase& given, const std::string& key) {
  const auto found = given.find(key);
  INFO("the case has one line '" << key << "'");
  REQUIRE((found != given.end() && found->second.size() == 1));
  return found->second[0];
}

struct NamedValue {
  std::string name;
  onnx::TensorProto tensor;
};

// "NAME<separator>TENSOR" in each line.
std::vector<NamedValue> Tensors(const std::vector<std::string>& lines, const std::string& separator) {
  std::vector<NamedValue> tensors;
  for (const std::string& line : lines) {
    const std::size_t at = line.find(separator);
    REQUIRE(at != std::string::npos);
    tensors.push_back(
        {line.substr(0, at), TensorOfText(std::string_view(line).substr(at + separator.size()))});
  }
  return tensors;
}

// The answer that Rewire is to give: outputs, or a part of an error's message.
struct Wanted {
  std::vector<NamedValue> outputs;
  std::string failure;
};

Wanted WantedOf(const ValueCase& given) {
  const std::vector<std::string>& lines = given.at("rewire");
  Wanted wanted;
  if (lines[0] == "reference" || lines[0] == "runtime") {
    wanted.outputs = Tensors(given.at(lines[0]), " = ");
  } else if (lines[0].starts_with("fails ")) {
    wanted.failure = lines[0].substr(6);
  } else {
    std::vector<std::string> own;
    for (const std::string& line : lines) {
      REQUIRE(line.starts_with("own "));
      own.push_back(line.substr(4));
    }
    wanted.outputs = Tensors(own, " = ");
  }
  return wanted;
}

// Without passes nothing is folded but what the compiler knows of sizes.
enum class Form { kFixed, kOpen, kConstant, kUnfolded };

bool IsConstant(Form form) { return form == Form::kConstant || form == Form::kUnfolded; }

std::string TextOf(Form form) {
  if (form == Form::kFixed) return "its inputs given";
  if (form == Form::kOpen) return "its dimensions open";
  return form == Form::kConstant ? "its inputs constants" : "its inputs constants that no pass folds";
}

onnx::ModelProto Model(const ValueCase& given, const std::vector<NamedValue>& inputs, Form form) {
  const auto opset = given.find("opset");
  onnx::ModelProto model = EmptyModel(opset == given.end() ? 18 : std::stoll(opset->second[0]));
  onnx::GraphProto* graph = model.mutable_graph();
  // Names of dimensions live as long as the model is made.
  std::vector<std::string> names;
  names.reserve(64);
  for (const NamedValue& input : inputs) {
    if (IsConstant(form)) {
      *graph->add_initializer() = input.tensor;
      graph->mutable_initializer(graph->initializer_size() - 1)->set_name(input.name);
      continue;
    }
    std::vector<Dim> dims;
    // The length of a list of axes or sizes is to be known.
    const bool list = input.tensor.dims_size() == 1 && input.tensor.data_type() == onnx::TensorProto::INT64;
    const bool open = form == Form::kOpen && !list && !given.contains("fixed");
    for (int i = 0; i < input.tensor.dims_size(); ++i) {
      if (open) {
        names.push_back(input.name + std::to_string(i));
        dims.emplace_back(names.back().c_str());
      } else {
        dims.emplace_back(input.tensor.dims(i));
      }
    }
    SetValue(graph->add_input(), input.name, dims,
             static_cast<onnx::TensorProto::DataType>(input.tensor.data_type()));
  }
  for (const std::string& line : given.at("node")) {
    const onnx::NodeProto* node = AddNodeText(graph, line);
    if (!node->domain().empty()) {
      onnx::OperatorSetIdProto* domain = model.add_opset_import();
      domain->set_domain(node->domain());
      domain->set_version(1);
    }
    if (&line != &given.at("node").back()) continue;
    for (const std::string& output : node->output()) {
      SetValue(graph->add_output(), output, {});
      graph->mutable_output(graph->output_size() - 1)->mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
  return model;
}

Elements ElementsOf(const onnx::TensorProto& tensor) {
  Elements elements{
      *compiler::DTypeOfOnnx(tensor.data_type()), Shape(tensor.dims().begin(), tensor.dims().end()), {}};
  const auto* first = reinterpret_cast<const std::byte*>(tensor.raw_data().data());
  elements.bytes.assign(first, first + tensor.raw_data().size());
  return elements;
}

template <typename T>
T At(const Elements& elements, std::size_t i) {
  T value;
  std::memcpy(&value, elements.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double FloatAt(const Elements& elements, std::size_t i) {
  if (elements.dtype.bits == 64) return At<double>(elements, i);
  if (elements.dtype.bits == 32) return static_cast<double>(At<float>(elements, i));
  return static_cast<double>(ffi_shim::HalfToFloat(At<std::uint16_t>(elements, i)));
}

// Floats of a table are rounded, and functions differ in their last bits; NaN is NaN. Empty: alike.
std::string Difference(const Elements& given, const Elements& expected) {
  if (given.dtype != expected.dtype) return "another dtype";
  if (given.shape != expected.shape) return "another shape";
  if (given.dtype.code != kDLFloat) return given.bytes == expected.bytes ? "" : "another integer";
  for (std::size_t i = 0; i < static_cast<std::size_t>(CountOf(given.shape)); ++i) {
    const double a = FloatAt(given, i), b = FloatAt(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= 2e-6 * std::fabs(b)))
      return "element " + std::to_string(i) + " is " + std::to_string(a);
  }
  return "";
}

TEST_CASE("values that ONNX leaves open are those of the table") {
  const std::vector<ValueCase> cases = ReadTable();
  CHECK(cases.size() >= 140);
  for (const ValueCase& given : cases) {
    const Wanted wanted = WantedOf(given);
    const auto lines = given.find("input");
    const std::vector<NamedValue> tensors = Tensors(lines->second, ": ");
    for (const Form form : {Form::kFixed, Form::kOpen, Form::kConstant, Form::kUnfolded}) {
      INFO(One(given, "case") << ", " << TextOf(form));
      compiler::CompileOptions options;
      if (form == Form::kUnfolded) {
        const std::vector<std::string> passes = CompilerPasses();
        options.disabled_passes = {passes.begin(), passes.end()};
      }
      LinkedModel model(Model(given, tensors, form), options);
      std::vector<Elements> inputs;
      if (!IsConstant(form)) {
        for (const NamedValue& input : tensors) inputs.push_back(ElementsOf(input.tensor));
      }
      const std::string error = model.error().empty() ? model.Run(&inputs) : model.error();
      if (!wanted.failure.empty()) {
        CHECK_THAT(error, Catch::Contains(wanted.failure));
        continue;
      }
      CHECK(error == "");
      if (!error.empty()) continue;
      for (std::uint32_t i = 0; i < wanted.outputs.size(); ++i) {
        INFO("output " << wanted.outputs[i].name);
        CHECK(Difference(model.Output(i), ElementsOf(wanted.outputs[i].tensor)) == "");
      }
    }
  }
}

}  // namespace
}  // namespace rewire::test
