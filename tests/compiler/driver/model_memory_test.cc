// SPDX-License-Identifier: Apache-2.0
// A program does not keep the model in memory for a few of its constants.
#include "rewire/compiler/driver/model_memory.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

// y = x w + a + b for rows of `size` elements; `packed`: w is a matrix, which is packed, and else a vector.
onnx::ModelProto SumModel(bool packed) {
  constexpr std::int64_t kSize = 64;
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", kSize});
  const std::vector<float> values(kSize * kSize, 0.5F);
  const std::vector<float> row(kSize, 1.0F), other_row(kSize, 2.0F);
  const auto add = [&](const char* name, const std::vector<std::int64_t>& shape,
                       const std::vector<float>& from) {
    AddFloats(graph, name, shape, {});
    onnx::TensorProto* tensor = graph->mutable_initializer(graph->initializer_size() - 1);
    tensor->clear_float_data();
    tensor->set_raw_data(from.data(), from.size() * sizeof(float));
  };
  if (packed) add("w", {kSize, kSize}, values);
  add("a", {kSize}, row);
  add("b", {kSize}, other_row);
  if (packed) {
    AddNode(graph, "MatMul", {"x", "w"}, "p");
  } else {
    AddNode(graph, "Relu", {"x"}, "p");
  }
  AddNode(graph, "Max", {"p", "a"}, "q");
  AddNode(graph, "Min", {"q", "b"}, "y");
  SetValue(graph->add_output(), "y", {"N", kSize});
  return model;
}

// The owners of all constants that have bytes.
std::multiset<const void*> OwnersOf(const Module& module) {
  std::multiset<const void*> owners;
  for (const Constant& constant : module.constants) owners.insert(constant.stored.owner.get());
  return owners;
}

TEST_CASE("a few constants of a model are copied, so that its message goes, and most of them stay in it") {
  const Outcome few = CompileProto(SumModel(true)), most = CompileProto(SumModel(false));
  REQUIRE(few.message == "");
  REQUIRE(most.message == "");
  const std::multiset<const void*> apart = OwnersOf(few.compiled.module),
                                   together = OwnersOf(most.compiled.module);
  REQUIRE(apart.size() >= 3);
  for (const void* owner : apart) CHECK(apart.count(owner) == 1);
  REQUIRE(together.size() == 2);
  CHECK(together.count(*together.begin()) == 2);
}

}  // namespace
}  // namespace rewire::test
