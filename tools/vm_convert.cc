// SPDX-License-Identifier: Apache-2.0
//
// vm-convert: converts a model that another compiler saved to an executable. docs/vm-convert.md.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/writer.h"
#include "rewire/tools/inspect/listing.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/open_model.h"
#include "rewire/tools/mains.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char kConvertDescription[] =
    R"(Converts a model that TVM 0.8 to 0.19 has compiled into an executable (.rwx).

  vm-convert model.ro                                 a Relay VM executable
  vm-convert graph.json --params weights.params       a model of the graph executor
  vm-convert exported.so --output model.rwx           a library written by export_library
  vm-run model.rwx --kernels exported.so

The kernels' machine code stays in the library that TVM made. Pass that library to vm-run with --kernels.
docs/vm-convert.md lists the files that can be converted.
)";

struct ConvertCommand {
  std::string input;
  std::string output;
  std::vector<std::string> parameters;
  bool json = false;
};

Status CheckConvertible(const ConvertCommand& options, const OpenedModel& model) {
  switch (model.kind) {
    case FileKind::kExecutable:
      return Fail(StatusCode::kInvalidArgument,
                  options.input + ": this is an executable of Rewire already; vm-run runs it");
    case FileKind::kAssembly:
      return Fail(StatusCode::kInvalidArgument, options.input + ": vm-as assembles text");
    case FileKind::kOnnx:
      return Fail(StatusCode::kInvalidArgument, options.input + ": vm-compile compiles ONNX models");
    case FileKind::kTflite:
      return Fail(StatusCode::kInvalidArgument, options.input + ": vm-compile compiles .tflite files");
    case FileKind::kRelayExecutable:
    case FileKind::kGraph:
    case FileKind::kSharedLibrary:
    case FileKind::kParameterList:
    case FileKind::kObjectArchive:
      break;
  }
  if (options.parameters.empty() || model.has_parameters) return {};
  return Fail(
      StatusCode::kInvalidArgument,
      fmt::format("--params: {} names its parameters itself, and vm-run binds them; only a graph needs "
                  "them here",
                  FileKindName(model.kind)));
}

// How to run what was written.
std::string Command(const ConvertCommand& options, const OpenedModel& model, const std::string& output) {
  std::string command = "vm-run " + output;
  if (model.executable.module().kernels.empty()) return command;
  command += " --kernels " + (model.kernels.empty() ? std::string("LIBRARY") : options.input);
  return command;
}

Result<int> ConvertModel(const ConvertCommand& options) {
  const std::string output = options.output.empty()
                                 ? std::filesystem::path(options.input).replace_extension(".rwx").string()
                                 : options.output;
  const Result<OpenedModel> model = OpenModel(options.input, options.parameters);
  if (!model) return Forward(model);
  if (Status convertible = CheckConvertible(options, *model); !convertible) return Forward(convertible);
  const Module& module = model->executable.module();
  if (Status written = WriteModule(module, output); !written) return Forward(written);
  if (options.json) {
    Json json = {{"file", options.input},
                 {"kind", FileKindName(model->kind)},
                 {"written", output},
                 {"run", Command(options, *model, output)}};
    json.update(ListingJson(module));
    PrintJson(json);
    return 0;
  }
  Tell(fmt::format("{}: {}\nwrote {}; run it with\n  {}\n", options.input, FileKindName(model->kind), output,
                   Command(options, *model, output)));
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmConvertMain(int argc, char** argv) {
  CLI::App app(kConvertDescription, "vm-convert");
  ConvertCommand options;
  app.add_option("FILE", options.input, "the model that TVM compiled")->required()->type_name("");
  app.add_option("-o,--output", options.output,
                 "write the executable here; default: the input's name with .rwx")
      ->type_name("FILE");
  app.add_option("--params", options.parameters,
                 "read a graph's parameters (weights) from a parameter file of TVM, .safetensors or .npz")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_flag("--json", options.json, "print one JSON object instead of text");
  return Main(app, argc, argv, [&] { return ConvertModel(options); });
}
