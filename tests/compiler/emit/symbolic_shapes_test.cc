// SPDX-License-Identifier: Apache-2.0
// Dimensions as expressions of the inputs' dimensions: what comes to be known through shape arithmetic, and
// what does not.
#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

// x: f32[N, M].
onnx::ModelProto SymbolicModel() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", "M"});
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

// The type of the last value in the program that comes of this node of the model.
std::string TypeAt(const onnx::ModelProto& model, const std::string& node) {
  std::string text;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& stage, const std::string& program) {
    if (stage == "lowered") text = program;
  };
  const Outcome outcome = CompileProto(model, options);
  CHECK(outcome.message.empty());
  const std::size_t at = text.rfind("; " + node + "\n");
  if (at == std::string::npos) return "no " + node + " in\n" + text;
  const std::size_t start = text.rfind('\n', at) + 1;
  const std::size_t type = text.find(": ", start) + 2;
  return text.substr(type, text.find(" = ", type) - type);
}

// An element of x's shape as i64[1] or, with `scalar`, i64[].
void AddDim(onnx::GraphProto* graph, std::int64_t axis, const std::string& name, bool scalar = false) {
  AddNode(graph, "Shape", {"x"}, name + ".shape");
  AddInts(graph, name + ".axis", {axis}, scalar);
  AddNode(graph, "Gather", {name + ".shape", name + ".axis"}, name);
}

TEST_CASE("a convolution by weights that are an input of open size") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 2, "H", 5});
  SetValue(graph->add_input(), "w", {4, 2, "K", "L"});
  SetValue(graph->add_output(), "y", {});
  onnx::NodeProto* conv = AddNode(graph, "Conv", {"x", "w"}, "y");
  const auto add = [&](const char* name, const std::vector<std::int64_t>& values) {
    onnx::AttributeProto* attribute = conv->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute->add_ints(value);
  };
  add("strides", {1, 2});
  SECTION("which only the weights tell") {
    CHECK(TypeAt(model, "Conv 'y'") == "f32[1, 4, H + -1*K + 1, floor((-1*L + 5) / (2)) + 1]");
  }
  SECTION("which kernel_shape tells, too") {
    add("kernel_shape", {3, 1});
    CHECK(TypeAt(model, "Conv 'y'") == "f32[1, 4, H + -2, 3]");
  }
}

TEST_CASE("a slice as long as an input") {
  onnx::ModelProto model = SymbolicModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "table", {512, 4}, std::vector<float>(2048, 0.5F));
  AddInts(graph, "zero", {0});
  AddInts(graph, "five", {5});
  AddInts(graph, "minus", {-1});
  AddInts(graph, "two", {2});
  AddDim(graph, 0, "n");
  SECTION("from the start") {
    AddNode(graph, "Slice", {"table", "zero", "n"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[min(512, N), 4]");
  }
  SECTION("from a place on") {
    AddNode(graph, "Slice", {"table", "five", "n"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[max(0, min(512, N) + -5), 4]");
  }
  SECTION("the rest behind it") {
    AddInts(graph, "far", {1 << 20});
    AddNode(graph, "Slice", {"table", "n", "far"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[-1*min(512, N) + 512, 4]");
  }
  SECTION("that far from the end") {
    AddInts(graph, "far", {1 << 20});
    AddNode(graph, "Mul", {"n", "minus"}, "back");
    AddNode(graph, "Sub", {"back", "two"}, "further");
    AddNode(graph, "Slice", {"table", "further", "far"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[-1*max(-1*N + 510, 0) + 512, 4]");
  }
  SECTION("that many from the end, of as many") {
    AddNode(graph, "Neg", {"n"}, "back");
    AddInts(graph, "far", {std::numeric_limits<std::int64_t>::max()});
    AddNode(graph, "Slice", {"x", "back", "far", "zero"}, "last");
    AddNode(graph, "Slice", {"last", "five", "n", "zero"}, "y");
    CHECK(TypeAt(model, "Slice 'last'") == "f32[N, M]");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[N + -1*min(5, N), M]");
  }
  SECTION("not where it may count from either side") {
    // From 0 on, where there are none.
    AddNode(graph, "Neg", {"n"}, "back");
    AddInts(graph, "far", {std::numeric_limits<std::int64_t>::max()});
    AddNode(graph, "Slice", {"table", "back", "far"}, "all");
    AddNode(graph, "Relu", {"all"}, "y");
    CHECK(TypeAt(model, "Slice 'all'") == "f32[$0, 4]");
  }
  SECTION("not where less may be behind the end") {
    AddNode(graph, "Sub", {"n", "two"}, "less");
    AddNode(graph, "Slice", {"table", "zero", "less"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[$0, 4]");
  }
  SECTION("not in steps") {
    AddNode(graph, "Slice", {"table", "zero", "n", "zero", "two"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[$0, 4]");
  }
  SECTION("not where the end is data") {
    SetValue(graph->add_input(), "end", {std::int64_t{1}}, onnx::TensorProto::INT64);
    AddNode(graph, "Slice", {"table", "zero", "end"}, "y");
    CHECK(TypeAt(model, "Slice 'y'") == "f32[$0, 4]");
  }
}

TEST_CASE("what broadcasts with a part of itself keeps its size") {
  onnx::ModelProto model = SymbolicModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "table", {512, 1}, std::vector<float>(512, 0.5F));
  AddInts(graph, "zero", {0});
  AddDim(graph, 0, "n");
  AddNode(graph, "Slice", {"table", "zero", "n"}, "rows");
  AddNode(graph, "Add", {"x", "rows"}, "y");
  CHECK(TypeAt(model, "Add 'y'") == "f32[N, M]");
}

// x: f32[1, 8, H, W], of which 2 by 2 pixels are taken with borders: its rows and columns are long
// expressions.
onnx::ModelProto ImageModel() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 8, "height", "width"});
  SetValue(graph->add_output(), "y", {});
  std::string last = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string next = "pooled" + std::to_string(i);
    onnx::NodeProto* pool = AddNode(graph, "MaxPool", {last}, next);
    AddIntList(pool, "kernel_shape", {3, 3});
    AddIntList(pool, "strides", {2, 2});
    AddIntList(pool, "pads", {1, 1, 1, 1});
    last = next;
  }
  AddNode(graph, "Shape", {"pooled2"}, "shape");
  for (const auto& [name, at] : {std::pair("rows", 2), std::pair("columns", 3)}) {
    AddInts(graph, std::string(name) + ".axis", {at});
    AddNode(graph, "Gather", {"shape", std::string(name) + ".axis"}, name);
  }
  return model;
}

TEST_CASE("an image becomes tokens and an image again, and none of its sizes is lost") {
  onnx::ModelProto model = ImageModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "to_tokens", {1, 8, -1});
  AddInts(graph, "one", {1});
  AddInts(graph, "rest", {-1});
  AddInt(AddNode(graph, "Concat", {"one", "rest", "rows", "columns"}, "to_image"), "axis", 0);
  AddNode(graph, "Reshape", {"pooled2", "to_tokens"}, "tokens");
  AddNode(graph, "Reshape", {"pooled2", "to_tokens"}, "others");
  AddNode(graph, "Reshape", {"pooled1", "to_tokens"}, "more");
  AddNode(graph, "Add", {"tokens", "others"}, "sum");
  AddNode(graph, "Reshape", {"sum", "to_image"}, "image");
  AddNode(graph, "Add", {"image", "pooled2"}, "sum of images");
  AddNode(graph, "ReduceMax", {"more"}, "largest");
  AddNode(graph, "Add", {"sum of images", "largest"}, "y");
  const std::string tokens = TypeAt(model, "Reshape 'tokens'");
  CHECK(TypeAt(model, "Reshape 'others'") == tokens);
  CHECK(TypeAt(model, "Reshape 'more'") != tokens);
  CHECK(TypeAt(model, "Add 'sum'") == tokens);
  CHECK(TypeAt(model, "Reshape 'image'") == TypeAt(model, "MaxPool 'pooled2'"));
  CHECK(TypeAt(model, "Add 'sum of images'") == TypeAt(model, "MaxPool 'pooled2'"));
}

TEST_CASE("an image resized to the size of another one has that size") {
  onnx::ModelProto model = ImageModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Shape", {"pooled0"}, "large");
  AddInts(graph, "first", {0});
  AddInts(graph, "second", {2});
  AddInts(graph, "fourth", {4});
  onnx::NodeProto* resize = nullptr;
  SECTION("of all axes") {
    AddNode(graph, "Slice", {"shape", "first", "second"}, "head");
    AddNode(graph, "Slice", {"large", "second", "fourth"}, "tail");
    AddInt(AddNode(graph, "Concat", {"head", "tail"}, "sizes"), "axis", 0);
    resize = AddNode(graph, "Resize", {"pooled2", "", "", "sizes"}, "resized");
  }
  SECTION("of axes that are named") {
    AddNode(graph, "Slice", {"large", "second", "fourth"}, "sizes");
    resize = AddNode(graph, "Resize", {"pooled2", "", "", "sizes"}, "resized");
    AddIntList(resize, "axes", {-2, 3});
    model.mutable_opset_import(0)->set_version(18);
  }
  AddNode(graph, "Add", {"resized", "pooled0"}, "y");
  CHECK(TypeAt(model, "Resize 'resized'") == TypeAt(model, "MaxPool 'pooled0'"));
  CHECK(TypeAt(model, "Add 'y'") == TypeAt(model, "MaxPool 'pooled0'"));
}

TEST_CASE("a window on a table that moves with what is past") {
  onnx::ModelProto model = SymbolicModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "past", {"P"});
  AddFloats(graph, "table", {512, 1}, std::vector<float>(512, 0.5F));
  AddNode(graph, "Shape", {"past"}, "begin");
  AddDim(graph, 0, "n");
  AddNode(graph, "Add", {"begin", "n"}, "end");
  AddNode(graph, "Slice", {"table", "begin", "end"}, "rows");
  AddNode(graph, "Add", {"x", "rows"}, "y");
  CHECK(TypeAt(model, "Add 'y'") == "f32[N, M]");
}

// GPT-2: rows [P, P + N) and columns [0, P + N) of a table of 512 by 512 over scores [N, P + N].
TEST_CASE("a mask that is cut out of a table has the scores' sizes") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"});
  SetValue(graph->add_input(), "past", {"P"});
  AddFloats(graph, "table", {512, 512}, std::vector<float>(512 * 512, 0.5F));
  AddInts(graph, "zero", {0});
  AddInts(graph, "one", {1});
  AddNode(graph, "Shape", {"past"}, "begin");
  AddNode(graph, "Shape", {"x"}, "n");
  AddNode(graph, "Add", {"begin", "n"}, "end");
  AddInt(AddNode(graph, "Concat", {"past", "x"}, "keys"), "axis", 0);
  AddNode(graph, "Unsqueeze", {"x", "one"}, "column");
  AddNode(graph, "Mul", {"column", "keys"}, "scores");
  AddNode(graph, "Slice", {"table", "begin", "end", "zero"}, "rows");
  AddNode(graph, "Slice", {"rows", "zero", "end", "one"}, "mask");
  AddNode(graph, "Add", {"scores", "mask"}, "y");
  SetValue(graph->add_output(), "y", {"", ""});
  CHECK(TypeAt(model, "Add 'y'") == "f32[N, N + P]");
}

TEST_CASE("a range of a dimension") {
  onnx::ModelProto model = SymbolicModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "zero", {0}, true);
  AddInts(graph, "three", {3}, true);
  AddDim(graph, 0, "n", true);
  SECTION("by ones") {
    AddInts(graph, "one", {1}, true);
    AddNode(graph, "Range", {"zero", "n", "one"}, "y");
    CHECK(TypeAt(model, "Range 'y'") == "i64[N]");
  }
  SECTION("by threes") {
    AddNode(graph, "Range", {"zero", "n", "three"}, "y");
    CHECK(TypeAt(model, "Range 'y'") == "i64[-1*floor((-1*N) / (3))]");
  }
  SECTION("not by a step that is a dimension itself") {
    AddNode(graph, "Range", {"zero", "three", "n"}, "y");
    CHECK(TypeAt(model, "Range 'y'") == "i64[$0]");
  }
}

// PyTorch's expand: -1 stands for the dimension that is there.
TEST_CASE("a shape that is chosen by what it is compared with") {
  onnx::ModelProto model = SymbolicModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Shape", {"x"}, "shape");
  AddInts(graph, "ones", {1, 1});
  AddFloats(graph, "row", {1}, {2});
  SECTION("where no dimension can be so") {
    AddInts(graph, "any", {-1, -1});
    AddNode(graph, "Equal", {"shape", "any"}, "is_any");
    AddNode(graph, "Where", {"is_any", "ones", "shape"}, "target");
    AddNode(graph, "Expand", {"row", "target"}, "y");
    CHECK(TypeAt(model, "Expand 'y'") == "f32[N, M]");
  }
  SECTION("not where one may be so") {
    AddInts(graph, "four", {4, 4});
    AddNode(graph, "Equal", {"shape", "four"}, "is_four");
    AddNode(graph, "Where", {"is_four", "ones", "shape"}, "target");
    AddNode(graph, "Expand", {"row", "target"}, "y");
    CHECK(TypeAt(model, "Expand 'y'") == "f32[$0, $1]");
  }
}

}  // namespace
}  // namespace rewire::test
