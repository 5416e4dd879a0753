// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

Json Input(const char* name) { return {{"op", "null"}, {"name", name}, {"inputs", Json::array()}}; }

Json Call(const char* function, Json inputs) {
  return {{"op", "tvm_op"},
          {"name", function},
          {"attrs", {{"func_name", function}, {"flatten_data", "0"}}},
          {"inputs", std::move(inputs)}};
}

// sum(reshape(scale(x, weight)), weight), and the reshape.
Json SampleGraph() {
  return {{"nodes",
           {Input("x"), Input("weight"), Call("scale", {{0, 0, 0}, {1, 0, 0}}),
            Call("__nop", Json::array({{2, 0, 0}})), Call("sum", {{3, 0, 0}, {1, 0, 0}})}},
          {"arg_nodes", {0, 1}},
          {"heads", {{4, 0, 0}, {3, 0, 0}}},
          {"attrs",
           {{"dltype", {"list_str", {"float32", "float32", "float32", "float32", "float32"}}},
            {"device_index", {"list_int", {1, 1, 1, 1, 1}}},
            {"storage_id", {"list_int", {0, 1, 2, 2, 3}}},
            {"shape", {"list_shape", {{4}, {4}, {4}, {2, 2}, Json::array()}}}}},
          {"node_row_ptr", {0, 1, 2, 3, 4, 5}}};
}

const std::string kWeight = "0123456789abcdef";

NamedTensors Parameters() {
  return {{"weight", {kFloat32, {4}, {reinterpret_cast<const std::byte*>(kWeight.data()), kWeight.size()}}},
          {"unused", {kFloat32, {0}, {}}}};
}

Result<Module> ImportJson(const Json& json) { return ImportGraph(json.dump(), Parameters(), nullptr); }

std::string GraphErrorOf(const Json& json) {
  Result<Module> module = ImportJson(json);
  REQUIRE_FALSE(module);
  return module.error().message();
}

TEST_CASE("a graph becomes a function of its inputs, with its storage plan and its parameters inside") {
  Result<Module> module = ImportJson(SampleGraph());
  if (!module) FAIL(module.error().message());
  CHECK(CodeText(*module) ==
        "%1 = load_const weight\n"
        "%2 = alloc_storage _, alignment=128, u8[16], cpu\n"
        "%3 = alloc_tensor %2, _, f32[4]\n"
        "invoke_packed scale(%x, %1, %3), outputs=1\n"
        "%2 = load_const #1\n"
        "%4 = reshape_tensor %3, %2\n"
        "%2 = alloc_storage _, alignment=128, u8[4], cpu\n"
        "%3 = alloc_tensor %2, _, f32\n"
        "invoke_packed sum(%4, %1, %3), outputs=1\n"
        "%1 = alloc_adt tag=0 (%3, %4)\n"
        "ret %1\n");
  const Function& main = module->functions[0];
  REQUIRE(main.inputs.size() == 1);
  CHECK(main.inputs[0].name == "x");
  CHECK(TypeText(main.inputs[0].type, {}) == "f32[4]");
  CHECK(TypeText(main.result, {}) == "(f32[], f32[2, 2])");
  CHECK(main.output_names == std::vector<std::string>{"sum", "__nop"});
  Result<Executable> executable = Executable::FromModule(std::move(*module));
  if (!executable) FAIL(executable.error().message());
  CHECK(executable->module().constants[0].name == "weight");
}

TEST_CASE("a graph of one output returns it alone") {
  Json json = SampleGraph();
  json["heads"] = Json::array({{4, 0, 0}});
  Result<Module> module = ImportJson(json);
  REQUIRE(module);
  CHECK(TypeText(module->functions[0].result, {}) == "f32[]");
  CHECK(Executable::FromModule(std::move(*module)));
}

TEST_CASE("a graph without heads gives an empty tuple") {
  Json json = SampleGraph();
  json["heads"] = Json::array();
  Result<Module> module = ImportJson(json);
  REQUIRE(module);
  CHECK(TypeText(module->functions[0].result, {}) == "()");
  CHECK(module->functions[0].output_names.empty());
  const Result<Executable> executable = Executable::FromModule(std::move(*module));
  if (!executable) FAIL(executable.error().message());
}

TEST_CASE("what the parameters lack is an input, and another shape an error") {
  Result<Module> module = ImportGraph(SampleGraph().dump(), {}, nullptr);
  REQUIRE(module);
  CHECK(module->functions[0].inputs.size() == 2);
  Json json = SampleGraph();
  json["attrs"]["shape"][1][1] = {2, 2};
  CHECK(GraphErrorOf(json) == "graph: parameter 'weight' is f32[4], the graph has f32[2, 2]");
}

TEST_CASE("a graph over two devices keeps their storages apart and copies between them") {
  Json json = SampleGraph();
  json["nodes"][3] = Call("__copy", Json::array({{2, 0, 0}}));
  json["attrs"]["shape"][1][3] = {4};
  json["attrs"]["device_index"][1] = {1, 1, 1, 2, 1};
  Result<Module> module = ImportJson(json);
  if (!module) FAIL(module.error().message());
  CHECK(module->devices == std::vector<DeviceEntry>{{kDLCPU, 0, ""}, {kDLCUDA, 0, ""}});
  CHECK_THAT(CodeText(*module), Contains("device_copy %") && Contains(", cpu, cuda:0"));
}

TEST_CASE("graphs that contradict themselves are refused") {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = SampleGraph();
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  CHECK_THAT(GraphErrorOf(with("/nodes/2/inputs/0/0", 2)),
             Contains("node 2 ('scale'): refers to what is no output of an earlier node"));
  CHECK_THAT(GraphErrorOf(with("/nodes/2/inputs/0/1", 1)), Contains("no output of an earlier node"));
  CHECK_THAT(GraphErrorOf(with("/nodes/2/inputs/0", -1)), Contains("no output of an earlier node"));
  CHECK_THAT(GraphErrorOf(with("/heads/0/0", 5)),
             Contains("a head: refers to what is no output of an earlier node"));
  CHECK_THAT(GraphErrorOf(with("/heads", 7)), Contains("the graph has no list of heads"));
  CHECK_THAT(GraphErrorOf(with("/node_row_ptr/5", 3)), Contains("node_row_ptr does not ascend from 0"));
  CHECK_THAT(GraphErrorOf(with("/node_row_ptr/0", 1)), Contains("does not ascend"));
  CHECK_THAT(GraphErrorOf(with("/node_row_ptr/5", 2000000000)),
             Contains("attrs.shape is not a list of 2000000000"));
  CHECK_THAT(GraphErrorOf(with("/node_row_ptr", {0, 1})), Contains("one element more"));
  CHECK_THAT(GraphErrorOf(with("/attrs/storage_id/1/0", -1)),
             Contains("entry 0 has no valid storage and device"));
  CHECK_THAT(GraphErrorOf(with("/attrs/dltype/1/2", "float33x")), Contains("entry 2 has dtype \"float33x\""));
  CHECK_THAT(GraphErrorOf(with("/attrs/shape/1/2", {-4})), Contains("entry 2 has no valid size"));
  CHECK_THAT(GraphErrorOf(with("/attrs/shape/1/2", 4)), Contains("entry 2 has no shape of rank up to 32"));
  CHECK_THAT(GraphErrorOf(with("/attrs/shape/1/2", std::vector<int>(33, 1))),
             Contains("entry 2 has no shape of rank up to 32"));
  CHECK_THAT(GraphErrorOf(with("/attrs/shape/1/2", {1LL << 40, 1LL << 40})),
             Contains("entry 2 has no valid size"));
  CHECK(GraphErrorOf(with("/attrs/shape/1/3", {2, 3})) ==
        "graph: nop '__nop' makes 16 bytes of f32 into 24 of f32");
  CHECK(GraphErrorOf(with("/nodes/3/inputs", Json::array())) ==
        "graph: node '__nop' is a nop of 0 inputs and 1 outputs");
  CHECK(GraphErrorOf(with("/nodes/3", Call("__copy", {{2, 0, 0}, {1, 0, 0}}))) ==
        "graph: copy '__copy' has 2 inputs and 1 outputs");
  CHECK_THAT(GraphErrorOf(with("/attrs/device_index/1/0", 0)), Contains("a device has type 0 and id 0"));
  CHECK_THAT(GraphErrorOf(with("/nodes/2/op", "other")),
             Contains("node 2 ('scale') is of kind 'other'; 'null' and 'tvm_op' are known"));
  CHECK_THAT(GraphErrorOf(with("/nodes/2/attrs/flatten_data", "1")),
             Contains("node 2 ('scale') passes its tensors flattened"));
  CHECK_THAT(GraphErrorOf(with("/nodes/2/attrs/func_name", 7)), Contains("names no function"));
  CHECK_THAT(GraphErrorOf(with("/attrs/shape", nullptr)),
             Contains("attrs lack one of shape, dltype and storage_id"));
  CHECK_THAT(GraphErrorOf(Json(7)), Contains("no nodes"));
  CHECK_THAT(ImportGraph("{", {}, nullptr).error().message(), Contains("graph: not JSON"));
  CHECK_THAT(ImportGraph(std::string(1 << 20, '['), {}, nullptr).error().message(), Contains("not JSON"));
}

}  // namespace
}  // namespace rewire::tvm
