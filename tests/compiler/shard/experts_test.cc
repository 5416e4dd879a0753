// SPDX-License-Identifier: Apache-2.0
// Experts in the forms that exported models have: one product for each, branches, and loops over a stack.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/shard/check_split.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kExpertWidth = 64, kHidden = 128, kExperts = 4;

std::string NumberedExpert(const std::string& name, std::int64_t expert) {
  return name + "_" + std::to_string(expert);
}

// Layers of a router, whose values "gates" are [1, length, experts].
Layers Router(onnx::ModelProto* model) {
  Layers add(model, 3);
  AddInt(add.Node("Softmax", {add.Linear("x", kExpertWidth, kExperts, "router", false)}, "gates"), "axis",
         -1);
  return add;
}

TEST_CASE("experts that are products of their own give one sum") {
  onnx::ModelProto model = ModelOfTokens(0);
  Layers add = Router(&model);
  AddInts(add.graph(), "ones", {1, 1, 1, 1});
  onnx::NodeProto* apart = add.Node("Split", {"gates", "ones"}, "gate_0");
  for (std::int64_t i = 1; i < kExperts; ++i) apart->add_output(NumberedExpert("gate", i));
  AddInt(apart, "axis", -1);
  std::string sum;
  for (std::int64_t i = 0; i < kExperts; ++i) {
    add.Linear("x", kExpertWidth, kHidden, NumberedExpert("up", i));
    add.Node("Relu", {NumberedExpert("up", i)}, NumberedExpert("relu", i));
    add.Linear(NumberedExpert("relu", i), kHidden, kExpertWidth, NumberedExpert("down", i));
    const std::string weighted = NumberedExpert("weighted", i);
    add.Node("Mul", {NumberedExpert("down", i), NumberedExpert("gate", i)}, weighted);
    sum = i == 0 ? weighted : add.Add(sum, weighted, i + 1 == kExperts ? "y" : NumberedExpert("sum", i));
  }
  const SplitModel split = CheckSplit(model, Tokens(5));
  CHECK(split.layers == "columns columns rows columns rows columns rows columns rows");
  CHECK(split.exchanged.all_reduces == 1);
}

TEST_CASE("experts in branches are split, and all ranks take the same branches") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add = Router(&model);
  onnx::NodeProto* mean = add.Node("ReduceMean", {"gates"}, "shares");
  AddInt(mean, "keepdims", 0);
  AddIntList(mean, "axes", {0, 1});
  AddFloats(add.graph(), "least", {}, {1.0F / kExperts});
  AddFloats(add.graph(), "nothing", {1, 1, kExpertWidth}, std::vector<float>(kExpertWidth));
  std::string sum = "x";
  for (std::int64_t i = 0; i < kExperts; ++i) {
    AddInts(add.graph(), NumberedExpert("at", i), {i}, true);
    add.Node("Gather", {"shares", NumberedExpert("at", i)}, NumberedExpert("share", i));
    add.Node("Greater", {NumberedExpert("share", i), "least"}, NumberedExpert("chosen", i));
    const std::string up = add.Weight(NumberedExpert("up", i), {kExpertWidth, kHidden});
    const std::string down = add.Weight(NumberedExpert("down", i), {kHidden, kExpertWidth});
    onnx::NodeProto* node = add.Node("If", {NumberedExpert("chosen", i)}, NumberedExpert("out", i));
    onnx::GraphProto* yes = AddGraph(node, "then_branch");
    AddNode(yes, "MatMul", {"x", up}, NumberedExpert("hidden", i));
    AddNode(yes, "Relu", {NumberedExpert("hidden", i)}, NumberedExpert("relu", i));
    AddNode(yes, "MatMul", {NumberedExpert("relu", i), down}, NumberedExpert("yes", i));
    SetValue(yes->add_output(), NumberedExpert("yes", i), {1, 3, kExpertWidth});
    onnx::GraphProto* no = AddGraph(node, "else_branch");
    AddNode(no, "Expand", {"nothing", NumberedExpert("dims", i)}, NumberedExpert("no", i));
    AddInts(add.graph(), NumberedExpert("dims", i), {1, 3, kExpertWidth});
    SetValue(no->add_output(), NumberedExpert("no", i), {1, 3, kExpertWidth});
    sum = add.Add(sum, NumberedExpert("out", i), i + 1 == kExperts ? "y" : NumberedExpert("sum", i));
  }
  const SplitModel split = CheckSplit(model, Tokens(3));
  CHECK(split.layers == "columns columns rows columns rows columns rows columns rows");
  // One for each expert that is chosen, and one gather of the router.
  CHECK(split.exchanged.all_reduces >= 1);
  CHECK(split.exchanged.all_reduces < kExperts);
}

TEST_CASE("experts that a loop takes from a stack are split, each by columns and rows") {
  const bool transposed = GENERATE(false, true);
  onnx::ModelProto model = ModelOfTokens(0);
  Layers add = Router(&model);
  add.Weight("up", transposed ? std::vector{kExperts, kHidden, kExpertWidth}
                              : std::vector{kExperts, kExpertWidth, kHidden});
  add.Weight("down", {kExperts, kHidden, kExpertWidth});
  AddInts(add.graph(), "experts", {kExperts}, true);
  onnx::NodeProto* loop = add.Node("Loop", {"experts", "", "x"}, "y");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "expert", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "before", {1, "length", kExpertWidth});
  AddNode(body, "Identity", {"go_on"}, "on");
  AddNode(body, "Gather", {"up", "expert"}, "first");
  if (transposed) AddIntList(AddNode(body, "Transpose", {"first"}, "turned"), "perm", {1, 0});
  AddNode(body, "Gather", {"down", "expert"}, "second");
  AddNode(body, "MatMul", {"x", transposed ? "turned" : "first"}, "hidden");
  AddNode(body, "Relu", {"hidden"}, "relu");
  AddNode(body, "MatMul", {"relu", "second"}, "out");
  AddInts(add.graph(), "last", {2});
  AddInt(AddNode(body, "Gather", {"gates", "expert"}, "gate"), "axis", 2);
  AddNode(body, "Unsqueeze", {"gate", "last"}, "apart");
  AddNode(body, "Mul", {"out", "apart"}, "weighted");
  AddNode(body, "Add", {"before", "weighted"}, "after");
  SetValue(body->add_output(), "on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "after", {1, "length", kExpertWidth});
  const SplitModel split = CheckSplit(model, Tokens(5));
  CHECK(split.layers == "columns columns rows");
  CHECK(split.report.split_bytes == (2 * kExperts * kHidden + kExperts) * kExpertWidth * sizeof(float));
  CHECK(split.exchanged.all_reduces == kExperts);
}

TEST_CASE("experts that each token chooses from a stack are split by columns and rows") {
  onnx::ModelProto model = ModelOfTokens(5);
  Layers add = Router(&model);
  add.Weight("up", {kExperts, kExpertWidth, kHidden});
  add.Weight("down", {kExperts, kHidden, kExpertWidth});
  onnx::NodeProto* largest = add.Node("ArgMax", {"gates"}, "chosen");
  AddInt(largest, "axis", -1);
  AddInt(largest, "keepdims", 0);
  add.Reshape("chosen", {5}, "expert");
  add.Node("Gather", {"up", "expert"}, "first");
  add.Node("Gather", {"down", "expert"}, "second");
  add.Reshape("x", {5, 1, kExpertWidth}, "tokens");
  add.Node("MatMul", {"tokens", "first"}, "hidden");
  add.Node("Relu", {"hidden"}, "relu");
  add.Node("MatMul", {"relu", "second"}, "out");
  add.Reshape("out", {1, 5, kExpertWidth}, "y");
  CHECK(CheckSplit(model, Tokens(5)).layers == "columns columns rows");
}

}  // namespace
}  // namespace rewire::test
