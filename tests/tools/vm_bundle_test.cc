// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::json;
using test::Finished;
using test::TempFolder;

// A model that returns a constant of 4000 bytes and another of its own.
std::string BundledModel(int number) {
  return ".const shared: f32[1000] = fill 3\n.const own: f32[2] = fill " + std::to_string(number) +
         "\n.func main() -> (own: f32[2], shared: f32[1000])\n%o = load_const own\n%s = load_const shared\n"
         "%r = alloc_adt tag=0 (%o, %s)\nret %r\n.end\n";
}

Finished Run(const TempFolder& folder, const std::string& tool, const std::vector<std::string>& arguments) {
  return test::RunProgram(tool, arguments, folder.path());
}

TEST_CASE("vm-bundle puts models into one file, which the other tools read") {
  const TempFolder folder;
  folder.Write("encoder.asm", BundledModel(1));
  folder.Write("decoder.asm", BundledModel(2));
  REQUIRE(Run(folder, "vm-as", {"encoder.asm"}).exit_code == 0);
  const Finished made = Run(folder, "vm-bundle", {"encoder.rwx", "second=decoder.asm", "-o", "both.rwx"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK(made.out == "wrote both.rwx: 2 models\n");

  for (const auto& [model, value] : {std::pair{"encoder", 1.0}, std::pair{"second", 2.0}}) {
    const Finished run = Run(folder, "vm-run", {"both.rwx", "--model", model, "--json"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(Json::parse(run.out)["outputs"][0]["data"][1] == value);
    CHECK(Json::parse(run.out)["outputs"][1]["data"][999] == 3.0);
  }
  const Finished inspected = Run(folder, "vm-inspect", {"both.rwx", "--check", "--json"});
  REQUIRE(inspected.exit_code == 0);
  const Json json = Json::parse(inspected.out);
  CHECK(json["kind"] == "bundle");
  CHECK(json["constant_bytes"] == 8016);
  CHECK(json["stored_bytes"] == 4016);
  CHECK(json["models"][1]["name"] == "second");
  const Finished text = Run(folder, "vm-inspect", {"both.rwx"});
  CHECK(text.out.find("bundle of 2 models") != std::string::npos);

  const struct {
    std::string tool;
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  } rows[] = {
      {"vm-run",
       {"both.rwx"},
       12,
       "both.rwx: the bundle has several models, name one; the models: encoder, second"},
      {"vm-run",
       {"both.rwx", "--model", "encodr"},
       12,
       "both.rwx: the bundle has no model 'encodr'; did you mean 'encoder'? The models: encoder, second"},
      {"vm-run",
       {"encoder.rwx", "--model", "x"},
       11,
       "encoder.rwx: --model chooses one model of a bundle, and this is none; leave it out"},
      {"vm-bundle",
       {"encoder.rwx", "encoder.asm", "-o", "x.rwx"},
       11,
       "two models are called 'encoder'; give each a name of its own"},
      {"vm-bundle", {"gone.rwx", "-o", "x.rwx"}, 12, "cannot open 'gone.rwx': No such file or directory"},
      {"vm-bundle",
       {"both.rwx", "-o", "x.rwx"},
       12,
       "both.rwx: the bundle has several models, name one; the models: encoder, second"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.message);
    const Finished finished = Run(folder, row.tool, row.arguments);
    CHECK(finished.exit_code == row.exit_code);
    CHECK(finished.err == row.tool + ": error: " + row.message + "\n");
  }
}

}  // namespace
}  // namespace rewire::tools
