// SPDX-License-Identifier: Apache-2.0
//
// vm-as: converts text assembly to an executable.
#include <fmt/format.h>

#include <filesystem>

#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/mains.h"

namespace rewire::tools {
namespace {

constexpr const char kAssembleDescription[] =
    R"(Assembles a program in text form into an executable (.rwx) and verifies it.

  $ cat double.asm
  .kernel add = "rewire.add"
  .func main(x: f32[4]) -> y: f32[4]
    %bytes = load_consti 16
    %storage = alloc_storage %bytes, alignment=64, f32, cpu
    %y = alloc_tensor %storage, _, f32[4]
    invoke_packed add(%x, %x, %y), outputs=1
    ret %y
  .end
  $ vm-as double.asm
  $ vm-run double.rwx --input x=4xf32=1,2,3,4

docs/assembly.md describes the language.
)";

struct AssembleCommand {
  std::string input;
  std::string output;
  bool no_verify = false;
  bool json = false;
};

Result<Module> ReadProgram(const std::string& input) {
  if (input != "-") return AssembleFile(input);
  const Result<SharedBytes> bytes = ReadFile("/dev/stdin");
  if (!bytes) return Forward(bytes);
  AssembleOptions options;
  options.file_name = "<stdin>";
  return Assemble({reinterpret_cast<const char*>(bytes->view.data()), bytes->view.size()}, options);
}

Result<int> AssembleProgram(const AssembleCommand& options) {
  std::string output = options.output;
  if (output.empty()) {
    if (options.input == "-") {
      return Fail(StatusCode::kInvalidArgument, "a text from standard input needs --output");
    }
    output = std::filesystem::path(options.input).replace_extension(".rwx").string();
  }
  const Result<Module> module = ReadProgram(options.input);
  if (!module) return Forward(module);
  if (!options.no_verify) {
    if (const Status verified = VerifyModule(*module); !verified) {
      return Forward(verified, options.input);
    }
  }
  if (const Status written = WriteModule(*module, output); !written) return Forward(written);
  if (options.json) {
    PrintJson({{"written", output},
               {"functions", module->functions.size()},
               {"constants", module->constants.size()},
               {"kernels", module->kernels.size()}});
  }
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmAsMain(int argc, char** argv) {
  CLI::App app(kAssembleDescription, "vm-as");
  AssembleCommand options;
  app.add_option("FILE", options.input, "the program text; - reads standard input")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", options.output,
                 "write the executable here; default: the input's name with .rwx")
      ->type_name("FILE");
  app.add_flag("--no-verify", options.no_verify,
               "write the executable even if the verifier refuses it, to test readers");
  app.add_flag("--json", options.json, "print one JSON object about the file that was written");
  return Main(app, argc, argv, [&] { return AssembleProgram(options); });
}
