// SPDX-License-Identifier: Apache-2.0
// Sizes that broadcast: numpy's rule for every operator that has it, whether the compiler knows a size or
// only the run. What is known when a model is compiled and what a run computes give one answer.
#include <catch2/catch.hpp>

#include "rewire/compiler/ir/dim_expr.h"
#include "rewire/tests/compiler/values/run_model.h"

namespace rewire::test {
namespace {

using onnx::TensorProto;

constexpr std::int64_t kSizes[] = {0, 1, 2, 5};
constexpr std::int64_t kOpen = -1;  // in place of a size

// numpy's; nullopt where two sizes differ and none is 1.
std::optional<Shape> Broadcast(const std::vector<Shape>& shapes) {
  std::size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape result(rank, 1);
  for (const Shape& shape : shapes) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& size = result[rank - shape.size() + i];
      if (size != 1 && shape[i] != 1 && size != shape[i]) return std::nullopt;
      if (size == 1) size = shape[i];
    }
  }
  return result;
}

struct BroadcastCase {
  const char* type;
  std::vector<TensorProto::DataType> dtypes;  // of the operands
  std::int64_t opset = 18;
};

std::vector<BroadcastCase> Cases() {
  std::vector<BroadcastCase> cases;
  const auto F = TensorProto::FLOAT, I = TensorProto::INT64, B = TensorProto::BOOL, U = TensorProto::UINT8;
  for (const char* type : {"Add", "Sub", "Mul", "Div", "Pow", "Equal", "Greater", "Less", "GreaterOrEqual",
                           "LessOrEqual", "Max", "Min", "Sum", "Mean", "PRelu"})
    cases.push_back({type, {F, F}});
  for (const char* type : {"Add", "Mul", "Mod", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    cases.push_back({type, {I, I}});
  for (const char* type : {"And", "Or", "Xor"}) cases.push_back({type, {B, B}});
  cases.push_back({"BitShift", {U, U}});
  cases.push_back({"Where", {B, F, F}});
  for (const char* type : {"Max", "Min", "Sum", "Mean"}) cases.push_back({type, {F, F, F}});
  cases.push_back({"Expand", {F, I}});
  cases.push_back({"MatMul", {F, F}});
  return cases;
}

Elements Make(TensorProto::DataType dtype, const Shape& shape, int seed) {
  const auto count = static_cast<std::size_t>(CountOf(shape));
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<int>((i * 7 + static_cast<std::size_t>(seed) * 3) % 5) + 1;
    floats.push_back(static_cast<float>(number));
    integers.push_back(number);
    bytes.push_back(static_cast<std::uint8_t>(number % 2));
  }
  if (dtype == TensorProto::FLOAT) return ElementsOf(shape, floats);
  if (dtype == TensorProto::INT64) return ElementsOf(shape, integers);
  Elements made = ElementsOf(shape, bytes);
  if (dtype == TensorProto::BOOL) made.dtype = kBool8;
  return made;
}

// MatMul's operands are [.., 2, 3] and [.., 3, 2].
Shape ShapeOf(const BroadcastCase& given, std::size_t operand, Shape sizes) {
  if (std::string(given.type) != "MatMul") return sizes;
  sizes.push_back(operand == 0 ? 2 : 3);
  sizes.push_back(operand == 0 ? 3 : 2);
  return sizes;
}

// The operator over operands of these sizes, kOpen ones under names of their own. The outputs are what it
// gives and the shape of that, which the compiler computes where it can.
onnx::ModelProto Model(const BroadcastCase& given, const std::vector<Shape>& sizes) {
  onnx::ModelProto model = EmptyModel(given.opset);
  onnx::GraphProto* graph = model.mutable_graph();
  static const std::vector<std::string> kNames = {"A0", "A1", "B0", "B1", "C0", "C1"};
  std::vector<std::string> operands;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < sizes[k].size(); ++i) {
      if (sizes[k][i] == kOpen)
        dims.emplace_back(kNames[2 * k + i].c_str());
      else
        dims.emplace_back(sizes[k][i]);
    }
    if (std::string(given.type) == "MatMul") {
      for (const std::int64_t size : ShapeOf(given, k, {})) dims.emplace_back(size);
    }
    operands.push_back("x" + std::to_string(k));
    SetValue(graph->add_input(), operands.back(), dims, given.dtypes[k]);
  }
  const bool expands = std::string(given.type) == "Expand";
  if (expands) {
    // To the shape of an operand of which nothing else is used.
    AddNode(graph, "Shape", {operands[1]}, "target");
    operands[1] = "target";
  }
  onnx::NodeProto* node = AddNode(graph, given.type, operands, "y");
  if (std::string(given.type) == "BitShift") AddString(node, "direction", "LEFT");
  AddNode(graph, "Shape", {"y"}, "shape");
  for (const char* name : {"y", "shape"}) {
    SetValue(graph->add_output(), name, {});
    graph->mutable_output(graph->output_size() - 1)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  return model;
}

std::string TextOf(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) {
    text += " [";
    for (const std::int64_t size : shape) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
    text += "]";
  }
  return text;
}

// Each way to put sizes in the places that are kOpen, over what `body` is called with.
template <typename Body>
void ForEachSize(std::vector<Shape> shapes, const Body& body, std::size_t operand = 0, std::size_t axis = 0) {
  while (operand < shapes.size() && axis == shapes[operand].size()) ++operand, axis = 0;
  if (operand == shapes.size()) return body(shapes);
  if (shapes[operand][axis] != kOpen) return ForEachSize(shapes, body, operand, axis + 1);
  for (const std::int64_t size : kSizes) {
    shapes[operand][axis] = size;
    ForEachSize(shapes, body, operand, axis + 1);
  }
}

// Runs the model of these sizes for all sizes of the open ones. What broadcasts gives the shape that it
// should, and the values that `values` has for it (a model of fixed sizes gives them first); what does not is
// refused.
int Check(const BroadcastCase& given, const std::vector<Shape>& form,
          std::map<std::string, Elements>* values) {
  LinkedModel model(Model(given, form));
  int runs = 0;
  ForEachSize(form, [&](const std::vector<Shape>& sizes) {
    INFO(given.type << " of" << TextOf(sizes) << ", compiled for" << TextOf(form));
    std::optional<Shape> expected = Broadcast(sizes);
    if (!model.error().empty()) {
      if (expected) FAIL_CHECK(model.error());
      return;
    }
    std::vector<Elements> inputs;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      inputs.push_back(Make(given.dtypes[k], ShapeOf(given, k, sizes[k]), static_cast<int>(k)));
    const std::string error = model.Run(&inputs);
    ++runs;
    if (!expected) {
      // A kernel is not called for an output of no elements (VM rule of TVM's), and cannot refuse its
      // operands.
      const bool is_empty = error.empty() && CountOf(model.Output(0).shape) == 0;
      CHECK((error != "" || is_empty));
      return;
    }
    if (std::string(given.type) == "MatMul") expected->insert(expected->end(), {2, 2});
    REQUIRE(error == "");
    const Elements y = model.Output(0);
    CHECK(y.shape == *expected);
    CHECK(model.Output(1) == ElementsOf({static_cast<std::int64_t>(expected->size())}, *expected));
    const auto [known, is_first] = values->try_emplace(TextOf(sizes), y);
    if (!is_first) CHECK(y == known->second);
  });
  return runs;
}

TEST_CASE("operands of fixed and open sizes broadcast by one rule") {
  int runs = 0;
  for (const BroadcastCase& given : Cases()) {
    std::map<std::string, Elements> values;
    const std::size_t operands = given.dtypes.size();
    std::vector<std::vector<Shape>> forms;
    ForEachSize(std::vector<Shape>(operands, {kOpen}), [&](const std::vector<Shape>& sizes) {
      if (operands == 2) forms.push_back(sizes);
    });
    forms.push_back(std::vector<Shape>(operands, {kOpen}));
    for (const std::int64_t size : kSizes) {
      for (std::size_t fixed = 0; fixed < operands; ++fixed) {
        std::vector<Shape> form(operands, {kOpen});
        form[fixed] = {size};
        forms.push_back(form);
      }
    }
    for (const std::vector<Shape>& form : forms) runs += Check(given, form, &values);
  }
  CHECK(runs > 2000);
}

TEST_CASE("operands of other ranks broadcast by the same rule") {
  int runs = 0;
  for (const BroadcastCase& given : Cases()) {
    if (given.dtypes.size() > 2) continue;
    std::map<std::string, Elements> values;
    for (const std::vector<Shape>& form : std::vector<std::vector<Shape>>{{{kOpen, kOpen}, {kOpen}},
                                                                          {{kOpen}, {kOpen, kOpen}},
                                                                          {{kOpen, 1}, {1, kOpen}},
                                                                          {{kOpen, kOpen}, {}},
                                                                          {{kOpen, 2}, {kOpen, kOpen}},
                                                                          {{1, kOpen}, {kOpen, kOpen}}})
      runs += Check(given, form, &values);
  }
  CHECK(runs > 2000);
}

// x[:N/2] + x[N/2:], as rotary embeddings have it: one symbol, two expressions.
TEST_CASE("halves of one axis broadcast by their sizes") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"});
  AddInts(graph, "two", {2});
  AddInts(graph, "zero", {0});
  AddNode(graph, "Shape", {"x"}, "n");
  AddNode(graph, "Div", {"n", "two"}, "half");
  AddNode(graph, "Slice", {"x", "zero", "half"}, "first");
  AddNode(graph, "Slice", {"x", "half", "n"}, "second");
  AddNode(graph, "Add", {"first", "second"}, "y");
  SetValue(graph->add_output(), "y", {""});
  LinkedModel halves(model);
  REQUIRE(halves.error() == "");
  std::vector<Elements> one = {ElementsOf<float>({1}, {3})}, four = {ElementsOf<float>({4}, {1, 2, 3, 4})};
  REQUIRE(halves.Run(&one) == "");
  CHECK(halves.Output().shape == Shape{0});
  REQUIRE(halves.Run(&four) == "");
  CHECK(halves.Output() == ElementsOf<float>({2}, {4, 6}));
}

}  // namespace
}  // namespace rewire::test
