// SPDX-License-Identifier: Apache-2.0
// The tools with a model whose operator is of a foreign domain: examples/own_operator.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

const std::string kExample = std::string(SourceDir()) + "/examples/own_operator/";
const std::string kLibrary = std::string(BuildDir()) + "/lib/acme.so";
constexpr const char kInput[] = "x=3x2xf32=1,2,3,4,5,6";
constexpr const char kOutput[] = "y: f32[2, 2]\n[[10, 20],\n [50, 60]]\n";

TEST_CASE("own operators: vm-run compiles a model with the schemas beside a library") {
  const TempFolder folder;
  const Finished run =
      RunProgram("vm-run", {kExample + "acme.onnx", "--kernels", kLibrary, "--input", kInput}, folder.path());
  CHECK(run.err == "");
  CHECK(run.out == kOutput);
}

TEST_CASE("own operators: vm-compile takes schemas from a file and from beside a library") {
  const TempFolder folder;
  const std::pair<std::string, std::string> sources[] = {{"--operators", kExample + "acme.json"},
                                                         {"--kernels", kLibrary}};
  for (const auto& [option, file] : sources) {
    CAPTURE(option);
    const Finished compiled =
        RunProgram("vm-compile", {kExample + "acme.onnx", option, file, "-o", "every.rwx"}, folder.path());
    REQUIRE(compiled.exit_code == 0);
    const Finished run =
        RunProgram("vm-run", {"every.rwx", "--kernels", kLibrary, "--input", kInput}, folder.path());
    CHECK(run.out == kOutput);
  }
  // A file goes before what lies beside a library.
  const std::string other =
      folder.Write("other.json", R"({"operators": [{"domain": "com.acme", "name": "Every",
    "inputs": [], "outputs": [{"name": "y"}]}]})");
  const Finished wrong = RunProgram(
      "vm-compile", {kExample + "acme.onnx", "--operators", other, "--kernels", kLibrary}, folder.path());
  CHECK(
      wrong.err ==
      "vm-compile: error: operator 'Every' of domain 'com.acme': output 'y': dtype and shape are needed, as "
      "there is no input to take them from\n");
}

TEST_CASE("own operators: the tools say where a schema is expected") {
  const TempFolder folder;
  const Finished none = RunProgram("vm-compile", {kExample + "acme.onnx"}, folder.path());
  CHECK(none.exit_code != 0);
  CHECK(none.err.find("no operators of domain 'com.acme' are known; give its schema (vm-compile --operators "
                      "FILE.json, or LIBRARY.json beside the LIBRARY.so of --kernels) and a kernel: "
                      "docs/own-operators.md\n") != std::string::npos);
  const std::string alone = folder.Write("alone.so", "");
  const Finished beside =
      RunProgram("vm-compile", {kExample + "acme.onnx", "--kernels", alone}, folder.path());
  CHECK(beside.exit_code != 0);
  CHECK(beside.err.find(
            "/alone.json beside it, which is not there; write it, or give --operators FILE.json\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test
