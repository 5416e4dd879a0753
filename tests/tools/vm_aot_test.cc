// SPDX-License-Identifier: Apache-2.0
// vm-aot: what it writes and says.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using test::Finished;
using test::RunProgram;

constexpr char kProgram[] = R"(
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

TEST_CASE("vm-aot writes a source and its header, and says what they need") {
  if (!std::filesystem::exists(std::filesystem::path(test::BuildDir()) / "bin/vm-aot")) {
    WARN("skipped: vm-aot is a part of the compiler, which was not built");
    return;
  }
  const test::TempFolder folder;
  folder.Write("model.asm", kProgram);
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

  const Finished other = RunProgram("vm-aot", {"model.rwx", "-o", "m"}, folder.path());
  CHECK(other.exit_code == 11);
  CHECK_THAT(other.err, Catch::Contains("ends in .c"));
  const Finished prefix = RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--prefix", "a-b"}, folder.path());
  CHECK(prefix.exit_code == 11);
  CHECK_THAT(prefix.err, Catch::Contains("a-b cannot begin names of C"));
  const Finished absent = RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--function", "f"}, folder.path());
  CHECK(absent.exit_code == 11);
  CHECK_THAT(absent.err, Catch::Contains("no function of the executable is called f"));
  const Finished open = RunProgram("vm-aot", {"model.rwx", "-o", "m.c", "--function", "open"}, folder.path());
  CHECK(open.exit_code == 15);
  CHECK_THAT(open.err, Catch::Contains("open: input image is f32[N], which has no fixed size"));
}

}  // namespace
}  // namespace rewire::tools
