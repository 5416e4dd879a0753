// SPDX-License-Identifier: Apache-2.0
// Metadata of models, from ONNX to C++, C and the tools.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

using Properties = std::vector<std::pair<std::string, std::string>>;

onnx::ModelProto Described(const Properties& properties) {
  onnx::ModelProto model = EmptyModel();
  model.set_producer_name("maker");
  model.set_producer_version("3.1");
  model.set_domain("test.domain");
  model.set_doc_string("a description");
  model.set_model_version(-7);
  model.mutable_graph()->set_name("the graph");
  model.mutable_graph()->set_doc_string("of the graph");
  SetValue(model.mutable_graph()->add_input(), "x", {4});
  AddNode(model.mutable_graph(), "Relu", {"x"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {4});
  for (const auto& [key, value] : properties) {
    onnx::StringStringEntryProto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model;
}

Module Compiled(const onnx::ModelProto& model) {
  Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  Result<Executable> verified = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(verified);
  return verified->module();
}

Properties PropertiesOf(const Module& module) {
  const ModelMetadata metadata = ReadModelMetadata(module);
  return {metadata.properties.begin(), metadata.properties.end()};
}

TEST_CASE("an executable keeps what the model says about itself") {
  const Properties properties = {{"language", "de"}, {"", ""}, {"two\nlines", "a\tb"}};
  const Module module = Compiled(Described(properties));
  const ModelMetadata metadata = ReadModelMetadata(module);
  CHECK(metadata.producer == "maker");
  CHECK(metadata.producer_version == "3.1");
  CHECK(metadata.domain == "test.domain");
  CHECK(metadata.description == "a description");
  CHECK(metadata.graph == "the graph");
  CHECK(metadata.graph_description == "of the graph");
  CHECK(metadata.version == -7);
  CHECK(PropertiesOf(module) == properties);
}

TEST_CASE("of properties with one key the last counts") {
  CHECK(PropertiesOf(Compiled(Described({{"a", "1"}, {"b", "2"}, {"a", "3"}}))) ==
        Properties{{"a", "3"}, {"b", "2"}});
}

TEST_CASE("texts that are long or not UTF-8 are kept as far as an executable can hold them") {
  const std::size_t most = FormatLimits().text_bytes;
  for (const std::size_t size : {most - 1, most, most + 1, 3 * most}) {
    // Characters of two bytes, which no entry may cut.
    std::string text = "a";
    while (text.size() < size) text += "\u00e9";
    CHECK(PropertiesOf(Compiled(Described({{text, text}}))) == Properties{{text, text}});
  }
  CHECK(PropertiesOf(Compiled(Described({{"\xFF", "a\xE9z\xC3"}}))) ==
        Properties{{"\uFFFD", "a\uFFFDz\uFFFD"}});
}

TEST_CASE("a program that no model describes has no metadata of one") {
  const ModelMetadata none = ReadModelMetadata(Module());
  CHECK(none.graph.empty());
  CHECK(none.properties.empty());
  Module odd;
  odd.metadata = {{"model version", "seven"}, {"model value 0 +1", "x"}, {"model property 1", "y"}};
  CHECK(ReadModelMetadata(odd).version == 0);
  CHECK(ReadModelMetadata(odd).properties.empty());
}

using ModelText = RewireStatus (*)(const RewireExecutable*, std::uint32_t, char*, std::size_t, std::size_t*);

std::string TextOf(const RewireExecutable* executable, ModelText read, std::uint32_t index) {
  std::size_t length = 0;
  REQUIRE(read(executable, index, nullptr, 0, &length) == kRewireOk);
  std::string text(length + 1, '\0');
  REQUIRE(read(executable, index, text.data(), text.size(), nullptr) == kRewireOk);
  text.pop_back();
  return text;
}

TEST_CASE("the C interface tells a model's metadata") {
  const std::string bytes = Described({{"language", "de"}, {"rate", "16000"}}).SerializeAsString();
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, nullptr, nullptr,
                                &executable) == kRewireOk);
  RewireModelInfo info{};
  info.struct_size = sizeof(info);
  CHECK(rewire_executable_model(executable, &info) == kRewireOk);
  CHECK(info.version == -7);
  CHECK(info.property_count == 2);
  const auto text = [&](RewireModelText what) {
    const ModelText read = [](const RewireExecutable* from, std::uint32_t number, char* buffer,
                              std::size_t size, std::size_t* length) {
      return rewire_executable_model_text(from, static_cast<RewireModelText>(number), buffer, size, length);
    };
    return TextOf(executable, read, static_cast<std::uint32_t>(what));
  };
  CHECK(text(kRewireModelProducer) == "maker");
  CHECK(text(kRewireModelProducerVersion) == "3.1");
  CHECK(text(kRewireModelDomain) == "test.domain");
  CHECK(text(kRewireModelDescription) == "a description");
  CHECK(text(kRewireModelGraph) == "the graph");
  CHECK(text(kRewireModelGraphDescription) == "of the graph");
  CHECK(TextOf(executable, rewire_executable_model_property_key, 1) == "rate");
  CHECK(TextOf(executable, rewire_executable_model_property_value, 1) == "16000");
  CHECK(rewire_executable_model_text(executable, 6, nullptr, 0, nullptr) == kRewireInvalidArgument);
  CHECK(std::string(rewire_last_error_message()) ==
        "a model has no text 6; kRewireModel... has their numbers");
  CHECK(rewire_executable_model_property_key(executable, 2, nullptr, 0, nullptr) == kRewireInvalidArgument);
  CHECK(std::string(rewire_last_error_message()) == "property 2 asked for, there are 2");
  rewire_executable_destroy(executable);
}

TEST_CASE("vm-inspect shows what a model says about itself, and vm-strip takes it") {
  const TempFolder folder;
  folder.Write("model.onnx", Described({{"language", "de"}}).SerializeAsString());
  const auto run = [&](const char* program, const std::vector<std::string>& arguments) {
    const Finished finished = RunProgram(program, arguments, folder.path());
    REQUIRE(finished.err == "");
    return finished.out;
  };
  run("vm-compile", {"model.onnx", "-o", "model.rwx"});
  const std::string shown = run("vm-inspect", {"model.rwx"});
  for (const char* line : {"  model producer: maker\n", "  model graph: the graph\n", "  model version: -7\n",
                           "  property language: de\n"}) {
    CHECK(shown.find(line) != std::string::npos);
  }
  const auto model = nlohmann::json::parse(run("vm-inspect", {"model.rwx", "--json"}))["model"];
  CHECK(model["producer"] == "maker");
  CHECK(model["version"] == -7);
  CHECK(model["properties"] == nlohmann::json{{"language", "de"}});

  run("vm-strip", {"model.rwx", "-o", "small.rwx", "--map", "names.json"});
  CHECK(nlohmann::json::parse(run("vm-inspect", {"small.rwx", "--json"}))["model"]["producer"] == "");
  const std::string named = run("vm-inspect", {"small.rwx", "--map", "names.json", "--json"});
  CHECK(nlohmann::json::parse(named)["model"]["properties"]["language"] == "de");
}

}  // namespace
}  // namespace rewire::test
