// SPDX-License-Identifier: Apache-2.0
// vm-run --record and --replay: calls that are kept, run again, and compared.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using Catch::Contains;
using nlohmann::json;
using test::Finished;

constexpr const char kRecordedModel[] = R"(
.kernel sum = "rewire.add"
.func main(x: f32[N, 3], y: f32[N, 3]) -> (sum: f32[2, 3], count: integer)
  %storage = alloc_storage _, alignment=64, f32[2, 3], cpu
  %sum = alloc_tensor %storage, _, f32[2, 3]
  invoke_packed sum(%x, %y, %sum), outputs=1
  %count = load_consti 42
  %result = alloc_adt tag=0 (%sum, %count)
  ret %result
.end
.func any(v: value) -> v: value
  ret %v
.end
.func endless() -> x: integer
again: goto again
  %x = load_consti 1
  ret %x
.end
)";

class RecordSession {
 public:
  RecordSession() { folder_.Write("model.asm", kRecordedModel); }
  Finished Run(const std::vector<std::string>& arguments) const {
    return test::RunProgram("vm-run", arguments, folder_.path());
  }
  // The text that is printed by a run that must end with this code, and without an error.
  std::string Out(const std::vector<std::string>& arguments, int exit_code = 0) const {
    const Finished done = Run(arguments);
    INFO(done.err);
    CHECK(done.err.empty());
    CHECK(done.exit_code == exit_code);
    return done.out;
  }
  void Refused(const std::vector<std::string>& arguments, int exit_code, const std::string& text) const {
    const Finished done = Run(arguments);
    CHECK(done.exit_code == exit_code);
    CHECK_THAT(done.err, Contains(text));
  }
  json Call(const std::string& folder) const {
    return json::parse(test::ReadWholeFile(folder_.path() / folder / "call.json"));
  }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

const std::vector<std::string> kRandom = {"model.asm", "--random", "--dim", "N=2", "--seed", "7"};

std::vector<std::string> With(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("a recorded call runs again and gives the same") {
  const RecordSession session;
  CHECK_THAT(session.Out(With(kRandom, {"--record", "call", "--threads", "2"})),
             Contains("recorded the call in call\n"));
  const json call = session.Call("call");
  CHECK(call["rewire_call"] == 1);
  CHECK(call["model"]["file"] ==
        (std::filesystem::canonical(session.folder().path()) / "model.asm").string());
  CHECK(call["model"]["hash"].get<std::string>().size() == std::string("xxh3-64:").size() + 16);
  CHECK(call["function"] == "main");
  CHECK(call["threads"] == 2);
  CHECK(call["given"]["dims"] == json({"N=2"}));
  CHECK(call["given"]["seed"] == 7);
  CHECK(call["inputs"] == json({"0=@input-0.npy", "1=@input-1.npy"}));
  CHECK(call["outputs"] == json({"0=@output-0.npy", "1=42"}));
  CHECK(session.Out({"--replay", "call"}) == "sum: equals output-0.npy\ncount: equals the value expected\n");
  const json report = json::parse(session.Out({"--replay", "call", "--json"}));
  CHECK(report["replay"] == json({{"folder", "call"}, {"changed", json::array()}}));
  CHECK(report["comparisons"].size() == 2);
}

TEST_CASE("another build is compared bit for bit, or within a tolerance") {
  const RecordSession session;
  session.folder().Write("zero.asm",
                         ".const c: f32[2] = {0, 1}\n.func main() -> y: f32[2]\n"
                         "  %y = load_const c\n  ret %y\n.end\n");
  session.folder().Write("near.asm",
                         ".const c: f32[2] = {-0.0, 1}\n.func main() -> y: f32[2]\n"
                         "  %y = load_const c\n  ret %y\n.end\n");
  session.Out({"zero.asm", "--record", "call"});
  CHECK(
      session.Out({"near.asm", "--replay", "call"}, 1) ==
      "y: differs from output-0.npy in 1 of 2 elements; worst at [0]: expected 0, given -0, difference 0\n");
  CHECK(session.Out({"near.asm", "--replay", "call", "--atol", "0"}) == "y: equals output-0.npy\n");
  // Bits also tell one NaN from another; a tolerance does not.
  const json report = json::parse(session.Out({"near.asm", "--replay", "call", "--json"}, 1));
  CHECK(report["comparisons"][0]["different"] == 1);
  CHECK(report["replay"] == json({{"folder", "call"}, {"changed", json::array()}}));
}

TEST_CASE("a model that has changed is told of") {
  const RecordSession session;
  session.Out(With(kRandom, {"--record", "call"}));
  session.folder().Write("model.asm", std::string(kRecordedModel) + "; changed\n");
  CHECK_THAT(session.Out({"--replay", "call"}),
             Contains("model.asm has changed since the call was recorded\n"));
  const json report = json::parse(session.Out({"--replay", "call", "--json"}));
  CHECK(report["replay"]["changed"] == json::array({session.Call("call")["model"]["file"]}));
}

TEST_CASE("parameters are recorded with their hash") {
  const RecordSession session;
  session.folder().Write("param.asm",
                         ".param scale: f32[2]\n.func main() -> y: f32[2]\n"
                         "  %y = load_const scale\n  ret %y\n.end\n");
  const auto write = [&](const char* elements) {
    session.folder().Write("w.asm",
                           std::string(".const scale: f32[2] = ") + elements +
                               "\n.func main() -> y: f32[2]\n  %y = load_const scale\n  ret %y\n.end\n");
    const Finished made = test::RunProgram("vm-as", {"w.asm", "-o", "w.rwx"}, session.folder().path());
    REQUIRE(made.exit_code == 0);
  };
  write("{4, 5}");
  session.Out({"param.asm", "--params", "w.rwx", "--record", "call"});
  CHECK(session.Out({"--replay", "call"}) == "y: equals output-0.npy\n");
  write("{4, 6}");
  const std::string out = session.Out({"--replay", "call"}, 1);
  CHECK_THAT(out, Contains("y: differs from output-0.npy") &&
                      Contains("w.rwx has changed since the call was recorded\n"));
}

TEST_CASE("trees, integers and dtypes that numpy lacks are kept") {
  const RecordSession session;
  // Such a name would end a file's name inside a tree.
  session.Out({"model.asm", "-f", "any", "-i", "v=3((5,2xbf16=1,2),(),f32=1)", "--record", "a,b(c)"});
  const json call = session.Call("a,b(c)");
  CHECK(call["inputs"] == json({"0=3(0(5,@input-0.0.1.safetensors:value),0(),@input-0.2.npy)"}));
  const std::string out = session.Out({"--replay", "a,b(c)"});
  CHECK(out ==
        "v.0.0: equals the value expected\nv.0.1: equals output-0.0.1.safetensors:value\n"
        "v.2: equals output-0.2.npy\n");
}

TEST_CASE("a call that failed must fail in the same way") {
  const RecordSession session;
  const Finished failed =
      session.Run({"model.asm", "-f", "endless", "--max-steps", "1000", "--record", "call"});
  CHECK(failed.exit_code == 21);
  CHECK_THAT(failed.out, Contains("recorded the call in call\n"));
  CHECK(session.Call("call")["limits"]["steps"] == 1000);
  CHECK_THAT(session.Out({"--replay", "call"}), Contains("fails as the recorded call did: "));
  CHECK_THAT(session.Out({"--replay", "call", "--max-steps", "1001"}, 1),
             Contains("fails in another way: ") && Contains("\nthe recorded call: "));
  session.folder().Write("ends.asm", ".func endless() -> x: integer\n  %x = load_consti 1\n  ret %x\n.end\n");
  CHECK_THAT(session.Out({"ends.asm", "--replay", "call"}, 1),
             Contains("does not fail; the recorded call did: "));
  const json report = json::parse(session.Out({"--replay", "call", "--json"}));
  CHECK(report["replay"]["error"]["equal"] == true);
}

TEST_CASE("what cannot be recorded or replayed is an error") {
  const RecordSession session;
  session.Out(With(kRandom, {"--record", "call"}));
  session.Refused(With(kRandom, {"--record", "call"}), 11,
                  "--record: there are files in 'call' already; name a new folder");
  session.Refused({"--replay", "nowhere"}, 12, "--replay: cannot open 'nowhere/call.json'");
  session.Refused({"--replay", "call", "--random"}, 11, "--random");
  std::filesystem::create_directory(session.folder().path() / "other");
  session.folder().Write("other/call.json", "{}");
  session.Refused({"--replay", "other"}, 14, "other/call.json is no call that vm-run --record wrote");
  session.folder().Write("other/call.json", R"({"rewire_call": "one"})");
  session.Refused({"--replay", "other"}, 14, "other/call.json is no call that vm-run --record wrote");
  json damaged = session.Call("call");
  damaged.erase("inputs");
  session.folder().Write("other/call.json", damaged.dump());
  session.Refused({"--replay", "other"}, 14, "--replay: other/call.json is damaged: ");
  session.folder().Write("closure.asm",
                         ".func main() -> f: closure\n  %f = alloc_closure inner()\n  ret %f\n.end\n"
                         ".func inner() -> x: integer\n  %x = load_consti 1\n  ret %x\n.end\n");
  session.Refused({"closure.asm", "--record", "closure"}, 15,
                  "--record cannot keep output-0: it is no tensor, integer or tree but closure");
  CHECK_FALSE(std::filesystem::exists(session.folder().path() / "closure" / "call.json"));
}

}  // namespace
}  // namespace rewire::tools
