// SPDX-License-Identifier: Apache-2.0
// A symbol has one size in a run: a caller who gives it two is told so, whatever the program does with them.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/values/run_model.h"

namespace rewire::test {
namespace {

// The model uses the second of two inputs whose first dimension is N, and one whose both are M.
onnx::ModelProto Model(const std::string& type) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "a", {"N"});
  SetValue(graph->add_input(), "b", {"N", "K"});
  SetValue(graph->add_input(), "c", {"M", "M"});
  AddNode(graph, type, {"b"}, "y");
  SetValue(graph->add_output(), "y", {});
  graph->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return model;
}

Elements Zeros(const Shape& shape) {
  return ElementsOf(shape, std::vector<float>(static_cast<std::size_t>(CountOf(shape)), 0));
}

TEST_CASE("inputs that share a symbol need one size of it") {
  for (const char* type : {"Shape", "Neg", "Identity"}) {
    INFO(type);
    LinkedModel model(Model(type));
    REQUIRE(model.error() == "");
    std::vector<Elements> good = {Zeros({3}), Zeros({3, 2}), Zeros({5, 5})};
    std::vector<Elements> two_of_n = {Zeros({3}), Zeros({5, 2}), Zeros({5, 5})};
    std::vector<Elements> two_of_m = {Zeros({3}), Zeros({3, 2}), Zeros({4, 5})};
    CHECK(model.Run(&good) == "");
    CHECK(model.Run(&two_of_n) ==
          "function main: dimension N is 3 in input 0 (a), axis 0 and 5 in input 1 (b), axis 0; equal names "
          "need equal sizes");
    CHECK(model.Run(&two_of_m) ==
          "function main: dimension M is 4 in input 2 (c), axis 0 and 5 in input 2 (c), axis 1; equal names "
          "need equal sizes");
    CHECK(model.Run(&good) == "");
  }
}

TEST_CASE("values of one call are compared, too") {
  Outcome outcome = CompileProto(Model("Neg"));
  REQUIRE(outcome.message.empty());
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  const auto zeros = [](const Shape& shape) { return Value(*Tensor::CopyOf(Zeros(shape).view())); };
  const std::vector<Value> good = {zeros({3}), zeros({3, 2}), zeros({5, 5})};
  const std::vector<Value> bad = {zeros({3}), zeros({4, 2}), zeros({5, 5})};
  CHECK(vm.TryInvoke("main", good));
  const Result<Value> refused = vm.TryInvoke("main", bad);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message().find("dimension N is 3 in input 0 (a), axis 0 and 4 in input 1 (b)") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test
