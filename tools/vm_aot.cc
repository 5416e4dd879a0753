// SPDX-License-Identifier: Apache-2.0
//
// vm-aot: makes C source of an executable, without interpreter or for the VM.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/compiler/aot/emit_c.h"
#include "rewire/compiler/aot/linked_source.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/units.h"
#include "rewire/tools/options/option_types.h"
#include "rewire/tools/run/link_model.h"

namespace rewire::tools {
namespace {

constexpr const char kDescription[] =
    R"(Makes C source of an executable: one file of C99 and its header, without interpreter and without heap.

  $ vm-aot model.rwx -o model.c                        model.c and model.h
  $ vm-aot model.rwx -o digits.c --prefix digits       names begin with digits_
  $ vm-aot model.rwx -o model.c --weights pointer      model.c, model.h, and model.weights for flash or mmap
  $ vm-aot model.rwx -o model.c --max-dim N=8          N is an argument of the function, from 1 to 8
  $ vm-aot model.rwx -o model.c --stack-usage build    the header also says how deep the stack becomes
  $ vm-aot model.rwx -o model.c --bytecode             the executable itself, which the VM runs without a file

A size that varies has a largest one, by --max-dim here or in vm-compile. docs/aot.md says what the source needs, and
what cannot be made static. docs/embedding.md says what --bytecode is for.
)";

struct Options {
  std::string input;
  std::string output;
  EmitCOptions emit;
  std::string kernels = "embedded";
  std::string weights = "inline";
  std::vector<std::string> parameters;
  std::vector<std::string> max_dims;
  std::vector<std::string> call_graphs;
  bool bytecode = false;
  bool json = false;
};

// The files that are written, beside each other.
struct OutputFiles {
  std::string source;
  std::string header;
  std::string header_name;  // as the source includes it
  std::string weights;
};

Status WriteText(const std::string& path, const std::string& text) {
  return WriteFileAtomically(path, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

// Links the model, and takes the constants that linking has bound or computed.
Result<ParameterSet> LinkedConstants(const OpenedModel& model, const Options& options) {
  const Module& module = model.executable.module();
  const bool is_whole = std::all_of(module.constants.begin(), module.constants.end(),
                                    [](const Constant& each) { return each.kind == ConstantKind::kData; });
  if (is_whole && options.parameters.empty()) return ParameterSet();
  for (const KernelImport& kernel : module.kernels) {
    const std::size_t library = names::StockLibraryOf(kernel.name);
    if (library == names::kNoLibrary || names::kStockLibraries[library].portable) continue;
    return Fail(StatusCode::kUnsupported,
                "{}: kernel {} reads or makes weights in a form that serves the machine alone where they are "
                "packed. Compile with vm-compile --disable-pass pack-onednn",
                options.input, kernel.name);
  }
  LinkChoices choices;
  choices.parameters = options.parameters;
  choices.threads = 1;
  const Result<Program> program = LinkModel(model, options.input, choices);
  if (!program) return Forward(program);
  return ParameterSet::Of(*program);
}

// The texts of these files, and of the files that end in .ci in these folders.
Result<std::map<std::string, std::string>> ReadCallGraphs(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::error_code failed;
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(path, failed)) {
      if (entry.path().extension() == ".ci") files.push_back(entry.path().string());
    }
    if (failed) return Fail(StatusCode::kIo, "cannot list '{}': {}", path, failed.message());
    if (files.size() == before) {
      return Fail(StatusCode::kNotFound,
                  "--stack-usage {}: the folder has no .ci files; compile with -fcallgraph-info=su", path);
    }
  }
  std::map<std::string, std::string> graphs;
  for (const std::string& file : files) {
    const Result<SharedBytes> bytes = ReadFile(file);
    if (!bytes) return Forward(bytes);
    graphs[file].assign(reinterpret_cast<const char*>(bytes->view.data()), bytes->view.size());
  }
  return graphs;
}

Result<OutputFiles> FilesOf(const std::string& source) {
  const std::size_t dot = source.rfind('.');
  const std::size_t slash = source.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash) || source.substr(dot) != ".c") {
    return Fail(StatusCode::kInvalidArgument,
                "the source is a file that ends in .c, given {}; give -o NAME.c", source);
  }
  const std::string stem = source.substr(0, dot);
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return OutputFiles{source, stem + ".h", stem.substr(name) + ".h", stem + ".weights"};
}

// Returns the beginning of every report.
nlohmann::ordered_json ReportOf(const Options& options, const OutputFiles& files) {
  return {{"file", options.input}, {"source", files.source}, {"header", files.header}};
}

Result<int> MakeLinkedSource(const Options& options) {
  const Result<OutputFiles> files = FilesOf(options.output);
  if (!files) return Forward(files);
  const Result<OpenedModel> model = OpenModel(options.input);
  if (!model) return Forward(model);
  const Result<LinkedSource> source = EmitLinked(model->executable, options.emit.prefix, files->header_name);
  if (!source) return Forward(source, options.input);
  if (Status written = WriteText(files->header, source->header); !written) return Forward(written);
  if (Status written = WriteText(files->source, source->source); !written) return Forward(written);
  if (options.json) {
    nlohmann::ordered_json report = ReportOf(options, *files);
    report["table_bytes"] = source->table_bytes;
    report["constant_bytes"] = source->constant_bytes;
    PrintJson(report);
    return 0;
  }
  Tell(fmt::format("wrote {} and {}: {} bytes of tables, {} bytes of constants\n", files->source,
                   files->header, source->table_bytes, source->constant_bytes));
  return 0;
}

Result<int> MakeSource(Options options) {
  options.emit.kernels = options.kernels == "packed" ? CKernels::kPacked : CKernels::kEmbedded;
  options.emit.weights = options.weights == "section"   ? CWeights::kSection
                         : options.weights == "pointer" ? CWeights::kPointer
                                                        : CWeights::kInline;
  Status sizes = ParseSizes("--max-dim", options.max_dims, &options.emit.max_dims);
  if (!sizes) return Forward(sizes);
  Result<std::map<std::string, std::string>> graphs = ReadCallGraphs(options.call_graphs);
  if (!graphs) return Forward(graphs);
  options.emit.call_graphs = *std::move(graphs);
  const Result<OutputFiles> files = FilesOf(options.output);
  if (!files) return Forward(files);
  const Result<OpenedModel> model = OpenModel(options.input, options.parameters);
  if (!model) return Forward(model);
  Result<ParameterSet> constants = LinkedConstants(*model, options);
  if (!constants) return Forward(constants);
  options.emit.constants = *std::move(constants);
  const Result<CSource> source = EmitC(model->executable, options.emit, files->header_name);
  if (!source) return Forward(source, options.input);
  if (Status written = WriteText(files->header, source->header); !written) return Forward(written);
  if (Status written = WriteText(files->source, source->source); !written) return Forward(written);
  const bool has_file = options.emit.weights == CWeights::kPointer;
  if (has_file) {
    Status written = WriteFileAtomically(files->weights, {source->weights.data(), source->weights.size()});
    if (!written) return Forward(written);
  }
  if (options.json) {
    nlohmann::ordered_json report = ReportOf(options, *files);
    report["arena_bytes"] = source->arena_bytes;
    report["constant_bytes"] = source->constant_bytes;
    if (source->stack_bytes) report["stack_bytes"] = *source->stack_bytes;
    if (has_file) report["weights"] = files->weights;
    PrintJson(report);
    return 0;
  }
  if (has_file) Tell(fmt::format("wrote {}\n", files->weights));
  const std::string stack =
      source->stack_bytes ? fmt::format(", {} bytes of stack", *source->stack_bytes) : "";
  Tell(fmt::format("wrote {} and {}: {} bytes of memory for tensors, {} bytes of constants{}\n",
                   files->source, files->header, source->arena_bytes, source->constant_bytes, stack));
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int main(int argc, char** argv) {
  using namespace rewire::tools;  // NOLINT(google-build-using-namespace)
  CLI::App app(kDescription, "vm-aot");
  Options options;
  app.add_option("FILE", options.input, "the executable (.rwx), or another model that vm-run takes")
      ->required()
      ->type_name("");
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
  AddWholeNumber(&app, "--depth", &options.emit.depth, "N",
                 "calls inside each other; a recursion that is deeper fails when it runs")
      ->default_str(std::to_string(options.emit.depth));
  AddChoice(&app, "--kernels", &options.kernels, "KIND", {"embedded", "packed"},
            "what the source calls. embedded: functions of kernels/embedded, in plain C. packed: packed "
            "functions, which a host links by name");
  AddChoice(
      &app, "--weights", &options.weights, "PLACE", {"inline", "section", "pointer"},
      "where the weights lie. inline: in arrays of the source. section: in a section of their own, "
      ".PREFIX_weights. pointer: in a file beside the source, to whose bytes the caller passes a pointer");
  app.add_option(
         "--max-dim", options.max_dims,
         "the largest size of a symbolic dimension of the inputs; the source has a version for each size")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
  app.add_option(
         "--params", options.parameters,
         "read parameters (weights) by name, from .safetensors, .rwx, .npz or TVM's files; they become "
         "constants of the source")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option(
         "--stack-usage", options.call_graphs,
         "what GCC writes with -fcallgraph-info=su when it compiles the source and the kernels: a .ci "
         "file or a folder of them. The header then states the most stack that a call needs")
      ->allow_extra_args(false)
      ->type_name("FILE");
  AddWholeNumber(&app, "--library-stack", &options.emit.library_stack, "BYTES",
                 "stack that each function of the C library is taken to need, with --stack-usage")
      ->default_str(std::to_string(options.emit.library_stack));
  CLI::Option* bytecode = app.add_flag("--bytecode", options.bytecode,
                                       "make a source that has the executable itself as constant data. The "
                                       "VM opens it with neither reader nor "
                                       "verifier, as it was verified now");
  for (const char* other : {"--function", "--depth", "--kernels", "--weights", "--max-dim", "--params",
                            "--stack-usage", "--library-stack"}) {
    bytecode->excludes(other);
  }
  app.add_flag("--json", options.json, "print one JSON object instead of text");
  return Main(app, argc, argv,
              [&] { return options.bytecode ? MakeLinkedSource(options) : MakeSource(options); });
}
