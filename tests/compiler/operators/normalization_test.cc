// SPDX-License-Identifier: Apache-2.0
// Dividing by a norm of 0 gives 0.
#include <catch2/catch.hpp>
#include <utility>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

TEST_CASE("LpNormalization of zeros gives zeros") {
  for (const std::int64_t p : {1, 2}) {
    onnx::ModelProto model = EmptyModel();
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {2, 2});
    SetValue(graph->add_output(), "y", {2, 2});
    // 0, 1, 2, 3 becomes 0, 0, 2, 3.
    AddFloats(graph, "one", {}, {1});
    AddNode(graph, "Equal", {"x", "one"}, "is_one");
    AddFloats(graph, "zero", {}, {0});
    AddNode(graph, "Where", {"is_one", "zero", "x"}, "values");
    onnx::NodeProto* node = AddNode(graph, "LpNormalization", {"values"}, "y");
    AddInt(node, "p", p);
    AddInt(node, "axis", 1);
    Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const Answer answer = RunOnCounts(std::move(outcome.compiled.module), {2, 2});
    REQUIRE(answer.error.empty());
    const float norm = p == 1 ? 5.0F : 3.6055512755F;
    CHECK(answer.values[0] == 0);
    CHECK(answer.values[1] == 0);
    CHECK(answer.values[2] == Approx(2 / norm));
    CHECK(answer.values[3] == Approx(3 / norm));
  }
}

}  // namespace
}  // namespace rewire::test
