// SPDX-License-Identifier: Apache-2.0
// The tools in a build without the compiler or without libedit: this program has these parts in
// place of the others.
#include <catch2/catch.hpp>

#include "rewire/tools/debug/edited_lines.h"
#include "rewire/tools/io/open_onnx.h"

namespace rewire::tools {
namespace {

TEST_CASE("tools without the compiler refuse a model by name") {
  const Result<Module> module = OpenOnnx("a folder/model.onnx", {});
  REQUIRE_FALSE(module);
  CHECK(module.error().code() == StatusCode::kUnsupported);
  CHECK(module.error().message() == "a folder/model.onnx: these tools were built without the ONNX compiler");
}

TEST_CASE("tools without libedit read plain lines") {
  CHECK(EditedLines([](const std::string&) { return std::vector<std::string>(); }, "") == nullptr);
}

}  // namespace
}  // namespace rewire::tools
