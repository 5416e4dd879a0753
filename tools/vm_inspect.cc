// SPDX-License-Identifier: Apache-2.0
//
// vm-inspect: shows the content of an executable or a kernel library. docs/vm-inspect.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "rewire/base/mapped_file.h"
#include "rewire/tools/inspect/dot_text.h"
#include "rewire/tools/inspect/function_graph.h"
#include "rewire/tools/inspect/inspect_bundle.h"
#include "rewire/tools/inspect/inspect_executable.h"
#include "rewire/tools/inspect/inspect_library.h"
#include "rewire/tools/inspect/inspect_memory.h"
#include "rewire/tools/inspect/listing.h"
#include "rewire/tools/inspect/memory_svg.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/name_map.h"
#include "rewire/tools/io/open_model.h"
#include "rewire/tools/mains.h"

namespace rewire::tools {
namespace {

struct InspectCommand {
  std::string file;
  std::string map;  // of vm-strip
  bool all = false;
  bool check = false;
  bool json = false;
  bool memory = false;
  bool dot = false;
  bool svg = false;
  MemoryRequest request;
};

void PrintAnswer(bool as_json, const nlohmann::ordered_json& json, const std::string& text) {
  if (as_json) {
    PrintJson(json);
  } else {
    fmt::print("{}", text);
  }
}

Result<int> InspectOwn(const InspectCommand& options) {
  const Result<SharedBytes> file = MapFile(options.file);
  if (file && IsBundle(file->view)) {
    const Result<BundleReport> bundle = InspectBundle(options.file, options.check);
    if (!bundle) return Forward(bundle);
    PrintAnswer(options.json, BundleJson(*bundle), BundleText(*bundle, options.all));
    return 0;
  }
  const Result<Inspection> inspection = InspectExecutable(options.file, options.check);
  if (!inspection) return Forward(inspection);
  PrintAnswer(options.json, InspectionJson(*inspection), InspectionText(*inspection, options.all));
  return inspection->whole() ? 0 : kExitNo;
}

// A model in another form, or with names from a map, as a program sees it.
Result<int> InspectForeign(const InspectCommand& options) {
  Result<OpenedModel> model = OpenModel(options.file);
  if (!model) return Forward(model);
  if (Status named = RestoreNames(options.map, &*model); !named) return Forward(named);
  const Module& module = model->executable.module();
  nlohmann::ordered_json json = {{"file", options.file}, {"kind", FileKindName(model->kind)}};
  std::string text = fmt::format("{}: {}\n", options.file, FileKindName(model->kind));
  text += MetadataText(module);
  json["metadata"] = MetadataJson(module);
  json["model"] = ModelJson(module);
  json.update(ListingJson(module));
  PrintAnswer(options.json, json, text + "\n" + (options.all ? ListingText(module) : InterfaceText(module)));
  return 0;
}

Result<int> InspectRuns(const InspectCommand& options) {
  Result<OpenedModel> model = OpenModel(options.file);
  if (!model) return Forward(model);
  if (Status named = RestoreNames(options.map, &*model); !named) return Forward(named);
  MemoryRequest request = options.request;
  request.kernels.insert(request.kernels.end(), model->kernels.begin(), model->kernels.end());
  const Result<std::vector<FunctionMemory>> memory = InspectMemory(model->executable, request);
  if (!memory) return Forward(memory);
  if (options.svg) {
    std::vector<PlannedFunction> functions;
    for (const FunctionMemory& function : *memory) {
      const std::optional<std::uint32_t> index = model->executable.FindFunction(function.function);
      functions.push_back(
          {function.function, PlanOf(model->executable.module(), index.value_or(0)), function.unbound});
    }
    fmt::print("{}", MemorySvg(functions));
    return 0;
  }
  PrintAnswer(options.json, {{"file", options.file}, {"memory", MemoryJson(*memory)}}, MemoryText(*memory));
  return 0;
}

Result<int> DrawFunctions(const InspectCommand& options) {
  Result<OpenedModel> model = OpenModel(options.file);
  if (!model) return Forward(model);
  if (Status named = RestoreNames(options.map, &*model); !named) return Forward(named);
  const Module& module = model->executable.module();
  std::vector<FunctionGraph> graphs;
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) graphs.push_back(GraphOf(module, i));
  fmt::print("{}", DotText({graphs.data(), graphs.size()}));
  return 0;
}

Result<int> Inspect(const InspectCommand& options) {
  if (options.dot) return DrawFunctions(options);
  if (options.memory) return InspectRuns(options);
  if (!options.map.empty()) return InspectForeign(options);
  const Result<SharedBytes> bytes = MapFile(options.file);
  if (!bytes) return Forward(bytes);
  switch (FindFileKind(options.file, bytes->view)) {
    case FileKind::kExecutable:
      if (Status kind = RefuseNoExecutable(options.file, bytes->view); !kind) return Forward(kind);
      return InspectOwn(options);
    case FileKind::kSharedLibrary: {
      const Result<LibraryReport> library = InspectLibrary(options.file);
      if (!library) return Forward(library);
      PrintAnswer(options.json, LibraryJson(*library), LibraryText(*library, options.all));
      return 0;
    }
    case FileKind::kAssembly:
    case FileKind::kOnnx:
    case FileKind::kTflite:
    case FileKind::kRelayExecutable:
    case FileKind::kGraph:
    case FileKind::kParameterList:
    case FileKind::kObjectArchive:
      break;
  }
  return InspectForeign(options);
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmInspectMain(int argc, char** argv) {
  CLI::App app(
      "Shows the content of an executable (.rwx), a model of TVM, or a kernel library (.so). A library is "
      "loaded for this, which runs its code.",
      "vm-inspect");
  rewire::tools::InspectCommand options;
  app.add_option("FILE", options.file, "the executable, model of TVM, or kernel library")
      ->required()
      ->type_name("");
  CLI::Option* map =
      app.add_option("--map", options.map,
                     "give a stripped executable its names back, from the map that vm-strip wrote")
          ->type_name("FILE");
  app.add_flag("--all", options.all,
               "also list what is inside: kernels, constants, sections, and what takes room");
  CLI::Option* check = app.add_flag("--check", options.check,
                                    "check every section and constant; exit with 1 if one is damaged")
                           ->excludes(map);
  CLI::Option* json = app.add_flag("--json", options.json, "print one JSON object instead of text");
  CLI::Option* memory = app.add_flag("--memory", options.memory, "show the most memory that runs need");
  app.add_flag("--dot", options.dot, "print the functions as a graph for Graphviz: pipe it to dot -Tsvg")
      ->excludes(check)
      ->excludes(json)
      ->excludes(memory);
  app.add_flag("--svg", options.svg, "with --memory: draw what lies where, as an SVG picture")
      ->needs(memory)
      ->excludes(json);
  app.add_option("--function", options.request.function, "with --memory: show only this function")
      ->needs(memory)
      ->type_name("NAME");
  app.add_option("--max-dim", options.request.max_dims,
                 "with --memory: assume at most this size of a symbolic dimension")
      ->needs(memory)
      ->type_name("NAME=SIZE");
  app.add_option("--kernels", options.request.kernels,
                 "with --memory: read the scratch memory that kernels declare from this library")
      ->needs(memory)
      ->type_name("FILE");
  return rewire::tools::Main(app, argc, argv, [&] { return rewire::tools::Inspect(options); });
}
