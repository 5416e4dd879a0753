// SPDX-License-Identifier: Apache-2.0
//
// vm-compile: compiles an ONNX model to an executable.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/library_operators.h"
#include "rewire/tools/compile/parameter_options.h"
#include "rewire/tools/compile/places_report.h"
#include "rewire/tools/compile/precision_report.h"
#include "rewire/tools/compile/shards_report.h"
#include "rewire/tools/compile/zeroed_report.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/compile_report.h"
#include "rewire/tools/io/file_kind.h"
#include "rewire/tools/io/log.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/stage_progress.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/io/units.h"
#include "rewire/tools/mains.h"
#include "rewire/tools/options/option_types.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char kCompileDescription[] =
    R"(Compiles an ONNX model or a .tflite file into an executable (.rwx) for vm-run and the library.

  vm-compile model.onnx -o model.rwx
  vm-compile model.onnx --dim batch=1 --max-dim length=128
  vm-compile model.onnx --precision int8 --calibrate samples.npz
  vm-compile model.onnx --precision bf16
  vm-compile model.onnx --device opencl
  vm-compile model.onnx --shards 2 -o model.rwx   (writes model.0.rwx and model.1.rwx)

A symbolic dimension has a name in place of a size, such as batch.
docs/compiler.md explains how models are compiled and what is not supported.
)";

constexpr std::uint64_t kMostRanks = 1024;

struct CompileCommand {
  std::string input;
  std::string output;
  std::vector<std::string> dims;
  std::vector<std::string> max_dims;
  std::vector<std::string> disabled;
  std::vector<std::string> allow_external;
  std::vector<std::string> operators, kernels;
  std::vector<std::string> parameters;
  std::string weights;
  std::string dump;
  std::string device = "cpu";
  std::int64_t device_work = CompileOptions().least_device_work;
  std::string precision = "model", calibration = "least-squares";
  std::vector<std::string> calibrate, keep_float;
  std::string parallel = "auto", cpu = "native", compress = "auto";
  double max_error = Calibration().max_error;
  std::int64_t shards = 1, stages = 1;
  std::int64_t rank = -1;  // all
  std::string shard_for = "time";
  CompileLimits limits;
  bool strict = false;
  bool json = false;
  bool check_passes = false;
};

// Programs after each stage as DIR/00-lowered.txt and so on; the first failure is kept.
class Dump {
 public:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {}
  void Write(const std::string& stage, const std::string& text) {
    const std::string path = fmt::format("{}/{:02}-{}.txt", folder_, count_++, stage);
    const Status written =
        WriteFileAtomically(path, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
    if (status_ && !written) status_ = written;
  }
  const Status& status() const { return status_; }

 private:
  std::string folder_;
  int count_ = 0;
  Status status_;
};

Result<CalibrationData> ReadSamples(const std::string& path) {
  const Result<std::vector<NamedTensor>> members = ReadArchive(path);
  if (!members) return Forward(members, "--calibrate");
  CalibrationData data;
  for (const NamedTensor& member : *members) {
    Result<Tensor> tensor = ToTensor(member.tensor);
    if (!tensor) return Forward(tensor, path);
    data.insert_or_assign(member.name, *std::move(tensor));
  }
  return data;
}

Status ReadCalibration(const CompileCommand& options, CompileOptions* compile) {
  compile->device = options.device;
  compile->least_device_work = options.device_work;
  compile->compress = options.compress == "auto";
  compile->strict = options.strict;
  if (options.parallel == "off") compile->parallel = Parallel::kOff;
  if (options.cpu == "vectors") compile->cpu = Cpu::kVectors;
  if (options.cpu == "tiles") compile->cpu = Cpu::kTiles;
  if (options.precision == "int8") compile->precision = Precision::kInt8;
  if (options.precision == "bf16") compile->precision = Precision::kBf16;
  Calibration& calibration = compile->calibration;
  if (options.calibration == "entropy") calibration.method = CalibrationMethod::kEntropy;
  if (options.calibration == "min-max") calibration.method = CalibrationMethod::kMinMax;
  calibration.max_error = options.max_error;
  calibration.keep_float.insert(options.keep_float.begin(), options.keep_float.end());
  for (const std::string& path : options.calibrate) {
    Result<CalibrationData> data = ReadSamples(path);
    if (!data) return Forward(data);
    calibration.data.push_back(*std::move(data));
  }
  return {};
}

// Why a run has no bound, and the options that give one: "as N is open; --dim N=SIZE or --max-dim N=SIZE
// gives one".
std::string UnboundedText(const Executable& executable) {
  const Module& module = executable.module();
  const Function& function = module.functions[executable.FindFunction("main").value_or(0)];
  const std::vector<std::string> open = OpenDimensions(module, function);
  if (open.empty()) return "that is known before";
  return fmt::format("as {0} {1} open; --dim {2}=SIZE or --max-dim {2}=SIZE gives one", fmt::join(open, ", "),
                     open.size() == 1 ? "is" : "are", open.front());
}

// A file that is no model for the compiler, and is known as something else.
Status RefuseOtherInput(const std::string& path, Span<const std::byte> content) {
  if (Status refused = RefuseForeignModel(path, content); !refused) return refused;
  const FileKind kind = FindFileKind(path, content);
  const bool compiled = IsExecutable(content);
  // The compiler tells of unknown content.
  const bool for_compiler =
      kind == FileKind::kOnnx || kind == FileKind::kTflite || kind == FileKind::kExecutable;
  if (!compiled && for_compiler) return {};
  return Fail(StatusCode::kUnsupported,
              fmt::format("{}: {}", path, KindAndTaker(compiled ? FileKind::kExecutable : kind)));
}

Json SummaryJson(const CompileCommand& options, const CompileOptions& compile, const std::string& output,
                 const CompileReport& report) {
  return {{"input", options.input},
          {"output", output},
          {"model_nodes", report.model_nodes},
          {"nodes", report.nodes},
          {"kernel_calls", report.kernel_calls},
          {"kernels", report.kernels},
          {"constants", report.constants},
          {"constant_bytes", report.constant_bytes},
          {"parameters", report.parameters},
          {"parameter_bytes", report.parameter_bytes},
          {"arena_bytes", report.arena_bytes},
          {"separate_bytes", report.separate_bytes},
          {"device_arena_bytes", report.device_arena_bytes},
          {"device_separate_bytes", report.device_separate_bytes},
          {"memory_bytes", report.memory.bounded() ? Json(report.memory.bytes) : Json()},
          {"quantized", report.quantized},
          {"products", ProductsJson(report)},
          {"movement", MovementJson(report)},
          {"unmeasured", report.unmeasured},
          {"device_calls", report.device_calls},
          {"host_calls", HostCallsJson(report)},
          {"zeroed_weights", ZeroedWeightsJson(report)},
          {"strict", options.strict},
          {"rank", compile.rank},
          {"shards", compile.shards},
          {"stages", compile.stages},
          {"sharding", ShardsJson(report)},
          {"passes", CompilerPasses()},
          {"nanoseconds", report.time.count()}};
}

void PrintSummary(const CompileCommand& options, const CompileOptions& compile, const std::string& output,
                  const Compilation& compiled) {
  const CompileReport& report = compiled.report;
  fmt::print(
      "wrote {}: {} nodes of the model became {}; {} kernel calls of {} kernels, {} constants with {}; {}\n",
      output, report.model_nodes, report.nodes, report.kernel_calls, report.kernels, report.constants,
      BytesText(report.constant_bytes), DurationText(static_cast<double>(report.time.count())));
  fmt::print("{}", ParametersText(report));
  if (compile.precision != Precision::kModel) {
    fmt::print("{}",
               PrecisionText(report, compile.precision == Precision::kInt8 ? "8-bit integers" : "bf16"));
  }
  if (!options.device.empty() && options.device != "cpu") {
    fmt::print("{}", PlacesText(report, options.device));
  }
  if (options.strict) {
    fmt::print("strict: left out {}\n", fmt::join(StrictlySkippedPasses(), ", "));
  }
  fmt::print("{}", ZeroedWeightsText(report));
  if (report.arena_bytes > 0) {
    fmt::print("tensors of known or limited size lie in an arena of {}; each by itself they would take {}\n",
               BytesText(report.arena_bytes), BytesText(report.separate_bytes));
  }
  if (report.device_arena_bytes > 0) {
    fmt::print("those on the device lie in one of {} there; each by itself they would take {}\n",
               BytesText(report.device_arena_bytes), BytesText(report.device_separate_bytes));
  }
  // Layers are the same for all ranks.
  const bool again = compile.rank > 0 && options.rank < 0 && compile.stages == 1;
  if ((compile.shards > 1 || compile.stages > 1) && !again)
    fmt::print("{}", ShardsText(report, compile.shards, compile.stages));
  if (report.memory.bounded()) {
    fmt::print("a run takes at most {} beside weights and outputs\n", BytesText(report.memory.bytes));
  } else {
    fmt::print("the memory of a run has no bound {}; vm-inspect --memory says more\n",
               UnboundedText(compiled.executable));
  }
}

// Compiles the model for one rank, or for all that there is, and writes the executable.
Result<Json> CompileOne(const CompileCommand& options, const CompileOptions& for_rank,
                        const std::string& folder, const std::string& output) {
  CompileOptions compile = for_rank;
  Dump dump(folder);
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return Fail(StatusCode::kIo, fmt::format("'{}': {}", folder, error.message()));
    compile.dump = [&](const std::string& stage, const std::string& text) { dump.Write(stage, text); };
  }
  std::optional<StageProgress> progress(std::in_place, IsQuiet() ? nullptr : StageProgress::Terminal(),
                                        std::chrono::seconds(1), std::chrono::milliseconds(200));
  compile.progress = [&](const std::string& what) {
    progress->Begin(what);
    Detail(what);
  };
  std::vector<UnsupportedNode> unsupported;
  const Result<Compilation> compiled = Compile(options.input, compile, &unsupported);
  if (!compiled) {
    progress.reset();
    if (options.json) {
      PrintJson(UnsupportedJson(options.input, compiled.error(), unsupported));
    } else {
      fmt::print(stderr, "{}", UnsupportedText(unsupported));
    }
    return Forward(compiled);
  }
  if (!dump.status()) return Forward(dump.status());
  progress->Begin("writing");
  if (Status written = WriteExecutable(compiled->executable, output); !written) return Forward(written);
  if (!options.weights.empty()) {
    if (Status written = WriteWeights(options.weights, compiled->parameters); !written)
      return Forward(written);
  }
  progress.reset();
  if (options.json) return SummaryJson(options, compile, output, compiled->report);
  if (!IsQuiet()) PrintSummary(options, compile, output, *compiled);
  return Json();
}

Result<int> Run(const CompileCommand& options) {
  std::string output = options.output;
  if (output.empty()) {
    // With the device in its name, a model for one device never takes the place of that for another.
    const std::string device = options.device.substr(0, options.device.find(':'));
    const std::string extension = device == "cpu" ? ".rwx" : "." + device + ".rwx";
    output = std::filesystem::path(options.input).replace_extension(extension).string();
  }
  // The compiler tells of a file that cannot be read.
  if (const Result<SharedBytes> file = MapFile(options.input)) {
    if (Status refused = RefuseOtherInput(options.input, file->view); !refused) return Forward(refused);
  }
  Result<CompileOptions> compile = ParseCompileOptions(options.dims, options.max_dims, options.disabled);
  if (!compile) return Forward(compile);
  compile->limits = options.limits;
  compile->external_folders = options.allow_external;
  if (options.check_passes) compile->check_passes = true;
  for (const std::string& library : options.kernels) {
    if (std::error_code failed; !std::filesystem::exists(OperatorsBeside(library), failed)) {
      return Fail(
          StatusCode::kNotFound,
          fmt::format("--kernels {0}: the operators of a library are read from {1} beside it, which is not "
                      "there; write it, or give --operators FILE.json",
                      library, OperatorsBeside(library)));
    }
  }
  std::vector<std::string> schema_files;
  for (const std::string& library : options.kernels) schema_files.push_back(OperatorsBeside(library));
  schema_files.insert(schema_files.end(), options.operators.begin(), options.operators.end());
  Result<std::vector<OperatorSchema>> operators = ReadOperatorFiles(schema_files);
  if (!operators) return Forward(operators);
  compile->operators = *std::move(operators);
  if (Status read = ReadParameterOptions(options.parameters, &*compile); !read) return Forward(read);
  if (Status read = ReadCalibration(options, &*compile); !read) return Forward(read);
  compile->shards = options.shards;
  compile->stages = options.stages;
  if (options.shard_for == "memory") compile->shard_goal = ShardGoal::kMemory;
  const std::int64_t ranks = std::max(options.shards, options.stages);
  if (ranks <= 1 || options.rank >= 0) {
    compile->rank = std::max<std::int64_t>(options.rank, 0);
    const Result<Json> summary =
        CompileOne(options, *compile, options.dump, ranks <= 1 ? output : PathOfRank(output, compile->rank));
    if (!summary) return Forward(summary);
    if (options.json) PrintJson(*summary);
    return 0;
  }
  Json summaries = Json::array();
  for (; compile->rank < ranks; ++compile->rank) {
    const std::string of_rank = fmt::format("rank{}", compile->rank);
    const std::string dump =
        options.dump.empty() ? "" : (std::filesystem::path(options.dump) / of_rank).string();
    Result<Json> summary = CompileOne(options, *compile, dump, PathOfRank(output, compile->rank));
    if (!summary) return Forward(summary);
    summaries.push_back(*std::move(summary));
  }
  if (options.json) PrintJson({{"ranks", std::move(summaries)}});
  return 0;
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmCompileMain(int argc, char** argv) {
  using namespace rewire::tools;  // NOLINT(google-build-using-namespace)
  CLI::App app(kCompileDescription, "vm-compile");
  CompileCommand options;
  app.add_option("FILE", options.input, "the model (.onnx or .tflite)")->required()->type_name("");
  app.add_option(
         "-o,--output", options.output,
         "write the executable here; default: the model's name with .rwx, or for a device with .DEVICE.rwx")
      ->type_name("FILE");
  app.add_option("--dim", options.dims, "compile for exactly this size of a symbolic dimension")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
  app.add_option("--max-dim", options.max_dims,
                 "allow at most this size of a symbolic dimension; larger inputs are refused")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
  app.add_option("--disable-pass", options.disabled,
                 fmt::format("skip one optimization step: {}", fmt::join(rewire::CompilerPasses(), ", ")))
      ->allow_extra_args(false)
      ->type_name("PASS");
  app.add_option("--operators", options.operators,
                 "read schemas of operators that kernels of yours compute from this JSON file "
                 "(docs/own-operators.md)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--kernels", options.kernels,
                 "read the schemas of this kernel library's operators from the .json beside it; none of its "
                 "code runs")
      ->allow_extra_args(false)
      ->type_name("LIBRARY");
  app.add_option(
         "--parameters", options.parameters,
         "make constants of the model parameters, which are bound when a program is linked (vm-run "
         "--params). "
         "Give the name of one, a file of parameters with names, or all, for floats of more than one element")
      ->allow_extra_args(false)
      ->type_name("all|NAME|FILE");
  app.add_option("--weights", options.weights,
                 "write the model's own parameters to this file: .safetensors, .npz, .rwx or .params (TVM)")
      ->needs("--parameters")
      ->type_name("FILE");
  app.add_flag(
      "--strict", options.strict,
      "skip each step that may change more of a result than the order of its sums. NaN, infinities and "
      "overflows are then those of the model's operators one by one. Slower");
  app.add_option(
         "--allow-external", options.allow_external,
         "follow symbolic links from the model's folder to weights in this folder, too; those to the folder "
         "where the model itself lies are always followed")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
  app.add_option("--device", options.device,
                 "run what it has kernels for on this device: opencl or cuda, with a number as in opencl:1")
      ->type_name("NAME")
      ->capture_default_str();
  AddWholeNumber(&app, "--device-work", &options.device_work, "N",
                 "nodes that hang together go to the device only if they compute at least so many elements")
      ->default_str(std::to_string(options.device_work));
  AddChoice(&app, "--precision", &options.precision, "HOW", {"model", "int8", "bf16"},
            "what convolutions and products with constant weights compute with. int8: the compiler "
            "quantizes them; needs --calibrate. bf16: half of the weights' size, with sums in f32");
  app.add_option(
         "--calibrate", options.calibrate,
         "samples of the inputs (.npz) for int8, or to measure what bf16 does: an array for each by its "
         "name. With one axis more than the "
         "input, the first axis counts samples; any other array is part of every sample. Give it again for "
         "samples of other sizes")
      ->allow_extra_args(false)
      ->type_name("FILE");
  AddChoice(&app, "--calibration", &options.calibration, "METHOD", {"min-max", "entropy", "least-squares"},
            "how ranges follow from the samples: min-max takes all; entropy and least-squares may cut "
            "rare large values off");
  AddRealNumber(&app, "--max-error", &options.max_error, "X",
                "let no output move further from the float model's on the samples, in parts of its norm; as "
                "many nodes as needed stay float. inf: no limit")
      ->default_str(fmt::to_string(options.max_error));
  app.add_option("--keep-float", options.keep_float, "a node of the model that stays float")
      ->allow_extra_args(false)
      ->type_name("NAME");
  AddChoice(&app, "--parallel", &options.parallel, "HOW", {"off", "auto"},
            "auto: run small operators that do not depend on each other at once, where that is faster on "
            "several threads");
  AddChoice(&app, "--cpu", &options.cpu, "KIND", {"native", "vectors", "tiles"},
            "the CPU for which bf16 chooses how convolutions are computed; programs run on every CPU. "
            "vectors: one with AVX512-BF16. tiles: one with AMX. native: what this machine has");
  AddWholeNumber(&app, "--shards", &options.shards, "N",
                 "write the programs of N processes that compute each layer together, as OUTPUT.0.rwx and so "
                 "on; each holds its part of the weights (docs/compiler.md)",
                 1, kMostRanks)
      ->default_str("1");
  AddWholeNumber(
      &app, "--stages", &options.stages, "N",
      "write the programs of N processes that each compute one part of the layers, and pass on what "
      "the next one reads",
      1, kMostRanks)
      ->default_str("1");
  AddWholeNumber(&app, "--rank", &options.rank, "R",
                 "write the program of this process alone, counted from 0");
  AddChoice(&app, "--shard-for", &options.shard_for, "WHAT", {"time", "memory"},
            "time: split what is then faster, as the compiler estimates it. memory: split all that can be");
  AddChoice(&app, "--compress", &options.compress, "HOW", {"off", "auto"},
            "auto: compress code and tables with zstd where that makes the file at least 1/64 smaller. "
            "off: for libraries that were built without zstd, as the smallest ones");
  AddWholeNumber(&app, "--max-work", &options.limits.work, "N",
                 "limit the work of compiling. Compiling a node costs about 64 units; functions are compiled "
                 "at every "
                 "call, loops several times")
      ->default_str(std::to_string(options.limits.work));
  AddSize(&app, "--max-fold-bytes", &options.limits.fold_bytes,
          "compute at most this many bytes of constants now, plus four times the model's weights; default: "
          "1G. Other constants are computed when the program is linked or runs");
  AddTime(&app, "--fold-time", &options.limits.fold_time,
          "spend at most this time on computing constants, such as 30s; default: 120s");
  app.add_option("--dump", options.dump,
                 "write the program after each optimization step into this folder, as text")
      ->type_name("FOLDER");
  app.add_flag("--check-passes", options.check_passes,
               "check the program after each optimization step, so that a fault of the compiler is an error "
               "that names the step");
  app.add_flag("--json", options.json, "print the summary, or the list of unsupported nodes, as JSON");
  return Main(app, argc, argv, [&] { return Run(options); });
}
