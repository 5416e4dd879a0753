// SPDX-License-Identifier: Apache-2.0
// Tokens become images and images tokens, by reshapes alone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

std::string Transposed(onnx::GraphProto* graph, const std::string& from, const Ints& perm) {
  const std::string to = from + "'";
  AddIntList(AddNode(graph, "Transpose", {from}, to), "perm", perm);
  return to;
}

std::string Reshaped(onnx::GraphProto* graph, const std::string& from, const Ints& dims) {
  const std::string to = from + "_";
  AddInts(graph, to + ".dims", dims);
  AddNode(graph, "Reshape", {from, to + ".dims"}, to);
  return to;
}

// The lines that the pass leaves of a model that `build` makes of x.
Lines Dropped(const Shape& x, const std::function<std::string(onnx::GraphProto*)>& build,
              const std::string& pass = "drop-transposes") {
  std::vector<Dim> dims(x.begin(), x.end());
  onnx::ModelProto model = ModelOf(dims);
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Abs", {build(graph)}, "y");
  return KernelsOf(RunPass(pass, model, x).after);
}

TEST_CASE("drop-transposes: tokens to an image with the channels last, and back") {
  CHECK(Dropped({1, 6, 4}, [](onnx::GraphProto* graph) {
          return Transposed(graph, Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 4, 2, 3}),
                            {0, 2, 3, 1});
        }) == Lines{"reshape", "rewire.abs"});
  CHECK(
      Dropped({2, 2, 3, 4}, [](onnx::GraphProto* graph) {
        return Transposed(graph, Reshaped(graph, Transposed(graph, "x", {0, 3, 1, 2}), {2, 4, 6}), {0, 2, 1});
      }) == Lines{"reshape", "rewire.abs"});
}

TEST_CASE("drop-transposes: through operators that work element by element") {
  CHECK(Dropped({1, 6, 4}, [](onnx::GraphProto* graph) {
          AddNode(graph, "Neg", {Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 4, 2, 3})}, "n");
          AddNode(graph, "Relu", {"n"}, "r");
          return Transposed(graph, "r", {0, 2, 3, 1});
        }) == Lines{"reshape", "rewire.neg", "rewire.relu", "rewire.abs"});
}

TEST_CASE("drop-transposes: what does not go back to its place stays") {
  const Lines both = {"rewire.transpose", "reshape", "rewire.transpose", "rewire.abs"};
  // Other halves of the axes.
  CHECK(Dropped({1, 6, 4}, [](onnx::GraphProto* graph) {
          return Transposed(graph, Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 4, 2, 3}),
                            {0, 3, 2, 1});
        }) == both);
  // Channels that are cut.
  CHECK(Dropped({1, 6, 4}, [](onnx::GraphProto* graph) {
          return Transposed(graph, Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 8, 3}), {0, 2, 1});
        }) == both);
  // As many of each, so that sizes alone would not tell.
  CHECK(Dropped({2, 4, 4}, [](onnx::GraphProto* graph) {
          return Transposed(graph, Reshaped(graph, Transposed(graph, "x", {1, 0, 2}), {4, 8}), {1, 0});
        }) == both);
  // Read by something else in between.
  CHECK(Dropped({1, 6, 4},
                [](onnx::GraphProto* graph) {
                  const std::string image = Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 4, 2, 3});
                  AddNode(graph, "ReduceMax", {image}, "largest");
                  AddNode(graph, "Add", {Transposed(graph, image, {0, 2, 3, 1}), "largest"}, "sum");
                  return std::string("sum");
                }) == Lines{"rewire.transpose", "reshape", "rewire.reduce_max", "rewire.transpose",
                            "rewire.add", "rewire.abs"});
}

TEST_CASE("drop-transposes: sizes that are open") {
  onnx::ModelProto model = ModelOf({1, "length", 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "two", {2});
  AddInts(graph, "length.axis", {1});
  AddNode(graph, "Shape", {"x"}, "shape");
  AddNode(graph, "Gather", {"shape", "length.axis"}, "length");
  AddNode(graph, "Div", {"length", "two"}, "half");
  AddInts(graph, "channels", {1, 4});
  AddInt(AddNode(graph, "Concat", {"channels", "half", "two"}, "dims"), "axis", 0);
  AddNode(graph, "Reshape", {Transposed(graph, "x", {0, 2, 1}), "dims"}, "image");
  AddNode(graph, "Abs", {Transposed(graph, "image", {0, 2, 3, 1})}, "y");
  // The length may be odd, and the reshape then fails: it is none that could be left out.
  const Lines kernels = KernelsOf(RunPass("drop-transposes", model, {1, 6, 4}).after);
  CHECK(std::count(kernels.begin(), kernels.end(), "rewire.transpose") == 2);
}

TEST_CASE("transpose-late: an image made of tokens is transposed after it is cut") {
  const auto image = [](onnx::GraphProto* graph) {
    return Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 4, 2, 3});
  };
  onnx::ModelProto model = ModelOf({1, 6, 4});
  AddNode(model.mutable_graph(), "Abs", {image(model.mutable_graph())}, "y");
  const Lines lines = RunPass("transpose-late", model, {1, 6, 4}).after;
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("reshape(%0)") != std::string::npos);
  CHECK(lines[1].find("rewire.transpose {perm=[0, 3, 1, 2]}") != std::string::npos);
  // Heads, which are no image of tokens.
  CHECK(Dropped(
            {1, 6, 4},
            [](onnx::GraphProto* graph) {
              return Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 2, 2, 6});
            },
            "transpose-late") == Lines{"rewire.transpose", "reshape", "rewire.abs"});
}

TEST_CASE("transpose-late and channels-last: tokens are resized as images without a transpose") {
  onnx::ModelProto model = ModelOf({1, 6, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "sizes", {1, 4, 4, 6});
  AddFloats(graph, "w", {3, 4, 1, 1}, Numbers(12));
  const std::string image = Reshaped(graph, Transposed(graph, "x", {0, 2, 1}), {1, 4, 2, 3});
  AddNode(graph, "Resize", {image, "", "", "sizes"}, "resized");
  AddNode(graph, "Conv", {"resized", "w"}, "y");
  const Lines kernels =
      KernelsOf(RunPasses({"pack-products", "transpose-late", "channels-last"}, model, {1, 6, 4}).after);
  CHECK(kernels == Lines{"reshape", "rewire.resize", "rewire.packed.conv", "rewire.transpose"});
}

}  // namespace
}  // namespace rewire::test
