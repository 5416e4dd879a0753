// SPDX-License-Identifier: Apache-2.0
// The work that a file makes an importer do is in proportion to the file. Each case names one table that once
// took the product of two sizes; a mend that is undone makes the test take minutes or gigabytes.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/import/tables.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/tests/executable_format/import/memory_watch.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

// Inputs x and w, and y = f(x, w); more nodes and their entries can follow.
Json CallGraph() {
  const auto input = [](const char* name) {
    return Json{{"op", "null"}, {"name", name}, {"inputs", Json::array()}};
  };
  return {{"nodes",
           {input("x"),
            input("w"),
            {{"op", "tvm_op"},
             {"name", "y"},
             {"attrs", {{"func_name", "f"}}},
             {"inputs", {{0, 0, 0}, {1, 0, 0}}}}}},
          {"heads", Json::array({{2, 0, 0}})},
          {"attrs",
           {{"dltype", {"list_str", {"float32", "float32", "float32"}}},
            {"storage_id", {"list_int", {0, 1, 2}}},
            {"shape", {"list_shape", {{4}, {4}, {4}}}}}},
          {"node_row_ptr", {0, 1, 2, 3}}};
}

void AddInput(Json& graph, const char* name, const Json& shape) {
  graph["nodes"].push_back({{"op", "null"}, {"name", name}, {"inputs", Json::array()}});
  graph["node_row_ptr"].push_back(graph["node_row_ptr"].size());
  graph["attrs"]["dltype"][1].push_back("float32");
  graph["attrs"]["storage_id"][1].push_back(0);
  graph["attrs"]["shape"][1].push_back(shape);
}

std::string GraphError(const Json& graph) {
  const Result<Module> module = ImportGraph(graph.dump(), {}, nullptr);
  return module ? "no error" : module.error().message();
}

TEST_CASE("a name that is given often gets its numbers one after the other") {
  UniqueNames names;
  CHECK(names.Make("y", "") == "y");
  CHECK(names.Make("y_3", "") == "y_3");
  CHECK(names.Make("y", "") == "y_2");
  CHECK(names.Make("y", "") == "y_4");
  CHECK(names.Make("", "y") == "y_5");
  std::string last;
  for (int i = 0; i < 200000; ++i) last = names.Make("x", "");
  CHECK(last == "x_200000");
}

TEST_CASE("one head repeated gives outputs up to the limit, and is refused above it") {
  Json graph = CallGraph();
  graph["heads"] = Json(4096, Json::array({2, 0, 0}));
  Result<Module> module = ImportGraph(graph.dump(), {}, nullptr);
  REQUIRE(module);
  CHECK(module->functions[0].output_names.back() == "y_4096");
  CHECK(Executable::FromModule(std::move(*module)));
  graph["heads"].push_back({2, 0, 0});
  CHECK(GraphError(graph) == "graph: the graph has 4097 heads; a function gives 4096 outputs at most");
}

TEST_CASE("a long name is refused before heads repeat it") {
  Json graph = CallGraph();
  graph["nodes"][2]["name"] = std::string(4097, 'y');
  CHECK(GraphError(graph) == "graph: node 2 has a name of 4097 bytes; at most 4096 are read");
  graph["nodes"][2]["name"] = std::string(4096, 'y');
  CHECK(GraphError(graph) == "no error");
}

TEST_CASE("JSON nested a million deep is an error where a number or a name belongs") {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  const auto with = [&](const std::string& place) {
    std::string text = CallGraph().dump();
    text.replace(text.find(place), place.size(), deep);
    const Result<Module> module = ImportGraph(text, {}, nullptr);
    return module ? "no error" : module.error().message();
  };
  // The first shape is [4]: inside it stands a list in place of 4.
  CHECK(with("[[4],[4],[4]]") == "graph: attrs.shape is not a list of 3 elements");
  CHECK(with("4") == "graph: entry 0 has dimension a list");
  CHECK(with("\"float32\"") == "graph: entry 0 has dtype a list");
  CHECK(with("\"y\"") == "no error");  // a node without a name
  Json graph = CallGraph();
  graph["attrs"]["dltype"][1][0] = std::string(100000, 'f');
  CHECK(GraphError(graph).size() < 100);
}

TEST_CASE("nodes of one name share one parameter") {
  const std::string weight(std::size_t{1} << 20, 'w');
  const std::vector<std::int64_t> shape = {1 << 18};
  const NamedTensors parameters = {
      {"big", {kFloat32, shape, {reinterpret_cast<const std::byte*>(weight.data()), weight.size()}}}};
  Json graph = CallGraph();
  for (int i = 0; i < 1000; ++i) AddInput(graph, "big", shape);
  const Result<Module> module = ImportGraph(graph.dump(), parameters, nullptr);
  REQUIRE(module);
  CHECK(module->constants.size() == 1);
  CHECK(module->functions[0].inputs.size() == 2);
}

TEST_CASE("nodes without outputs cost nothing at the heads") {
  Json graph = CallGraph();
  const Json idle = {
      {"op", "tvm_op"}, {"name", ""}, {"attrs", {{"func_name", "f"}}}, {"inputs", Json::array()}};
  for (int i = 0; i < 50000; ++i) {
    graph["nodes"].push_back(idle);
    graph["node_row_ptr"].push_back(3);
  }
  graph["heads"] = Json(4096, Json::array({2, 0, 0}));
  const Result<Module> module = ImportGraph(graph.dump(), {}, nullptr);
  REQUIRE(module);
  CHECK(module->functions[0].output_names[0] == "y");
}

TEST_CASE("each of many devices is found at once") {
  Module module;
  module.devices.clear();
  DeviceTable table(&module);
  for (int i = 0; i < 100000; ++i) {
    CHECK_FALSE(!table.Add({kDLCPU, 0, "scope " + std::to_string(i)}));
  }
  CHECK(*table.Add({kDLCPU, 0, "scope 77777"}) == 77777);
  CHECK(module.devices.size() == 100000);

  // 0.8 has no table: every field that names a device is one.
  RelaySpec spec;
  spec.form = RelaySpec::Devices::kAbsent;
  spec.tagged_constants = false;
  spec.version = "0.8.0";
  spec.functions.push_back({"main", "4", {"x"}, {}, ""});
  spec.parameter_device = 1;
  for (std::int64_t i = 0; i < 60000; ++i) {
    spec.functions[0].code.push_back({kDeviceCopy, 0, 1, 1 + i, 1});
  }
  spec.functions[0].code.push_back({kRet, 1});
  const Result<Module> relay = ImportRelayExecutable(Share(WriteRelay(spec)));
  REQUIRE_FALSE(relay);
  CHECK_THAT(relay.error().message(), Contains("a device of type 128 is on another machine"));
}

TEST_CASE("a closure of many captures that is called often stays a closure") {
  constexpr std::int64_t kMany = 2000;
  RelaySpec spec;
  RelayFunctionSpec inner{"inner", std::to_string(kMany + 1), {}, {{kRet, 0}}, ""};
  for (std::int64_t i = 0; i < kMany; ++i) inner.parameters.push_back("p" + std::to_string(i));
  RelayWords make = {kAllocClosure, 1, kMany, 1};
  make.insert(make.end(), static_cast<std::size_t>(kMany), 0);
  RelayFunctionSpec main{"main", "8", {"x"}, {make}, ""};
  for (std::int64_t i = 0; i < kMany; ++i) main.code.push_back({kInvokeClosure, 1, 0, 2});
  main.code.push_back({kRet, 2});
  spec.functions = {main, inner};
  const std::string file = WriteRelay(spec);
  const Result<Module> module = ImportRelayExecutable(Share(file));
  REQUIRE(module);
  CHECK(module->functions[0].code.size() < file.size());
  // The first calls are direct all the same.
  CHECK_THAT(CodeText(*module), Contains("= invoke inner(") && Contains("= invoke_closure"));
}

// Each block jumps to the one before it, so that liveness, looked for in the order of the code, takes a round
// a block.
TEST_CASE("a chain of jumps backwards is analyzed in one go") {
  constexpr std::int64_t kBlocks = 100000;
  RelaySpec spec;
  RelayFunctionSpec main{"main", "8", {"x"}, {{kGoto, kBlocks}, {kRet, 0}}, ""};
  for (std::int64_t i = 1; i < kBlocks; ++i) main.code.push_back({kGoto, -1});
  spec.functions = {main};
  const Result<Module> module = ImportRelayExecutable(Share(WriteRelay(spec)));
  if (!module) FAIL(module.error().message());
  CHECK(module->functions[0].code.size() >= static_cast<std::size_t>(kBlocks));
}

// Twelve instructions double a tuple to 4,096 leaves; a file has many such functions.
TEST_CASE("results that are trees get no more leaves than is in proportion to the code") {
  RelaySpec spec;
  for (int f = 0; f < 400; ++f) {
    RelayFunctionSpec function{"f" + std::to_string(f), "16", {"x"}, {}, ""};
    for (std::int64_t i = 0; i < 12; ++i) function.code.push_back({kAllocAdt, 0, 2, i + 1, i, i});
    function.code.push_back({kRet, 12});
    spec.functions.push_back(function);
  }
  const std::string file = WriteRelay(spec);
  const MemoryWatch memory;
  const Result<Module> module = ImportRelayExecutable(Share(file));
  REQUIRE(module);
  CHECK(module->functions[0].output_names.size() == 4096);
  CHECK(module->functions[399].output_names.size() == 1);
  CHECK(memory.peak() < 64 * file.size());
}

// A loop that shifts registers by one: each round over it teaches the analysis of results one more.
TEST_CASE("a loop that shifts many registers leaves the result open instead of taking for ever") {
  constexpr std::int64_t kMany = 3000;
  RelaySpec spec;
  RelayFunctionSpec main{"main", std::to_string(kMany + 4), {"x"}, {}, ""};
  main.code.push_back({kLoadConsti, 1, kMany + 2});
  for (std::int64_t i = 1; i <= kMany; ++i) main.code.push_back({kAllocAdt, 0, 0, i});
  for (std::int64_t i = kMany; i > 1; --i) main.code.push_back({kMove, i - 1, i});
  main.code.push_back({kAllocAdt, 7, 1, 1, 0});
  main.code.push_back({kIf, kMany + 2, kMany + 2, 1, -kMany});
  main.code.push_back({kAllocAdt, 0, 2, kMany + 3, kMany, 1});
  main.code.push_back({kRet, kMany + 3});
  spec.functions = {main};
  CHECK(ImportRelayExecutable(Share(WriteRelay(spec))));
}

}  // namespace
}  // namespace rewire::tvm
