// SPDX-License-Identifier: Apache-2.0
// A small model whose answer a test states.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {

// A model of one input "x", which counts up from 0, and one output "y".
class OneOutput {
 public:
  OneOutput(std::int64_t opset, const std::vector<Dim>& dims) : model_(EmptyModel(opset)) {
    SetValue(graph()->add_input(), "x", dims);
    SetValue(graph()->add_output(), "y", {});
    graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  onnx::ModelProto* model() { return &model_; }
  onnx::GraphProto* graph() { return model_.mutable_graph(); }

  Answer Run(const Shape& shape) {
    const Outcome outcome = CompileProto(model_);
    INFO(outcome.message << (outcome.unsupported.empty() ? "" : ": " + outcome.unsupported[0].reason));
    REQUIRE(outcome.message.empty());
    Answer answer = RunOnCounts(outcome.compiled.module, shape);
    CHECK(answer.error.empty());
    return answer;
  }
  // With the answer's values as they are printed.
  void Expect(const Shape& given, const Shape& shape, const std::vector<float>& values) {
    const Answer answer = Run(given);
    CHECK(answer.shape == shape);
    REQUIRE(answer.values.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      INFO("element " << i);
      if (answer.values[i] != values[i]) CHECK(answer.values[i] == Approx(values[i]).margin(1e-5));
    }
  }

 private:
  onnx::ModelProto model_;
};

}  // namespace rewire::test
