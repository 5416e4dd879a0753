// SPDX-License-Identifier: Apache-2.0
// Reductions of images whose channels lie last.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

// The reduction of x [dims], which has its channels last and whose image has them first, after the pass.
Lines Reduced(const std::string& type, const std::vector<std::int64_t>& axes, bool keepdims,
              const std::vector<std::int64_t>& dims = {2, 4, 5, 3}) {
  onnx::ModelProto model = ModelOf({dims.begin(), dims.end()});
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::int64_t> perm = {0, static_cast<std::int64_t>(dims.size()) - 1};
  for (std::size_t axis = 1; axis + 1 < dims.size(); ++axis) perm.push_back(static_cast<std::int64_t>(axis));
  AddIntList(AddNode(graph, "Transpose", {"x"}, "image"), "perm", perm);
  onnx::NodeProto* node = AddNode(graph, type, {"image"}, "y");
  AddIntList(node, "axes", axes);
  AddInt(node, "keepdims", keepdims ? 1 : 0);
  return RunPass("channels-last", model, {dims.begin(), dims.end()}).after;
}

TEST_CASE("channels-last: without all spatial axes a reduction is as the model has it") {
  CHECK(Reduced("ReduceMax", {2, 3}, false) ==
        Lines{"%1 = rewire.reduce_max {axes=[1, 2], keepdims=0}(%0)", "output y = %1"});
  CHECK(Reduced("ReduceMean", {-1, -2}, false) ==
        Lines{"%1 = rewire.reduce_mean {axes=[1, 2], keepdims=0}(%0)", "output y = %1"});
  CHECK(Reduced("ReduceL2", {0, 2, 3}, false) ==
        Lines{"%1 = rewire.reduce_l2 {axes=[0, 1, 2], keepdims=0}(%0)", "output y = %1"});
  CHECK(Reduced("ReduceMin", {2}, false, {2, 7, 3}) ==
        Lines{"%1 = rewire.reduce_min {axes=[1], keepdims=0}(%0)", "output y = %1"});
  CHECK(Reduced("ReduceSumSquare", {2, 3, 4}, false, {1, 2, 3, 4, 5}) ==
        Lines{"%1 = rewire.reduce_sum_square {axes=[1, 2, 3], keepdims=0}(%0)", "output y = %1"});
}

TEST_CASE("channels-last: without the channels the other axes have their order") {
  CHECK(Reduced("ReduceLogSumExp", {1}, false) ==
        Lines{"%1 = rewire.reduce_log_sum_exp {axes=[3], keepdims=0}(%0)", "output y = %1"});
  CHECK(Reduced("ReduceMax", {3, 1}, false) ==
        Lines{"%1 = rewire.reduce_max {axes=[2, 3], keepdims=0}(%0)", "output y = %1"});
}

TEST_CASE("channels-last: a reduction that keeps its axes makes an image") {
  CHECK(Reduced("ReduceMin", {2}, true) == Lines{"%1 = rewire.reduce_min {axes=[1], keepdims=1}(%0)",
                                                 "%2 = rewire.transpose {perm=[0, 3, 1, 2]}(%1)",
                                                 "output y = %2"});
  // The order of the elements is the same in both layouts.
  CHECK(Reduced("ReduceMean", {1}, true) ==
        Lines{"%1 = rewire.reduce_mean {axes=[3], keepdims=1}(%0)", "%2 = reshape(%1)", "output y = %2"});
}

TEST_CASE("channels-last: a reduction that leaves channels in front of spatial axes needs them first") {
  const Lines first = {"%1 = rewire.transpose {perm=[0, 3, 1, 2]}(%0)"};
  for (const std::int64_t axis : {2, 3}) {
    const Lines lines = Reduced("ReduceMax", {axis}, false);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == first[0]);
  }
  // An axis of one element counts: the result has it behind the channels.
  CHECK(Reduced("ReduceMax", {2}, false, {2, 4, 1, 3})[0] == first[0]);
}

}  // namespace
}  // namespace rewire::test
