// SPDX-License-Identifier: Apache-2.0
// Forms of operators that are easily taken for another: each against values worked out by ONNX's reference.
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

void AddResize(onnx::GraphProto* graph, const std::string& policy, const std::string& mode) {
  AddInts(graph, "sizes", {3, 9});
  onnx::NodeProto* node = AddNode(graph, "Resize", {"x", "", "", "sizes"}, "y");
  AddString(node, "keep_aspect_ratio_policy", policy);
  AddString(node, "mode", mode);
  AddIntList(node, "axes", {0, 1});
}

TEST_CASE("Resize that keeps the aspect ratio scales all axes alike") {
  // A dimension that is not known takes the other path: scales are computed when the program runs.
  const bool known = GENERATE(true, false);
  OneOutput model(19, known ? std::vector<Dim>{4, 6} : std::vector<Dim>{"H", "W"});
  SECTION("not larger, nearest") {
    AddResize(model.graph(), "not_larger", "nearest");
    model.Expect({4, 6}, {3, 5}, {0, 1, 3, 4, 5, 6, 7, 9, 10, 11, 18, 19, 21, 22, 23});
  }
  SECTION("not larger, linear") {
    AddResize(model.graph(), "not_larger", "linear");
    model.Expect({4, 6}, {3, 5},
                 {1.166667F, 2.5F, 3.833333F, 5.166667F, 6, 9.166667F, 10.5F, 11.83333F, 13.16667F, 14,
                  17.16667F, 18.5F, 19.83333F, 21.16667F, 22});
  }
  SECTION("not smaller, linear") {
    AddResize(model.graph(), "not_smaller", "linear");
    const Answer answer = model.Run({4, 6});
    CHECK(answer.shape == Shape{6, 9});
    const std::vector<float> first(answer.values.begin(), answer.values.begin() + 9);
    CHECK_THAT(first, Catch::Approx(std::vector<float>{0, 0.5F, 1.1666667F, 1.8333334F, 2.5F, 3.1666667F,
                                                       3.8333333F, 4.5F, 5})
                          .epsilon(1e-6));
  }
}

TEST_CASE("SpaceToDepth puts blocks before the channels or behind them") {
  OneOutput model(28, {1, 2, 2, 2});
  onnx::NodeProto* node = AddNode(model.graph(), "SpaceToDepth", {"x"}, "y");
  AddInt(node, "blocksize", 2);
  SECTION("by default before") { model.Expect({1, 2, 2, 2}, {1, 8, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7}); }
  SECTION("CRD: behind") {
    AddString(node, "mode", "CRD");
    model.Expect({1, 2, 2, 2}, {1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  }
}

// "file", u8[bytes], is `text` when x, with one element for each byte, is known.
void AddFile(onnx::GraphProto* graph, const std::string& text) {
  AddInts(graph, "text", Shape(text.begin(), text.end()));
  AddInt(AddNode(graph, "Cast", {"x"}, "numbers"), "to", onnx::TensorProto::INT64);
  AddNode(graph, "Sub", {"numbers", "numbers"}, "zeros");
  AddNode(graph, "Add", {"text", "zeros"}, "sum");
  AddInt(AddNode(graph, "Cast", {"sum"}, "file"), "to", onnx::TensorProto::UINT8);
}

TEST_CASE("ImageDecoder gives what the file holds, in three channels or one") {
  // Gray, 2 x 1, with values of at most 3.
  const std::string file = GENERATE("P2 2 1 3 1 3", "Q2 2 1 3 1 3");
  const bool is_picture = file[0] == 'P';
  OneOutput model(20, {"bytes"});
  AddFile(model.graph(), file);
  onnx::NodeProto* node = AddNode(model.graph(), "ImageDecoder", {"file"}, "picture");
  AddInt(AddNode(model.graph(), "Cast", {"picture"}, "y"), "to", onnx::TensorProto::FLOAT);
#if REWIRE_HAS_IMAGE_KERNELS
  SECTION("by default three") {
    if (is_picture) model.Expect({12}, {1, 2, 3}, {85, 85, 85, 255, 255, 255});
    if (!is_picture) model.Expect({12}, {0, 0, 3}, {});
  }
  SECTION("gray: one") {
    AddString(node, "pixel_format", "Grayscale");
    if (is_picture) model.Expect({12}, {1, 2, 1}, {85, 255});
    if (!is_picture) model.Expect({12}, {0, 0, 1}, {});
  }
  SECTION("a format that does not exist is refused") {
    AddString(node, "pixel_format", "RGBA");
    const Outcome outcome = CompileProto(*model.model());
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK_THAT(outcome.unsupported[0].reason, Catch::Contains("attribute 'pixel_format' is 'RGBA'"));
  }
#else
  (void)node;
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "the kernel library of encoded pictures is missing");
#endif
}

TEST_CASE("ImageDecoder takes bytes in one dimension") {
  OneOutput model(20, {2, 2});
  AddInt(AddNode(model.graph(), "Cast", {"x"}, "file"), "to", onnx::TensorProto::UINT8);
  AddNode(model.graph(), "ImageDecoder", {"file"}, "picture");
  AddInt(AddNode(model.graph(), "Cast", {"picture"}, "y"), "to", onnx::TensorProto::FLOAT);
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
#if REWIRE_HAS_IMAGE_KERNELS
  CHECK(outcome.unsupported[0].reason == "the file has shape [2, 2], expected one dimension");
#endif
}

TEST_CASE("a mode that does not exist is refused") {
  OneOutput model(28, {1, 4, 2, 2});
  const std::string type = GENERATE("SpaceToDepth", "DepthToSpace");
  onnx::NodeProto* node = AddNode(model.graph(), type, {"x"}, "y");
  AddInt(node, "blocksize", 2);
  AddString(node, "mode", "RCD");
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "mode is 'RCD', expected DCR or CRD");
}

TEST_CASE("an output that the operator does not have is refused when compiling") {
  OneOutput model(13, {1, 1, 4});
  onnx::NodeProto* node = AddNode(model.graph(), "AveragePool", {"x"}, "y");
  node->add_output("z");
  AddIntList(node, "kernel_shape", {2});
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "rewire.avg_pool: 2 outputs are given, expected at most 1");
}

TEST_CASE("operands of two types are refused when compiling") {
  OneOutput model(21, {1, 4});
  AddInts(model.graph(), "w", {1, 2, 3, 4});
  AddNode(model.graph(), "Add", {"x", "w"}, "y");
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(!outcome.unsupported.empty());
  CHECK(outcome.unsupported[0].reason == "rewire.add: a is f32 and b is i64, expected one type");
}

TEST_CASE("attributes that a kernel refuses are refused when compiling") {
  OneOutput model(13, {1, 1, 4, 4});
  AddFloats(model.graph(), "scales", {4}, {1, 1, 0.5F, 0.5F});
  onnx::NodeProto* node = AddNode(model.graph(), "Resize", {"x", "", "scales"}, "y");
  AddString(node, "coordinate_transformation_mode", "half_a_pixel");
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK_THAT(outcome.unsupported[0].reason, Catch::Contains("half_a_pixel"));
}

TEST_CASE("elements are picked by a mask") {
  OneOutput model(17, {3, 4});
  AddFloats(model.graph(), "least", {}, {8.5F});
  AddNode(model.graph(), "Greater", {"x", "least"}, "mask");
  AddNode(model.graph(), "NonZero", {"mask"}, "positions");
  AddIntList(AddNode(model.graph(), "Transpose", {"positions"}, "indices"), "perm", {1, 0});
  AddNode(model.graph(), "GatherND", {"x", "indices"}, "y");
  model.Expect({3, 4}, {3}, {9, 10, 11});
}

TEST_CASE("Squeeze without axes takes out what turns out to be 1") {
  OneOutput model(11, {"N", 1, 2});
  AddNode(model.graph(), "Squeeze", {"x"}, "z");
  AddNode(model.graph(), "Neg", {"z"}, "y");
  model.Expect({3, 1, 2}, {3, 2}, {0, -1, -2, -3, -4, -5});
  model.Expect({1, 1, 2}, {2}, {0, -1});
}

TEST_CASE("a reduction over no axes takes each element by itself") {
  OneOutput model(18, {3});
  const auto reduce = [&](const char* type) {
    AddInt(AddNode(model.graph(), type, {"x"}, "y"), "noop_with_empty_axes", 1);
  };
  SECTION("squares") {
    reduce("ReduceSumSquare");
    model.Expect({3}, {3}, {0, 1, 4});
  }
  SECTION("magnitudes") {
    AddNode(model.graph(), "Neg", {"x"}, "n");
    AddInt(AddNode(model.graph(), GENERATE("ReduceL1", "ReduceL2"), {"n"}, "y"), "noop_with_empty_axes", 1);
    model.Expect({3}, {3}, {0, 1, 2});
  }
  SECTION("logarithms") {
    reduce("ReduceLogSum");
    model.Expect({3}, {3}, {-std::numeric_limits<float>::infinity(), 0, 0.6931472F});
  }
  SECTION("themselves") {
    reduce("ReduceMean");
    model.Expect({3}, {3}, {0, 1, 2});
  }
}

TEST_CASE("a scalar is reduced as one element") {
  OneOutput model(18, {});
  AddFloats(model.graph(), "three", {}, {-3});
  AddNode(model.graph(), "Add", {"x", "three"}, "n");
  SECTION("its square") {
    AddNode(model.graph(), "ReduceSumSquare", {"n"}, "y");
    model.Expect({}, {}, {9});
  }
  SECTION("its magnitude") {
    AddNode(model.graph(), "ReduceL1", {"n"}, "y");
    model.Expect({}, {}, {3});
  }
}

TEST_CASE("from operator set 20 on the axis of a transform is an input") {
  SECTION("given") {
    OneOutput model(20, {1, 4, 2, 1});
    AddInts(model.graph(), "axis", {1}, true);
    AddNode(model.graph(), "DFT", {"x", "", "axis"}, "y");
    model.Expect({1, 4, 2, 1}, {1, 4, 2, 2}, {12, 0, 16, 0, -4, 4, -4, 4, -4, 0, -4, 0, -4, -4, -4, -4});
  }
  SECTION("left out: the last but one") {
    OneOutput model(20, {1, 2, 4, 1});
    AddNode(model.graph(), "DFT", {"x"}, "y");
    model.Expect({1, 2, 4, 1}, {1, 2, 4, 2}, {6, 0, -2, 2, -2, 0, -2, -2, 22, 0, -2, 2, -2, 0, -2, -2});
  }
}

TEST_CASE("an inverse transform of one side gives real numbers") {
  OneOutput model(20, {1, 4, 2});
  onnx::NodeProto* node = AddNode(model.graph(), "DFT", {"x"}, "y");
  AddInt(node, "inverse", 1);
  AddInt(node, "onesided", 1);
  model.Expect({1, 4, 2}, {1, 6, 1}, {3, -3.642734F, 0.5773503F, -0.3333333F, -0.5773503F, 0.9760677F});
}

void AddSlice(onnx::GraphProto* graph, std::int64_t start, std::int64_t end, std::int64_t step) {
  AddInts(graph, "start", {start});
  AddInts(graph, "end", {end});
  AddInts(graph, "axis", {0});
  AddInts(graph, "step", {step});
  AddNode(graph, "Slice", {"x", "start", "end", "axis", "step"}, "y");
}

TEST_CASE("a real signal may come without its last dimension to STFT") {
  onnx::ModelProto model = EmptyModel(17);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", "length"});
  SetValue(graph->add_output(), "y", {});
  AddInts(graph, "four", {4}, true);
  AddNode(graph, "STFT", {"x", "four", "", "four"}, "y");
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message.empty());
  const Answer answer = RunOnCounts(outcome.compiled.module, {1, 8});
  CHECK(answer.shape == Shape{1, 2, 3, 2});
  // The transform of 0, 1, 2, 3 and 4, 5, 6, 7: the sum, then -2 + 2i, then -2.
  const std::vector<float> expected = {6, 0, -2, 2, -2, 0, 22, 0, -2, 2, -2, 0};
  REQUIRE(answer.values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(answer.values[i] == Approx(expected[i]).margin(1e-5));
}

TEST_CASE("an exponent keeps what the base's type does not hold") {
  OneOutput model(17, {3});
  AddFloats(model.graph(), "one", {1}, {1});
  AddNode(model.graph(), "Sub", {"x", "one"}, "base");
  AddInts(model.graph(), "odd", {16777217});  // even as f32
  AddNode(model.graph(), "Pow", {"base", "odd"}, "y");
  model.Expect({3}, {3}, {-1, 0, 1});
}

TEST_CASE("indices of a pool that rounds up, of an image of open size") {
  OneOutput model(17, {1, 1, "H", 3});
  onnx::NodeProto* pool = AddNode(model.graph(), "MaxPool", {"x"}, "largest");
  pool->add_output("places");
  AddIntList(pool, "kernel_shape", {2, 2});
  AddIntList(pool, "strides", {2, 2});
  AddInt(pool, "ceil_mode", 1);
  onnx::NodeProto* cast = AddNode(model.graph(), "Cast", {"places"}, "y");
  AddInt(cast, "to", onnx::TensorProto::FLOAT);
  model.Expect({1, 1, 3, 3}, {1, 1, 2, 2}, {4, 5, 7, 8});
}

TEST_CASE("a slice from a place to another one of a size that is not known") {
  OneOutput model(13, {"N"});
  AddSlice(model.graph(), 1, 5, 1);
  model.Expect({8}, {4}, {1, 2, 3, 4});
  model.Expect({3}, {2}, {1, 2});
  model.Expect({1}, {0}, {});
}

TEST_CASE("a slice to the end of a size that is not known") {
  // Models write either for the end.
  const std::int64_t end = GENERATE(std::int64_t{std::numeric_limits<std::int32_t>::max()},
                                    std::numeric_limits<std::int64_t>::max());
  OneOutput model(13, {"N"});
  SECTION("from a place") {
    AddSlice(model.graph(), 2, end, 1);
    model.Expect({5}, {3}, {2, 3, 4});
    model.Expect({1}, {0}, {});
  }
  SECTION("from one counted from behind") {
    AddSlice(model.graph(), -2, end, 1);
    model.Expect({5}, {2}, {3, 4});
    model.Expect({1}, {1}, {0});
  }
  SECTION("every other one") {
    AddSlice(model.graph(), 0, end, 2);
    model.Expect({5}, {3}, {0, 2, 4});
  }
}

TEST_CASE("a slice of all is no call") {
  const auto calls = [](std::int64_t start, std::int64_t end, std::int64_t step, const Dim& size) {
    OneOutput model(13, {size});
    AddSlice(model.graph(), start, end, step);
    return CompileProto(*model.model()).compiled.kernel_calls;
  };
  CHECK(calls(0, std::numeric_limits<std::int32_t>::max(), 1, "N") == 0);
  CHECK(calls(0, 6, 1, 6) == 0);
  CHECK(calls(-9, 9, 1, 6) == 0);
  CHECK(calls(1, 6, 1, 6) == 1);
  CHECK(calls(-1, -7, -1, 6) == 1);  // all of it, backwards
}

TEST_CASE("slices that go backwards") {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::min();
  // The same of a size that is known when compiling, and of one that is not.
  const bool known = GENERATE(true, false);
  OneOutput model(13, known ? std::vector<Dim>{6} : std::vector<Dim>{"N"});
  SECTION("all of it") {
    AddSlice(model.graph(), -1, kFar, -1);
    model.Expect({6}, {6}, {5, 4, 3, 2, 1, 0});
  }
  SECTION("from a place to another") {
    AddSlice(model.graph(), 4, 0, -1);
    model.Expect({6}, {4}, {4, 3, 2, 1});
  }
  SECTION("from behind the end, every other one") {
    AddSlice(model.graph(), 10, 1, -2);
    model.Expect({6}, {2}, {5, 3});
  }
  SECTION("to a place counted from behind") {
    AddSlice(model.graph(), 5, -4, -1);
    model.Expect({6}, {3}, {5, 4, 3});
  }
  SECTION("to one before the start") {
    AddSlice(model.graph(), 1, -7, -1);
    model.Expect({6}, {2}, {1, 0});
  }
  SECTION("none") {
    AddSlice(model.graph(), 1, 4, -1);
    model.Expect({6}, {0}, {});
  }
}

TEST_CASE("num_outputs of Split is held against the outputs") {
  OneOutput model(18, {4});
  onnx::NodeProto* node = AddNode(model.graph(), "Split", {"x"}, "y");
  node->add_output("z");
  SECTION("as many") {
    AddInt(node, "num_outputs", 2);
    model.Expect({4}, {2}, {0, 1});
  }
  SECTION("others") {
    AddInt(node, "num_outputs", 3);
    const Outcome outcome = CompileProto(*model.model());
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason == "num_outputs is 3, it has 2 outputs");
  }
}

}  // namespace
}  // namespace rewire::test
