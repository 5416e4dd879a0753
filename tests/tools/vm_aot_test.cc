// SPDX-License-Identifier: Apache-2.0
// vm-aot: what it writes and says.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using test::Finished;
using test::RunProgram;

constexpr char kAotProgram[] = R"(
.const w: f32[2] = {1, -2.5}
.kernel add = "rewire.add"
.func main(image: f32[2]) -> scores: f32[2]
  %w = load_const w
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %t = alloc_tensor %s, _, f32[2]
  invoke_packed add(%image, %w, %t), outputs=1
  %s2 = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %s2, _, f32[2]
  invoke_packed add(%t, %w, %y), outputs=1
  ret %y
.end
.func open(image: f32[N]) -> image: f32[N]
  ret %image
.end
)";

constexpr char kOpen[] = R"(
.param w: f32[2]
.computed twice: f32[2]
.kernel add = "rewire.add"
.func __init() -> (f32[2])
  %w = load_const w
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %t = alloc_tensor %s, _, f32[2]
  invoke_packed add(%w, %w, %t), outputs=1
  %all = alloc_adt tag=0 (%t)
  ret %all
.end
.func main() -> f32[2]
  %t = load_const twice
  ret %t
.end
)";

constexpr char kMachine[] = R"(
.computed packed: f32[2]
.kernel pack = "rewire.onednn.pack_matmul"
.func __init() -> (f32[2])
  fatal "never linked"
.end
.func main() -> value
  %t = load_const packed
  ret %t
.end
)";

TEST_CASE("vm-aot writes a source and its header, and says what they need") {
  if (!std::filesystem::exists(std::filesystem::path(test::BuildDir()) / "bin/vm-aot")) {
    WARN("skipped: vm-aot is a part of the compiler, which was not built");
    return;
  }
  const test::TempFolder folder;
  folder.Write("model.asm", kAotProgram);
  REQUIRE(RunProgram("vm-as", {"model.asm"}, folder.path()).exit_code == 0);
  const Finished made =
      RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--prefix", "small", "--json"}, folder.path());
  REQUIRE(made.err == "");
  const nlohmann::json json = nlohmann::json::parse(made.out);
  CHECK(json["header"] == "m.h");
  CHECK(json["arena_bytes"] == 16);  // the first sum; the second is made in the caller's memory
  CHECK(json["constant_bytes"] == 8);
  const std::string header = test::ReadWholeFile(folder.path() / "m.h");
  CHECK_THAT(header, Catch::Contains("int small_main(const float image[2], float scores[2]);"));
  CHECK_THAT(header, Catch::Contains("#define SMALL_ARENA_BYTES 16\n"));
  CHECK_THAT(test::ReadWholeFile(folder.path() / "m.c"), Catch::Contains("1.0f, -2.5f,"));

  // Files of a folder, or one by one.
  std::filesystem::create_directory(folder.path() / "graphs");
  folder.Write("graphs/m.ci",
               "node: { title: \"small_main\" label: \"small_main\\nm.c:1:1\\n24 bytes (static)\" }\n"
               "edge: { sourcename: \"small_main\" targetname: \"memcpy\" }\n");
  folder.Write("graphs/other.txt", "no graph");
  for (const char* graphs : {"graphs", "graphs/m.ci"}) {
    const Finished again = RunProgram("vm-aot",
                                      {"model.rwx", "-o", "m.c", "--prefix", "small", "--json",
                                       "--stack-usage", graphs, "--library-stack", "16"},
                                      folder.path());
    REQUIRE(again.err == "");
    CHECK(nlohmann::json::parse(again.out)["stack_bytes"] == 40);
    CHECK_THAT(test::ReadWholeFile(folder.path() / "m.h"),
               Catch::Contains("Of these, 16 stand for each of: memcpy. */\n#define SMALL_STACK_BYTES 40\n"));
  }

  // Linking binds and computes the constants that the file lacks.
  folder.Write("open.asm", kOpen);
  REQUIRE(RunProgram("vm-as", {"open.asm"}, folder.path()).exit_code == 0);
  REQUIRE(RunProgram("vm-as", {"model.asm"}, folder.path()).exit_code == 0);
  const Finished behind = RunProgram(
      "vm-aot", {"open.rwx", "-o", "o.c", "--params", "model.rwx", "--weights", "pointer", "--json"},
      folder.path());
  REQUIRE(behind.err == "");
  CHECK(nlohmann::json::parse(behind.out)["weights"] == "o.weights");
  const std::string bytes = test::ReadWholeFile(folder.path() / "o.weights");
  REQUIRE(bytes.size() == 16);
  float sums[2];
  std::memcpy(sums, bytes.data(), sizeof(sums));
  CHECK(sums[0] == 2);
  CHECK(sums[1] == -5);
  CHECK_THAT(test::ReadWholeFile(folder.path() / "o.h"),
             Catch::Contains("int model_main(const void *weights, float output0[2]);") &&
                 Catch::Contains("#define MODEL_WEIGHTS_BYTES 16\n"));
  const Finished unbound = RunProgram("vm-aot", {"open.rwx", "-o", "o.c"}, folder.path());
  CHECK(unbound.exit_code == 17);
  CHECK_THAT(unbound.err, Catch::Contains("w: no parameter of this name given"));
  folder.Write("packed.asm", kMachine);
  REQUIRE(RunProgram("vm-as", {"packed.asm"}, folder.path()).exit_code == 0);
  const Finished packed = RunProgram("vm-aot", {"packed.rwx", "-o", "p.c"}, folder.path());
  CHECK(packed.exit_code == 15);
  CHECK_THAT(
      packed.err,
      Catch::Contains(
          "kernel rewire.onednn.pack_matmul reads or makes weights in a form that serves the machine alone"));

  // The executable itself, sizes that vary included.
  const Finished linked = RunProgram(
      "vm-aot", {"model.rwx", "--bytecode", "-o", "l.c", "--prefix", "small", "--json"}, folder.path());
  REQUIRE(linked.err == "");
  const nlohmann::json tables = nlohmann::json::parse(linked.out);
  CHECK(tables["source"] == "l.c");
  CHECK(tables["header"] == "l.h");
  CHECK(tables["table_bytes"] > 100);
  CHECK(tables["constant_bytes"] == 64);  // two numbers, and what aligns the next constant
  CHECK_THAT(test::ReadWholeFile(folder.path() / "l.h"),
             Catch::Contains("extern const RewireLinkedExecutable small_executable;"));
  CHECK_THAT(test::ReadWholeFile(folder.path() / "l.c"),
             Catch::Contains("#include \"l.h\"\n") && Catch::Contains("0xc02000003f800000,"));
  const Finished told = RunProgram("vm-aot", {"open.rwx", "--bytecode", "-o", "l.c"}, folder.path());
  CHECK_THAT(told.out + told.err,
             Catch::Contains("wrote l.c and l.h: ") && Catch::Contains(" 0 bytes of constants"));

  const Finished other = RunProgram("vm-aot", {"model.rwx", "-o", "m"}, folder.path());
  CHECK(other.exit_code == 11);
  CHECK_THAT(other.err, Catch::Contains("ends in .c"));
  const Finished prefix = RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--prefix", "a-b"}, folder.path());
  CHECK(prefix.exit_code == 11);
  CHECK_THAT(prefix.err, Catch::Contains("a-b cannot begin names of C"));
  const Finished absent = RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--function", "f"}, folder.path());
  CHECK(absent.exit_code == 12);
  CHECK_THAT(absent.err, Catch::Contains("has no function named \"f\"; the functions: main"));
  const Finished open = RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--function", "open"}, folder.path());
  CHECK(open.exit_code == 15);
  const Finished sized =
      RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--function", "open", "--max-dim", "N=3", "--json"},
                 folder.path());
  CHECK(sized.err == "");
  CHECK_THAT(test::ReadWholeFile(folder.path() / "m.h"),
             Catch::Contains("int model_open(int64_t N, const float *image, float *image_2);") &&
                 Catch::Contains("N is from 1 to 3."));
  const Finished wrong =
      RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--max-dim", "N=three"}, folder.path());
  CHECK(wrong.exit_code == 11);
  CHECK_THAT(wrong.err,
             Catch::Contains("--max-dim: 'N=three' is no size of a dimension: expected NAME=SIZE"));
  CHECK_THAT(open.err, Catch::Contains("open: dimension N of the inputs has no largest size"));
}

}  // namespace
}  // namespace rewire::tools
