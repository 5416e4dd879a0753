// SPDX-License-Identifier: Apache-2.0
// Passes that take work out of a program, or put it where there is less of it.
#include <catch2/catch.hpp>
#include <numeric>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

std::vector<float> Counts(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_CASE("fold-constants: what is computed from constants alone") {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "c", {3}, {1, 2, 3});
  AddNode(graph, "Exp", {"c"}, "a");
  AddNode(graph, "Neg", {"a"}, "b");
  AddNode(graph, "Add", {"x", "b"}, "y");
  const PassRun run = RunPass("fold-constants", model, {2, 3});
  CHECK(run.before.size() == 4);
  CHECK(run.after == Lines{"%2 = rewire.add(%0, @1)", "output y = %2"});
}

TEST_CASE("fold-constants: what depends on an input, and what differs at every run") {
  onnx::ModelProto model = ModelOf({2, 3}, 15);  // the first with Bernoulli
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "zero", {}, {0});
  // From a constant, so that it could be computed now.
  AddFloats(graph, "like", {2, 3}, Counts(6));
  const auto type = GENERATE(as<std::string>(), "RandomUniform", "RandomNormal", "Bernoulli");
  if (type == "Bernoulli") {
    AddFloats(graph, "half", {2, 3}, std::vector<float>(6, 0.5F));
    AddNode(graph, type, {"half"}, "a");
  } else {
    AddNode(graph, type + "Like", {"like"}, "a");
  }
  AddNode(graph, "Mul", {"a", "zero"}, "b");
  AddNode(graph, "Neg", {"x"}, "c");
  AddNode(graph, "Add", {"b", "c"}, "y");
  CHECK_FALSE(RunPass("fold-constants", model, {2, 3}).changes());
}

TEST_CASE("dead-code: what no output depends on") {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Neg", {"x"}, "a");
  AddNode(graph, "Exp", {"x"}, "unused");
  AddNode(graph, "Sqrt", {"unused"}, "too");
  AddNode(graph, "Abs", {"a"}, "y");
  const PassRun run = RunPass("dead-code", model, {2, 3});
  CHECK(run.before.size() == 5);
  CHECK(run.after == Lines{"%1 = rewire.neg(%0)", "%2 = rewire.abs(%1)", "output y = %2"});
}

TEST_CASE("dead-code: a tensor whose shape is allocated again stays") {
  onnx::ModelProto model = ModelOf({"N", 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "NonZero", {"x"}, "places");  // i64[2, M]
  AddNode(graph, "Shape", {"places"}, "shape");
  AddNode(graph, "ConstantOfShape", {"shape"}, "y");
  const PassRun run = RunPass("dead-code", model, {2, 3});
  REQUIRE(run.before.size() == 5);
  CHECK(run.before[2] == "%3 = dims [2, $0]()");  // Shape, of which nothing is left
  CHECK(run.after == Lines{"%1 = rewire.shape.non_zero(%0)", "%2 = rewire.non_zero(%0)",
                           "%4 = rewire.expand(@3)", "output y = %4"});
}

TEST_CASE("common-subexpressions: the same from the same") {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Exp", {"x"}, "a");
  AddNode(graph, "Neg", {"a"}, "b");
  AddNode(graph, "Exp", {"x"}, "c");
  AddNode(graph, "Neg", {"c"}, "d");
  AddNode(graph, "Add", {"b", "d"}, "y");
  CHECK(RunPass("common-subexpressions", model, {2, 3}).after ==
        Lines{"%1 = rewire.exp(%0)", "%2 = rewire.neg(%1)", "%3 = rewire.add(%2, %2)", "output y = %3"});
}

TEST_CASE("common-subexpressions: other attributes, other inputs, and random numbers") {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("attributes") {
    AddFloat(AddNode(graph, "LeakyRelu", {"x"}, "a"), "alpha", 0.5F);
    AddFloat(AddNode(graph, "LeakyRelu", {"x"}, "b"), "alpha", 0.25F);
    AddNode(graph, "Add", {"a", "b"}, "y");
  }
  SECTION("inputs") {
    AddNode(graph, "Exp", {"x"}, "a");
    AddNode(graph, "Exp", {"a"}, "b");
    AddNode(graph, "Sub", {"a", "b"}, "c");
    AddNode(graph, "Sub", {"b", "a"}, "d");
    AddNode(graph, "Mul", {"c", "d"}, "y");
  }
  SECTION("outputs of another type") {
    AddInt(AddNode(graph, "Cast", {"x"}, "a"), "to", onnx::TensorProto::INT32);
    AddInt(AddNode(graph, "Cast", {"x"}, "b"), "to", onnx::TensorProto::DOUBLE);
    AddInt(AddNode(graph, "Cast", {"a"}, "c"), "to", onnx::TensorProto::FLOAT);
    AddInt(AddNode(graph, "Cast", {"b"}, "d"), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "Add", {"c", "d"}, "y");
  }
  SECTION("random numbers") {
    const auto type = GENERATE(as<std::string>(), "RandomUniformLike", "RandomNormalLike");
    AddNode(graph, type, {"x"}, "a");
    AddNode(graph, type, {"x"}, "b");
    AddNode(graph, "Sub", {"a", "b"}, "c");
    AddFloats(graph, "zero", {}, {0});
    AddNode(graph, "Mul", {"c", "zero"}, "y");
  }
  CHECK_FALSE(RunPass("common-subexpressions", model, {2, 3}).changes());
}

// A convolution of x: f32[1, 2, 4, 4] to four channels.
onnx::ModelProto Conv(const std::string& type = "Conv") {
  onnx::ModelProto model = ModelOf({1, 2, 4, 4});
  const bool transposed = type == "ConvTranspose";
  AddFloats(model.mutable_graph(), "w", {transposed ? 2 : 4, transposed ? 4 : 2, 3, 3}, Counts(72));
  AddFloats(model.mutable_graph(), "b", {4}, {1, 2, 3, 4});
  AddNode(model.mutable_graph(), type, {"x", "w", "b"}, "conv");
  return model;
}

TEST_CASE("fold-affine: what follows a convolution for each channel") {
  const auto kind = GENERATE(as<std::string>(), "Conv", "ConvTranspose");
  onnx::ModelProto model = Conv(kind);
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "factor", {4, 1, 1}, {1, 2, 0.5F, -1});
  AddFloats(graph, "term", {1, 4, 1, 1}, {1, 0, -1, 5});
  AddFloats(graph, "one", {}, {3});
  AddFloats(graph, "var", {4}, {1, 2, 3, 4});
  SECTION("normalization") { AddNode(graph, "BatchNormalization", {"conv", "b", "b", "b", "var"}, "y"); }
  SECTION("factors and terms") {
    AddNode(graph, "Mul", {"factor", "conv"}, "a");
    AddNode(graph, "Sub", {"a", "term"}, "c");
    AddNode(graph, "Div", {"c", "one"}, "y");
  }
  const std::string kernel = kind == "Conv" ? "rewire.conv" : "rewire.conv_transpose";
  const PassRun run = RunPass("fold-affine", model, {1, 2, 4, 4});
  CHECK(run.before.size() > 2);
  REQUIRE(run.after.size() == 2);
  CHECK_THAT(run.after[0], Catch::StartsWith("%3 = " + kernel) && Catch::EndsWith("(%0, @1, @2)"));
}

TEST_CASE("fold-affine: a division by 0 is no factor, which terms of a sum would meet apart") {
  onnx::ModelProto model = Conv();
  AddFloats(model.mutable_graph(), "zero", {}, {0});
  AddNode(model.mutable_graph(), "Div", {"conv", "zero"}, "y");
  CHECK_FALSE(RunPass("fold-affine", model, {1, 2, 4, 4}).changes());
}

TEST_CASE("fold-affine: what is no factor or term for each channel") {
  onnx::ModelProto model = Conv();
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("one for each column") {
    AddFloats(graph, "columns", {2}, {1, 2});
    AddNode(graph, "Mul", {"conv", "columns"}, "y");
  }
  SECTION("a term less the convolution") {
    AddFloats(graph, "term", {4, 1, 1}, {1, 2, 3, 4});
    AddNode(graph, "Sub", {"term", "conv"}, "y");
  }
  SECTION("a convolution that something else reads too") {
    AddFloats(graph, "factor", {4, 1, 1}, {1, 2, 3, 4});
    AddNode(graph, "Mul", {"conv", "factor"}, "scaled");
    AddNode(graph, "Add", {"scaled", "conv"}, "y");
  }
  SECTION("a factor that adds a dimension") {
    AddFloats(graph, "factor", {1, 1, 4, 1, 1}, {1, 2, 3, 4});
    AddNode(graph, "Mul", {"conv", "factor"}, "y");
  }
  CHECK_FALSE(RunPass("fold-affine", model, {1, 2, 4, 4}).changes());
}

TEST_CASE("fold-affine: a transposed convolution of groups") {
  onnx::ModelProto model = ModelOf({1, 2, 4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {2, 2, 3, 3}, Counts(36));
  AddFloats(graph, "factor", {}, {2});
  AddFloats(graph, "term", {}, {1});
  AddInt(AddNode(graph, "ConvTranspose", {"x", "w"}, "conv"), "group", 2);
  AddNode(graph, "Mul", {"conv", "factor"}, "a");
  AddNode(graph, "Add", {"a", "term"}, "y");
  CHECK_FALSE(RunPass("fold-affine", model, {1, 2, 4, 4}).changes());
}

TEST_CASE("fold-affine: a factor in another block") {
  onnx::ModelProto model = Conv();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "factor", {4, 1, 1}, {1, 2, 3, 4});
  AddFloats(graph, "zeros", {1, 4, 2, 2}, std::vector<float>(16, 0));
  AddNode(graph, "ReduceMax", {"x"}, "most");
  AddInt(graph->mutable_node(graph->node_size() - 1), "keepdims", 0);
  AddFloats(graph, "limit", {}, {5});
  AddNode(graph, "Greater", {"most", "limit"}, "condition");
  onnx::NodeProto* branch = AddNode(graph, "If", {"condition"}, "y");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "Mul", {"conv", "factor"}, "scaled");
  SetValue(then->add_output(), "scaled", {});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddNode(otherwise, "Identity", {"zeros"}, "nothing");
  SetValue(otherwise->add_output(), "nothing", {});
  CHECK_FALSE(RunPass("fold-affine", model, {1, 2, 4, 4}).changes());
}

// Rows of (a table of 8-bit numbers as floats - zero) * scale, taken by x as positions.
onnx::ModelProto Embedding() {
  onnx::ModelProto model = ModelOf({3});
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* table = graph->add_initializer();
  table->set_name("table");
  table->set_data_type(onnx::TensorProto::INT8);
  table->add_dims(4);
  table->add_dims(2);
  for (int i = 0; i < 8; ++i) table->add_int32_data(i * i - 20);
  AddFloats(graph, "zero", {}, {3});
  AddFloats(graph, "scale", {4, 1}, {1, 2, 3, 4});
  AddInt(AddNode(graph, "Cast", {"x"}, "places"), "to", onnx::TensorProto::INT64);
  AddInt(AddNode(graph, "Cast", {"table"}, "floats"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Sub", {"floats", "zero"}, "shifted");
  AddNode(graph, "Mul", {"shifted", "scale"}, "rows");
  AddNode(graph, "Gather", {"rows", "places"}, "y");
  return model;
}

TEST_CASE("gather-early: rows before what is done with all of a table") {
  CHECK(RunPass("gather-early", Embedding(), {3}).after ==
        Lines{"%1 = rewire.cast(%0)", "%3 = rewire.gather {axis=0}(@2, %1)", "%4 = rewire.cast(%3)",
              "%6 = rewire.sub(%4, @5)", "%8 = rewire.gather {axis=0}(@7, %1)", "%9 = rewire.mul(%6, %8)",
              "output y = %9"});
}

TEST_CASE("gather-early: what needs the whole table") {
  onnx::ModelProto model = Embedding();
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("columns are taken") {
    AddFloats(graph, "half", {}, {0.4F});
    AddInt(graph->mutable_node(4), "axis", 1);
    AddNode(graph, "Mul", {"x", "half"}, "small");
    graph->mutable_node()->SwapElements(0, 5);
    graph->mutable_node()->SwapElements(1, 5);
    graph->mutable_node(1)->set_input(0, "small");
  }
  SECTION("a table that something else reads too") {
    graph->mutable_node(4)->set_output(0, "taken");
    AddInt(AddNode(graph, "ReduceSum", {"rows"}, "sum"), "keepdims", 0);
    AddNode(graph, "Add", {"taken", "sum"}, "y");
  }
  SECTION("what goes along rows") {
    graph->mutable_node(3)->set_op_type("Softmax");
    graph->mutable_node(3)->mutable_input()->RemoveLast();
    AddInt(graph->mutable_node(3), "axis", 0);
  }
  CHECK_FALSE(RunPass("gather-early", model, {3}).changes());
}

}  // namespace
}  // namespace rewire::test
