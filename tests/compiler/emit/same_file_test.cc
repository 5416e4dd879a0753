// SPDX-License-Identifier: Apache-2.0
// A model gives the same file every time.
#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "rewire/executable_format/writer.h"
#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

TEST_CASE("a model gives the same file wherever its graph lies in memory") {
  onnx::ModelProto model = ModelOf({"N", 3});
  onnx::GraphProto* graph = model.mutable_graph();
  std::vector<std::string> parts;
  for (int i = 0; i < 12; ++i) {
    parts.push_back("part" + std::to_string(i));
    AddNode(graph, "Neg", {"x"}, parts.back());
  }
  AddInt(AddNode(graph, "Concat", parts, "y"), "axis", 0);  // all parts die at once
  compiler::CompileOptions options;
  for (const std::string& pass : compiler::PassNames()) options.disabled_passes.insert(pass);
  std::vector<Outcome> outcomes;  // alive, so that the next graph lies elsewhere
  std::vector<std::vector<std::byte>> files;
  for (int i = 0; i < 8; ++i) {
    outcomes.push_back(CompileProto(model, options));
    REQUIRE(outcomes.back().message.empty());
    Result<std::vector<std::byte>> file = SerializeModule(outcomes.back().compiled.module);
    REQUIRE(file);
    files.push_back(*std::move(file));
    const bool same = files.back() == files.front();
    CHECK(same);
  }
}

}  // namespace
}  // namespace rewire::test
