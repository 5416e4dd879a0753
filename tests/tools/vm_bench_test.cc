// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using Catch::Contains;
using test::Finished;

constexpr char kBenchProgram[] = R"(
.kernel add = "rewire.add"
.func main(x: f32[N], y: f32[N]) -> z: f32[N]
  %n = shape_of %x
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %z = alloc_tensor %s, _, f32[2]
  invoke_packed add(%x, %y, %z), outputs=1
  ret %z
.end
)";

Finished Bench(const test::TempFolder& folder, std::vector<std::string> arguments) {
  folder.Write("model.asm", kBenchProgram);
  arguments.insert(arguments.begin(), "model.asm");
  return test::RunProgram("vm-bench", arguments, folder.path());
}

TEST_CASE("vm-bench says of each rate how many requests were answered, and how fast") {
  const test::TempFolder folder;
  const Finished finished = Bench(folder, {"--dim", "N=2", "--rate", "2000", "--rate", "4000", "--duration",
                                           "50ms", "--clients", "2", "--json", "--samples", "all.txt"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const auto json = nlohmann::json::parse(finished.out);
  CHECK(json["function"] == "main");
  CHECK(json["clients"] == 2);
  REQUIRE(json["loads"].size() == 2);
  std::uint64_t all = 0;
  for (const auto& load : json["loads"]) {
    CHECK(load["loop"] == "open");
    CHECK(load["failed"] == 0);
    CHECK(load["latency_ns"]["count"] ==
          load["succeeded"].get<std::uint64_t>() + load["unserved"].get<std::uint64_t>());
    const auto& latency = load["latency_ns"];
    std::vector<std::uint64_t> sorted;
    for (const char* key : {"min", "p50", "p90", "p99", "p99_9", "p99_99", "max"})
      sorted.push_back(latency[key]);
    CHECK(std::is_sorted(sorted.begin(), sorted.end()));
    all += latency["count"].get<std::uint64_t>();
  }
  CHECK(json["loads"][0]["rate"] == 2000);
  CHECK(json["loads"][1]["rate"] == 4000);
  std::istringstream samples(test::ReadWholeFile(folder.path() / "all.txt"));
  std::uint64_t lines = 0;
  for (std::uint64_t sample = 0; samples >> sample;) ++lines;
  CHECK(lines == all);
}

TEST_CASE("vm-bench without a rate lets each client wait for its answer") {
  const test::TempFolder folder;
  const Finished finished = Bench(folder, {"--dim", "N=2", "--duration", "20ms"});
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out,
             Contains("model.asm, main: 1 client\n") && Contains("answers/s") && Contains("closed"));
}

TEST_CASE("vm-bench with requests that fail exits with 1, and says how they fail") {
  const test::TempFolder folder;
  const Finished finished =
      Bench(folder, {"--dim", "N=3", "--duration", "10ms", "--warmup", "0", "--rate", "1000"});
  CHECK(finished.exit_code == 1);
  CHECK_THAT(finished.out, Contains(" failed: main@"));
  // A call before those that are measured is the first to fail.
  CHECK(Bench(folder, {"--dim", "N=3", "--duration", "10ms"}).exit_code > 10);
}

TEST_CASE("vm-bench refuses loads that cannot be") {
  const test::TempFolder folder;
  const auto refused = [&](std::vector<std::string> arguments, const std::string& text) {
    arguments.insert(arguments.end(), {"--dim", "N=2"});
    const Finished finished = Bench(folder, arguments);
    CHECK(finished.exit_code == 11);
    CHECK_THAT(finished.err, Contains(text));
  };
  refused({"--rate", "0"}, "--rate");
  refused({"--rate", "-1"}, "--rate");
  refused({"--clients", "0"}, "--clients");
  refused({"--duration", "5"}, "--duration: '5' is no time");
  refused({"--deadline", "soon"}, "--deadline: 'soon' is no time");
}

}  // namespace
}  // namespace rewire::tools
