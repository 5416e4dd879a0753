// SPDX-License-Identifier: Apache-2.0
// vm-strip, and --map of the tools that give names back.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using test::Finished;
using test::RunProgram;

// A function with a name, that a node of the model fails in when its operands have other sizes.
constexpr char kStrippedProgram[] = R"(.metadata producer "a secret compiler"
.kernel add = "rewire.add"
.const secret_weight: f32[2] = {1, 2}
.func main(secret_image: f32[N]) -> secret_scores: f32[2]
  %w = load_const secret_weight
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %s, _, f32[2]
  invoke_packed add(%secret_image, %w, %y), outputs=1 @ "secret_node"
  ret %y
.end
)";

class StripSession {
 public:
  StripSession() {
    folder_.Write("model.asm", kStrippedProgram);
    REQUIRE(Run("vm-as", {"model.asm"}).exit_code == 0);
  }
  Finished Run(const std::string& tool, const std::vector<std::string>& arguments) const {
    return RunProgram(tool, arguments, folder_.path());
  }
  std::string Content(const std::string& name) const { return test::ReadWholeFile(folder_.path() / name); }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

TEST_CASE("a stripped executable has no names and gives the same; with its map it has them again") {
  const StripSession session;
  const Finished stripped = session.Run("vm-strip", {"model.rwx", "-o", "small.rwx", "--map", "names.json"});
  CHECK(stripped.err.empty());
  CHECK_THAT(stripped.out, Catch::StartsWith("wrote small.rwx: "));
  CHECK(session.Content("model.rwx").find("secret") != std::string::npos);
  CHECK(session.Content("small.rwx").find("secret") == std::string::npos);
  CHECK(session.Content("names.json").find("secret_node") != std::string::npos);

  CHECK(session.Run("vm-run", {"small.rwx", "--input", "0=2xf32=3,4", "--expect", "0=2xf32=4,6"}).exit_code ==
        0);
  CHECK(session
            .Run("vm-run", {"small.rwx", "--map", "names.json", "--input", "secret_image=2xf32=3,4",
                            "--expect", "secret_scores=2xf32=4,6"})
            .exit_code == 0);
  // Lists, errors, profiles and traces.
  CHECK(session.Run("vm-run", {"small.rwx", "--list"}).out.find("secret") == std::string::npos);
  CHECK_THAT(session.Run("vm-run", {"small.rwx", "--map", "names.json", "--list"}).out,
             Catch::Contains("secret_image") && Catch::Contains("secret_scores"));
  CHECK_THAT(session.Run("vm-inspect", {"small.rwx", "--map", "names.json"}).out,
             Catch::Contains("secret_image"));
  CHECK_THAT(session.Run("vm-inspect", {"small.rwx", "--map", "names.json", "--memory"}).out,
             Catch::Contains("main"));
  const Finished failed = session.Run("vm-run", {"small.rwx", "--input", "0=3xf32=0"});
  CHECK_THAT(failed.err, Catch::Contains("vm-run: error: 0@") && !Catch::Contains("secret"));
  const Finished named =
      session.Run("vm-run", {"small.rwx", "--map", "names.json", "--input", "secret_image=3xf32=0"});
  CHECK_THAT(named.err, Catch::Contains("vm-run: error: main@") && Catch::Contains("[secret_node]"));
  CHECK_THAT(session
                 .Run("vm-debug", {"small.rwx", "--map", "names.json", "--random", "--dim", "N=2", "-x",
                                   "/dev/null", "--json"})
                 .err,
             Catch::Matchers::Equals(""));
}

TEST_CASE("functions that hosts call may keep their names") {
  const StripSession session;
  CHECK(session.Run("vm-strip", {"model.rwx", "-o", "small.rwx", "--keep", "main", "--json"}).exit_code == 0);
  CHECK_THAT(session.Run("vm-run", {"small.rwx", "--list"}).out,
             Catch::Contains("secret_image") && !Catch::Contains("secret_weight"));
  const Finished none = session.Run("vm-strip", {"model.rwx", "-o", "other.rwx", "--keep", "mian"});
  CHECK(none.exit_code == 12);
  CHECK_THAT(none.err, Catch::Contains("mian"));
  CHECK_FALSE(std::filesystem::exists(session.folder().path() / "other.rwx"));
}

TEST_CASE("vm-strip says as JSON what it wrote") {
  const StripSession session;
  const Finished done =
      session.Run("vm-strip", {"model.rwx", "-o", "small.rwx", "--map", "names.json", "--json"});
  const auto json = nlohmann::json::parse(done.out);
  CHECK(json["written"] == "small.rwx");
  CHECK(json["map"] == "names.json");
  CHECK(json["bytes"] == std::filesystem::file_size(session.folder().path() / "small.rwx"));
  CHECK(json["bytes_before"] > json["bytes"]);
}

TEST_CASE("a map that is none, or another one's, is refused by its name") {
  const StripSession session;
  REQUIRE(session.Run("vm-strip", {"model.rwx", "-o", "small.rwx", "--map", "names.json"}).exit_code == 0);
  session.folder().Write("none.json", "{}");
  session.folder().Write("two.asm",
                         ".func main(x: f32[2]) -> f32[2]\n  ret %x\n.end\n"
                         ".func other(x: f32[2]) -> f32[2]\n  ret %x\n.end\n");
  REQUIRE(session.Run("vm-as", {"two.asm"}).exit_code == 0);
  REQUIRE(session.Run("vm-strip", {"two.rwx", "-o", "two_small.rwx", "--map", "two.json"}).exit_code == 0);
  for (const std::string tool : {"vm-run", "vm-inspect", "vm-debug"}) {
    INFO(tool);
    for (const std::string map : {"none.json", "two.json", "gone.json"}) {
      const Finished refused = session.Run(tool, {"small.rwx", "--map", map});
      CHECK(refused.exit_code == (map == "gone.json" ? 12 : 11));
      CHECK_THAT(refused.err, Catch::StartsWith(tool + ": error: ") && Catch::Contains(map));
    }
  }
}

}  // namespace
}  // namespace rewire::tools
