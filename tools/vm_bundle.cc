// SPDX-License-Identifier: Apache-2.0
//
// vm-bundle: puts several executables into one file. docs/vm-bundle.md.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/bundle.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/open_model.h"
#include "rewire/tools/mains.h"

namespace rewire::tools {
namespace {

constexpr const char kBundleDescription[] =
    R"(Puts several executables into one file, a bundle. A constant that several of them use is stored once.

  vm-bundle encoder.rwx decoder.rwx --output both.rwx
  vm-bundle small=v1.rwx large=v2.rwx --output both.rwx
  vm-run both.rwx --model decoder
)";

struct BundleCommand {
  std::vector<std::string> inputs;
  std::string output;
  bool json = false;
};

Result<int> Bundle(const BundleCommand& options) {
  std::vector<BundledExecutable> models;
  for (const std::string& input : options.inputs) {
    const std::size_t equals = input.find('=');
    const std::string path = equals == std::string::npos ? input : input.substr(equals + 1);
    const std::string name =
        equals == std::string::npos ? std::filesystem::path(path).stem().string() : input.substr(0, equals);
    Result<OpenedModel> model = OpenModel(path);
    if (!model) return Forward(model);
    models.push_back({name, std::move(model->executable)});
  }
  if (Status written = WriteBundle(models, options.output); !written) return Forward(written);
  if (options.json) {
    nlohmann::ordered_json json = {{"written", options.output}, {"models", nlohmann::ordered_json::array()}};
    for (const BundledExecutable& model : models) json["models"].push_back(model.name);
    PrintJson(json);
  } else {
    Tell(fmt::format("wrote {}: {} models\n", options.output, models.size()));
  }
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmBundleMain(int argc, char** argv) {
  CLI::App app(kBundleDescription, "vm-bundle");
  BundleCommand options;
  app.add_option("FILE", options.inputs,
                 "executables: FILE, or NAME=FILE to name the model; default: the file's name")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", options.output, "write the bundle here")->type_name("FILE")->required();
  app.add_flag("--json", options.json, "print one JSON object instead of text");
  return Main(app, argc, argv, [&] { return Bundle(options); });
}
