// SPDX-License-Identifier: Apache-2.0
//
// vm-aot: makes C source of an executable.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "rewire/base/atomic_file.h"
#include "rewire/compiler/aot/emit_c.h"
#include "rewire/tools/io/cli.h"

namespace rewire::tools {
namespace {

constexpr const char kDescription[] =
    R"(Makes C source of an executable: one file of C99 and its header, without interpreter and without heap.

  $ vm-aot model.rwx -o model.c                        model.c and model.h
  $ vm-aot model.rwx -o digits.c --prefix digits       names begin with digits_

All sizes have to be known: compile with vm-compile --dim NAME=SIZE. docs/aot.md says what the source needs, and what
cannot be made static.
)";

struct Options {
  std::string input;
  std::string output;
  EmitCOptions emit;
  std::string kernels = "embedded";
  bool json = false;
};

Status WriteText(const std::string& path, const std::string& text) {
  return WriteFileAtomically(path, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

Result<int> MakeSource(Options options) {
  options.emit.kernels = options.kernels == "packed" ? CKernels::kPacked : CKernels::kEmbedded;
  const std::size_t dot = options.output.rfind('.');
  const std::size_t slash = options.output.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash) ||
      options.output.substr(dot) != ".c") {
    return Fail(StatusCode::kInvalidArgument, "the source is a file that ends in .c, given {}",
                options.output);
  }
  const std::string header = options.output.substr(0, dot) + ".h";
  const Result<Executable> executable = Executable::Open(options.input);
  if (!executable) return Forward(executable, options.input);
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const Result<CSource> source = EmitC(*executable, options.emit, header.substr(name));
  if (!source) return Forward(source, options.input);
  if (Status written = WriteText(header, source->header); !written) return Forward(written);
  if (Status written = WriteText(options.output, source->source); !written) return Forward(written);
  if (options.json) {
    PrintJson({{"file", options.input},
               {"source", options.output},
               {"header", header},
               {"arena_bytes", source->arena_bytes},
               {"constant_bytes", source->constant_bytes}});
    return 0;
  }
  Tell(fmt::format("wrote {} and {}: {} bytes of memory for tensors, {} bytes of constants\n", options.output,
                   header, source->arena_bytes, source->constant_bytes));
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int main(int argc, char** argv) {
  CLI::App app(rewire::tools::kDescription, "vm-aot");
  rewire::tools::Options options;
  app.add_option("FILE", options.input, "the executable (.rwx)")->required()->type_name("");
  app.add_option("-o,--output", options.output,
                 "write the source here; the header gets the same name with .h")
      ->required()
      ->type_name("FILE");
  app.add_option("--prefix", options.emit.prefix, "what names in the source begin with")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--function", options.emit.functions, "a function that C calls; default: main")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option("--depth", options.emit.depth,
                 "calls inside each other; a recursion that is deeper fails when it runs")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--kernels", options.kernels,
                 "what the source calls. embedded: functions of kernels/embedded, in plain C. packed: packed "
                 "functions, which a host links by name")
      ->check(CLI::IsMember({"embedded", "packed"}))
      ->type_name("KIND")
      ->capture_default_str();
  app.add_flag("--json", options.json, "print one JSON object instead of text");
  return rewire::tools::Main(app, argc, argv, [&] { return rewire::tools::MakeSource(options); });
}
