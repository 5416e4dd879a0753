// SPDX-License-Identifier: Apache-2.0
//
// vm-strip: takes the names out of an executable.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/names/strip.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/file_kind.h"
#include "rewire/tools/mains.h"

namespace rewire::tools {
namespace {

constexpr const char kStripDescription[] =
    R"(Takes the names out of an executable that goes to others: of functions, inputs, outputs, nodes and weights.

  $ vm-strip model.rwx -o small.rwx --map names.json
  $ vm-run small.rwx --input 0=@image.npy              an input's name is its number now
  $ vm-run small.rwx --map names.json --profile        with the map, everything has its name again

Keep the map: nothing else can bring the names back. The program is the same, word for word, and gives the same
results. Names that linking needs stay: those of kernels and parameters.
)";

struct StripCommand {
  std::string input;
  std::string output;
  std::string map;
  std::vector<std::string> keep;
  bool json = false;
};

Result<int> Strip(const StripCommand& options) {
  const Result<SharedBytes> bytes = MapFile(options.input);
  if (!bytes) return Forward(bytes);
  if (Status kind = RefuseNoExecutable(options.input, bytes->view); !kind) return Forward(kind);
  const Result<Module> module = ReadModule(*bytes);
  if (!module) return Forward(module, options.input);
  if (Status verified = VerifyModule(*module); !verified) return Forward(verified, options.input);
  StripOptions keep;
  for (const std::string& name : options.keep) keep.keep_functions.push_back(name);
  const Result<StrippedModule> stripped = StripModule(*module, keep);
  if (!stripped) return Forward(stripped, options.input);
  const Result<std::vector<std::byte>> file = SerializeModule(stripped->module);
  if (!file) return Forward(file);
  // The map first: without it, a stripped file that has taken the place of another could not be read again.
  if (!options.map.empty()) {
    const Span<const char> text(stripped->map);
    if (Status written =
            WriteFileAtomically(options.map, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
        !written) {
      return Forward(written);
    }
  }
  if (Status written = WriteFileAtomically(options.output, {file->data(), file->size()}); !written) {
    return Forward(written);
  }
  const std::size_t before = bytes->view.size();
  if (options.json) {
    nlohmann::ordered_json json = {{"file", options.input},
                                   {"written", options.output},
                                   {"bytes_before", before},
                                   {"bytes", file->size()}};
    if (!options.map.empty()) json["map"] = options.map;
    PrintJson(json);
    return 0;
  }
  Tell(fmt::format("wrote {}: {} bytes, {} less than before\n", options.output, file->size(),
                   before < file->size() ? 0 : before - file->size()));
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmStripMain(int argc, char** argv) {
  CLI::App app(kStripDescription, "vm-strip");
  StripCommand options;
  app.add_option("FILE", options.input, "the executable (.rwx)")->required()->type_name("");
  app.add_option("-o,--output", options.output, "write the stripped executable here")
      ->required()
      ->type_name("FILE");
  app.add_option("--map", options.map, "write the names here, as JSON")->type_name("FILE");
  app.add_option("--keep", options.keep, "keep the names of this function, and of its inputs and outputs")
      ->allow_extra_args(false)
      ->type_name("FUNCTION");
  app.add_flag("--json", options.json, "print one JSON object instead of text");
  return Main(app, argc, argv, [&] { return Strip(options); });
}
