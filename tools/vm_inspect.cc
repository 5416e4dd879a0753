// SPDX-License-Identifier: Apache-2.0
// vm-inspect: what is in an executable or a kernel library. docs/vm-inspect.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>

#include "tools/cli.h"
#include "tools/inspect_executable.h"
#include "tools/inspect_library.h"

namespace rewire::tools {
namespace {

struct Options {
  std::string file;
  bool check = false;
  bool json = false;
};

bool IsElf(const std::string& path) {
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  return std::string_view(magic, sizeof(magic)) ==
         "\x7f"
         "ELF";
}

void Print(bool as_json, const nlohmann::ordered_json& json, const std::string& text) {
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;  // names may hold any bytes
  fmt::print("{}", as_json ? json.dump(2, ' ', false, replace) + "\n" : text);
}

Result<int> Inspect(const Options& options) {
  if (IsElf(options.file)) {
    const Result<LibraryReport> library = InspectLibrary(options.file);
    if (!library) return Forward(library);
    Print(options.json, LibraryJson(*library), LibraryText(*library));
    return 0;
  }
  const Result<Inspection> inspection = InspectExecutable(options.file, options.check);
  if (!inspection) return Forward(inspection);
  Print(options.json, InspectionJson(*inspection), InspectionText(*inspection));
  return inspection->whole() ? 0 : kExitNo;
}

}  // namespace
}  // namespace rewire::tools

int main(int argc, char** argv) {
  CLI::App app("Shows what is in a Rewire executable (.rwx) or a kernel library (.so, which is loaded).",
               "vm-inspect");
  rewire::tools::Options options;
  app.add_option("FILE", options.file, "executable or kernel library")->required();
  app.add_flag("--check", options.check, "check every section and constant; exit code 1 when one is damaged");
  app.add_flag("--json", options.json, "print one JSON object instead of text");
  return rewire::tools::Main(app, argc, argv, [&] { return rewire::tools::Inspect(options); });
}
