// SPDX-License-Identifier: Apache-2.0
//
// vm-params: lists and converts parameter files. docs/vm-params.md.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/file_kind.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"
#include "rewire/tools/mains.h"
#include "rewire/tools/options/option_types.h"
#include "rewire/tools/run/parameter_files.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char kParameterDescription[] =
    R"(Lists, converts and compresses files of parameters (weights): .safetensors, .npz, .rwx, and TVM's (.params).

  vm-params list weights.safetensors
  vm-params convert encoder.safetensors decoder.safetensors --output weights.rwx
  vm-params convert weights.rwx --output weights.params
  vm-params compress model.rwx --output small.rwx
)";

struct ParameterCommand {
  std::vector<std::string> inputs;
  std::string output;
  int level = 0;
  bool json = false;
};

Result<int> ListFiles(const ParameterCommand& options) {
  Json files = Json::array();
  std::string text;
  for (const std::string& path : options.inputs) {
    const Result<std::vector<StoredParameter>> list = ListParameters(path);
    if (!list) return Forward(list);
    std::vector<std::vector<std::string>> rows = {{"name", "type", "size", "stored", "codec"}};
    Json parameters = Json::array();
    std::uint64_t total = 0;
    for (const StoredParameter& parameter : *list) {
      const HostTensor& tensor = parameter.named.tensor;
      const Result<std::uint64_t> bytes = CompactBytes(tensor.dtype, tensor.shape);
      if (!bytes) return Forward(bytes, path);
      total += *bytes;
      rows.push_back({parameter.named.name, TensorTypeText(tensor.dtype, tensor.shape), BytesText(*bytes),
                      BytesText(parameter.stored_bytes), parameter.codec});
      parameters.push_back({{"name", parameter.named.name},
                            {"dtype", DTypeName(tensor.dtype)},
                            {"shape", tensor.shape},
                            {"bytes", *bytes},
                            {"stored_bytes", parameter.stored_bytes},
                            {"codec", parameter.codec}});
    }
    text += fmt::format("{}: {} parameters, {}\n", path, list->size(), BytesText(total));
    text += TableText(rows, {2, 3});
    files.push_back({{"file", path}, {"bytes", total}, {"parameters", std::move(parameters)}});
  }
  if (options.json) {
    PrintJson({{"files", std::move(files)}});
  } else {
    fmt::print("{}", text);
  }
  return 0;
}

Result<int> ConvertParameters(const ParameterCommand& options) {
  const Result<std::vector<NamedTensor>> tensors = ReadParameterFiles(options.inputs);
  if (!tensors) return Forward(tensors);
  if (Status written = WriteParameterFile(options.output, *tensors, options.level); !written) {
    return Forward(written);
  }
  if (options.json) {
    PrintJson({{"written", options.output}, {"parameters", tensors->size()}});
  } else {
    Tell(fmt::format("wrote {}: {} parameters\n", options.output, tensors->size()));
  }
  return 0;
}

Result<int> CompressExecutable(const ParameterCommand& options) {
  const std::string& input = options.inputs.front();
  const Result<SharedBytes> file = MapFile(input);
  if (!file) return Forward(file);
  if (Status kind = RefuseNoExecutable(input, file->view); !kind) return Forward(kind);
  const Result<Executable> executable = Executable::FromBytes(*file);
  if (!executable) return Forward(executable, input);
  Module module = executable->module();
  const Result<std::uint64_t> saved = CompressConstants(&module, options.level);
  if (!saved) return Forward(saved, input);
  if (Status written = WriteModule(module, options.output); !written) return Forward(written);
  if (options.json) {
    PrintJson({{"written", options.output}, {"saved_bytes", *saved}});
  } else {
    Tell(fmt::format("wrote {}: {} saved\n", options.output, BytesText(*saved)));
  }
  return 0;
}

CLI::App* AddCommand(CLI::App* app, const char* name, const char* help, ParameterCommand* options) {
  CLI::App* command = app->add_subcommand(name, help);
  command->add_flag("--json", options->json, "print one JSON object instead of text");
  return command;
}

CLI::Option* AddLevel(CLI::App* command, ParameterCommand* options, const char* help) {
  return AddWholeNumber(command, "--level", &options->level, "N", help, 1, 22);
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmParamsMain(int argc, char** argv) {
  CLI::App app(kParameterDescription, "vm-params");
  ParameterCommand options;
  app.require_subcommand(1);
  CLI::App* list = AddCommand(&app, "list", "list names, types and sizes", &options);
  list->add_option("FILE", options.inputs, "parameter files")->required()->type_name("");
  CLI::App* convert =
      AddCommand(&app, "convert", "write the parameters of one or more files to one file", &options);
  convert->add_option("FILE", options.inputs, "parameter files")->required()->type_name("");
  convert->add_option("-o,--output", options.output, "write this file; its ending decides the format")
      ->type_name("FILE")
      ->required();
  AddLevel(convert, &options, "compress with zstd at this level, 1 to 22; only for .rwx");
  CLI::App* compress = AddCommand(&app, "compress", "compress the constants of an .rwx file", &options);
  compress->add_option("FILE", options.inputs, "an executable, or parameters in .rwx")
      ->required()
      ->expected(1);
  compress->add_option("-o,--output", options.output, "write the compressed file here")
      ->type_name("FILE")
      ->required();
  AddLevel(compress, &options, "level of zstd, 1 to 22; default: 3");
  return Main(app, argc, argv, [&]() -> Result<int> {
    if (list->parsed()) return ListFiles(options);
    if (convert->parsed()) return ConvertParameters(options);
    if (options.level == 0) options.level = 3;
    return CompressExecutable(options);
  });
}
