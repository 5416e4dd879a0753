// SPDX-License-Identifier: Apache-2.0
//
// vm-dis: converts an executable to text assembly.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/executable_format/text/disassembler.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/file_kind.h"
#include "rewire/tools/mains.h"

namespace rewire::tools {
namespace {

constexpr const char kDisassembleDescription[] =
    R"(Writes an executable as text assembly. vm-as turns the text into the same bytes again.

  $ vm-dis model.rwx --brief           for reading: leaves out the data of large constants
  $ vm-dis model.rwx -o model.asm      for editing: large constants go to model.data.safetensors
  $ vm-as model.asm -o changed.rwx

If the verifier refuses the file, its text is still written. The first line then gives the reason.
)";

struct DisassembleCommand {
  std::string input;
  std::string output;
  bool brief = false;
  bool json = false;
};

Result<int> DisassembleExecutable(const DisassembleCommand& options) {
  Result<SharedBytes> bytes = MapFile(options.input);
  if (!bytes) return Forward(bytes);
  const Status kind = RefuseNoExecutable(options.input, bytes->view);
  if (!kind) return Forward(kind);
  const Result<Module> module = ReadModule(*bytes);
  if (!module) return Forward(module, options.input);

  const std::filesystem::path output(options.output);
  const std::filesystem::path data_path =
      std::filesystem::path(output).replace_extension(".data.safetensors");
  DisassembleOptions how;
  how.leave_data_out = options.brief;
  if (!options.output.empty()) how.data_file = data_path.filename().string();
  Disassembly disassembly = Disassemble(*module, how);
  nlohmann::ordered_json json = {{"file", options.input}};
  if (const Status verified = VerifyModule(*module); !verified) {
    json["refused"] = ErrorJson(verified.error());
    std::string reason = verified.error().message();
    for (char& c : reason) c = c == '\n' ? ' ' : c;
    disassembly.text = "; the verifier refuses this: " + reason + "\n" + disassembly.text;
  }

  if (options.output.empty() && options.json) {
    json["text"] = disassembly.text;
    PrintJson(json);
    return 0;
  }
  if (options.output.empty()) {
    std::fwrite(disassembly.text.data(), 1, disassembly.text.size(), stdout);
    return 0;
  }
  if (!disassembly.data.empty()) {
    const Status written = WriteSafetensors(data_path.string(), disassembly.data);
    if (!written) return Forward(written);
    json["written"].push_back(data_path.string());
  }
  const Span<const char> text(disassembly.text);
  const Status written =
      WriteFileAtomically(options.output, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
  if (!written) return Forward(written);
  json["written"].push_back(options.output);
  if (options.json) PrintJson(json);
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmDisMain(int argc, char** argv) {
  CLI::App app(kDisassembleDescription, "vm-dis");
  DisassembleCommand options;
  app.add_option("FILE", options.input, "the executable (.rwx)")->required()->type_name("");
  app.add_option("-o,--output", options.output, "write the text here; default: standard output")
      ->type_name("FILE");
  app.add_flag("--brief", options.brief, "leave out the data of large constants");
  app.add_flag("--json", options.json, "print one JSON object, with the text or the files written");
  return Main(app, argc, argv, [&] { return DisassembleExecutable(options); });
}
