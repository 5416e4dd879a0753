// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/single_pass.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>
#include <utility>

namespace rewire::test {
namespace {

Lines LinesOf(const std::string& text) {
  static const std::regex kType(R"(: [a-z0-9]+\[[^\]]*\])");
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    line = std::regex_replace(line.substr(0, line.find("  ; ")), kType, "");
    const std::size_t begin = line.find_first_not_of(' ');
    if (line.rfind("input ", 0) != 0) lines.push_back(line.substr(begin));
  }
  return lines;
}

// A program's lines after a stage, and its answer.
std::pair<Lines, Answer> CompileAndRun(const onnx::ModelProto& model, const std::string& stage,
                                       const std::vector<std::string>& only, const Shape& shape) {
  compiler::CompileOptions options;
  for (const std::string& name : compiler::PassNames()) {
    if (std::find(only.begin(), only.end(), name) == only.end()) options.disabled_passes.insert(name);
  }
  Lines lines;
  options.dump = [&](const std::string& at, const std::string& text) {
    if (at == stage) lines = LinesOf(text);
  };
  Outcome outcome = CompileProto(model, options);
  INFO(outcome.message);
  for (const compiler::Unsupported& node : outcome.unsupported) UNSCOPED_INFO(node.node + ": " + node.reason);
  REQUIRE(outcome.message.empty());
  return {std::move(lines), RunOnCounts(std::move(outcome.compiled.module), shape)};
}

}  // namespace

onnx::ModelProto ModelOf(const std::vector<Dim>& x, std::int64_t opset) {
  onnx::ModelProto model = EmptyModel(opset);
  SetValue(model.mutable_graph()->add_input(), "x", x);
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

void AddFloat(onnx::NodeProto* node, const std::string& name, float value) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

std::vector<float> Numbers(std::int64_t count) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i % 7) - 3);
  return numbers;
}

PassRun RunPass(const std::string& pass, const onnx::ModelProto& model, const Shape& shape) {
  return RunPasses({pass}, model, shape);
}

PassRun RunPasses(const std::vector<std::string>& passes, const onnx::ModelProto& model, const Shape& shape) {
  const auto [before, expected] = CompileAndRun(model, "lowered", {}, shape);
  // Constants are folded while nodes are lowered.
  const std::string& last = passes.back();
  auto [after, given] = CompileAndRun(model, last == "fold-constants" ? "lowered" : last, passes, shape);
  CHECK(expected.error.empty());
  CHECK(given.error == expected.error);
  CHECK(given.shape == expected.shape);
  REQUIRE(given.values.size() == expected.values.size());
  for (std::size_t i = 0; i < given.values.size(); ++i)
    CHECK(given.values[i] == Approx(expected.values[i]).epsilon(1e-4).margin(1e-5));
  // A pass whose library is missing has not run.
  if (after.empty()) after = before;
  return {before, std::move(after)};
}

Lines KernelsOf(const Lines& lines) {
  Lines kernels;
  for (const std::string& line : lines) {
    const std::size_t from = line.find(" = ");
    if (line[0] != '%' || line.find("rewire.packed.pack") != std::string::npos) continue;
    kernels.push_back(line.substr(from + 3, line.find_first_of(" (", from + 3) - from - 3));
  }
  return kernels;
}

}  // namespace rewire::test
