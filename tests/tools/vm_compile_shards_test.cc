// SPDX-License-Identifier: Apache-2.0
// vm-compile and the C API on programs of several ranks.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/compiler/c_api.h"
#include "rewire/tests/compiler/shard/layers.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

TEST_CASE("vm-compile writes a file for each rank, and a line for each layer") {
  const TempFolder folder;
  folder.Write("model.onnx", Encoder(1).SerializeAsString());
  const Finished done = RunProgram(
      "vm-compile", {"model.onnx", "--shards", "2", "--shard-for", "memory", "-o", "out.rwx"}, folder.path());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Catch::StartsWith("wrote out.0.rwx: ") && Catch::Contains("\nwrote out.1.rwx: ") &&
                           Catch::Contains("'up_0.product': split by columns, 32.0 KiB of 64.0 KiB\n") &&
                           Catch::Contains("'down_0.product': split by rows, ") &&
                           Catch::Contains("2 all-reduces and 0 all-gathers"));
  const Finished inspected = RunProgram("vm-inspect", {"out.1.rwx"}, folder.path());
  CHECK_THAT(inspected.out, Catch::Contains("1 of 2 shards"));
  const Finished json =
      RunProgram("vm-compile", {"model.onnx", "--stages", "2", "--json", "-o", "out.rwx"}, folder.path());
  REQUIRE(json.exit_code == 0);
  const auto ranks = nlohmann::json::parse(json.out)["ranks"];
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[1]["output"] == "out.1.rwx");
  CHECK(ranks[1]["stages"] == 2);
  CHECK(ranks[1]["sharding"]["stage_seconds"] < ranks[1]["sharding"]["pipeline_seconds"]);
  // One rank alone.
  const Finished one = RunProgram(
      "vm-compile", {"model.onnx", "--shards", "2", "--rank", "1", "-o", "one.rwx"}, folder.path());
  CHECK_THAT(one.out, Catch::StartsWith("wrote one.1.rwx: ") &&
                          Catch::Contains("nothing is split: each of 2 ranks has all\n") &&
                          Catch::Contains(": whole, 64.0 KiB: it saves "));
  const Finished wrong =
      RunProgram("vm-compile", {"model.onnx", "--shards", "2", "--rank", "2"}, folder.path());
  CHECK(wrong.err == "vm-compile: error: model.onnx: rank is 2, expected 0 to 1\n");
}

TEST_CASE("in C, a rank is compiled and its layers are told to a callback") {
  const std::string model = Encoder(1).SerializeAsString();
  std::string told;
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.shards = 2;
  options.rank = 1;
  options.shard_goal = kRewireShardForMemory;
  options.context = &told;
  options.sharded = [](void* context, const RewireShardedLayer* layer) {
    if (layer->rank_bytes * 2 == layer->weight_bytes)
      *static_cast<std::string*>(context) += layer->split + std::string(" ");
  };
  RewireExecutable* executable = nullptr;
  const auto compile = [&] {
    return rewire_compile_memory(model.data(), model.size(), nullptr, nullptr, &options, nullptr,
                                 &executable);
  };
  REQUIRE(compile() == kRewireOk);
  rewire_executable_destroy(executable);
  CHECK(told == "columns columns columns rows columns rows ");
  options.shard_goal = 7;
  CHECK(compile() == kRewireInvalidArgument);
  CHECK(std::string(rewire_last_error_message()) == "shard_goal is 7, which stands for nothing");
}

}  // namespace
}  // namespace rewire::test
