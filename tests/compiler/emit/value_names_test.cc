// SPDX-License-Identifier: Apache-2.0
// Compiled programs know which of their values are values of the model, whatever passes made of them.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

using nlohmann::json;

// A convolution, which has its channels last, and an activation that becomes a part of it.
onnx::ModelProto Convolutions() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 8, 6, 6});
  std::vector<float> weights(8 * 8 * 3 * 3);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) - 3;
  AddFloats(graph, "w", {8, 8, 3, 3}, weights);
  AddNode(graph, "Conv", {"x", "w"}, "conv 1");
  AddNode(graph, "Relu", {"conv 1"}, "relu");
  AddNode(graph, "Conv", {"relu", "w"}, "conv 2");
  AddNode(graph, "Sigmoid", {"conv 2"}, "y");
  SetValue(graph->add_output(), "y", {});
  return model;
}

std::map<std::string, json> Dumped(const std::vector<std::string>& arguments, const TempFolder& folder,
                                   const std::string& values) {
  std::vector<std::string> all = arguments;
  for (const char* more : {"--random", "--dump-values"}) all.emplace_back(more);
  all.push_back(values);
  const Finished done = RunProgram("vm-run", all, folder.path());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  std::map<std::string, json> by_value;
  const json index = json::parse(ReadWholeFile(folder.path() / values / "index.json"));
  for (const json& entry : index["values"]) {
    if (entry["value"] != "") by_value[entry["value"]] = entry;
  }
  return by_value;
}

TEST_CASE("values of the model have its names and its layout, and stripping takes and gives them back") {
  const TempFolder folder;
  folder.Write("model.onnx", Convolutions().SerializeAsString());
  const auto run = [&](const char* tool, const std::vector<std::string>& arguments) {
    const Finished done = RunProgram(tool, arguments, folder.path());
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    return done.out;
  };
  run("vm-compile", {"model.onnx", "-o", "model.rwx"});
  const std::map<std::string, json> values = Dumped({"model.rwx"}, folder, "values");
  // "conv 1" is gone: the kernel writes what the activation makes of it.
  CHECK_FALSE(values.contains("conv 1"));
  REQUIRE(values.contains("relu"));
  CHECK(values.at("relu")["shape"] == json({1, 8, 4, 4}));
  CHECK(values.at("relu")["operator"] == "Conv");
  REQUIRE(values.contains("y"));

  // Without passes each value is there. The elements are the same, whatever layout they were computed in.
  const std::string passes =
      json::parse(run("vm-compile", {"model.onnx", "-o", "any.rwx", "--json"}))["passes"].dump();
  std::vector<std::string> plain = {"model.onnx", "-o", "plain.rwx"};
  for (const json& pass : json::parse(passes)) {
    plain.emplace_back("--disable-pass");
    plain.push_back(pass);
  }
  run("vm-compile", plain);
  const std::map<std::string, json> all = Dumped({"plain.rwx"}, folder, "all");
  for (const char* name : {"conv 1", "relu", "conv 2", "y"}) CHECK(all.contains(name));
  const auto floats = [&](const std::string& file) {
    const Result<HostTensor> tensor = ReadNpy((folder.path() / file).string());
    REQUIRE(tensor.has_value());
    const auto* elements = reinterpret_cast<const float*>(tensor->bytes.view.data());
    return std::vector<float>(elements, elements + tensor->bytes.view.size() / sizeof(float));
  };
  const std::vector<float> given = floats("values/" + values.at("relu")["file"].get<std::string>());
  const std::vector<float> expected = floats("all/" + all.at("relu")["file"].get<std::string>());
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) CHECK(given[i] == Approx(expected[i]).margin(1e-4));

  run("vm-strip", {"model.rwx", "-o", "small.rwx", "--map", "names.json"});
  CHECK(Dumped({"small.rwx"}, folder, "stripped").empty());
  CHECK(Dumped({"small.rwx", "--map", "names.json"}, folder, "named").contains("relu"));
}

TEST_CASE("names of values fill as many entries of the metadata as they need") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {4});
  std::string last = "x";
  const std::string long_name(800, 'n');
  for (int i = 0; i < 200; ++i) {
    const std::string next = long_name + std::to_string(i);
    AddNode(graph, i % 2 == 0 ? "Sin" : "Cos", {last}, next);
    last = next;
  }
  SetValue(graph->add_output(), last, {});
  compiler::CompileOptions options;
  options.disabled_passes = {"fuse-elementwise"};
  const Outcome outcome = CompileProto(model, options);
  REQUIRE(outcome.message.empty());
  std::size_t names = 0, entries = 0;
  for (const auto& [key, value] : outcome.compiled.module.metadata) {
    if (key.rfind("values main.", 0) != 0) continue;
    CHECK(key == "values main." + std::to_string(entries++));
    CHECK(value.size() <= FormatLimits().text_bytes);
    names += json::parse(value).size();
  }
  CHECK(entries == 3);
  CHECK(names == 200);
}

}  // namespace
}  // namespace rewire::test
