// SPDX-License-Identifier: Apache-2.0
// vm-run: runs a function of an executable. docs/vm-run.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "rewire/tools/inspect/list_devices.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/mains.h"
#include "rewire/tools/options/option_types.h"
#include "rewire/tools/run/link_model.h"
#include "rewire/tools/run/random_options.h"
#include "rewire/tools/vm_run/run.h"

namespace rewire::tools {
namespace {

template <typename T>
CLI::Option* AddValue(CLI::App* app, const char* name, T* value, const char* type, const char* help) {
  return app->add_option(name, *value, help)->type_name(type);
}

// Takes one value each time it is given, so that FILE may follow.
CLI::Option* AddList(CLI::App* app, const char* name, std::vector<std::string>* values, const char* type,
                     const char* help) {
  return app->add_option(name, *values, help)->allow_extra_args(false)->type_name(type);
}

void AddInputOptions(CLI::App* app, RunOptions* options) {
  const char* group = "Inputs";
  AddList(app, "-i,--input", &options->inputs.inputs, "NAME=VALUE",
          "set an input, by name or by index; @FILE.npz sets every input by its name")
      ->group(group);
  app->add_flag("--random", options->inputs.random, "fill the other inputs with random numbers")
      ->group(group);
  AddRandomOptions(app, &options->inputs, group);
  AddList(app, "--params", &options->parameters, "FILE",
          "read parameters (weights) by name, from .safetensors, .rwx, .npz or TVM's files")
      ->group(group);
  AddList(
      app, "--kernels", &options->kernels, "LIBRARY",
      "load a shared library of kernels, with its operators in the .json beside it; loading it runs its code")
      ->group(group);
  app->add_flag("--trust-device-code", options->trust_device_code, kTrustDeviceCodeHelp)->group(group);
}

void AddOutputOptions(CLI::App* app, RunOptions* options) {
  const char* group = "Outputs";
  AddList(app, "-o,--output", &options->outputs, "NAME=@FILE",
          "write an output to a file instead of printing it; @FILE.npz takes all outputs")
      ->group(group);
  AddList(app, "-e,--expect", &options->expects, "NAME=VALUE",
          "compare an output with a value; exit with 1 if they differ")
      ->group(group);
  AddRealNumber(
      app, "--rtol", &options->relative, "X",
      "allow this relative difference, as numpy.allclose does; default: 1e-5, or 1e-4 with --against")
      ->group(group);
  AddRealNumber(app, "--atol", &options->absolute, "X",
                "allow this absolute difference; default: 1e-8, or 0 with --against")
      ->group(group);
}

// Adds the options of programs that go on from an earlier call.
void AddStateOptions(CLI::App* app, RunOptions* options) {
  const char* group = "State";
  AddValue(app, "--load-state", &options->load_state, "FILE",
           "set the inputs that a state file has; --input, if given, counts more")
      ->group(group);
  AddValue(app, "--save-state", &options->save_state, "FILE",
           "write the inputs to a state file after the last run, for --load-state and for C programs")
      ->group(group);
  AddList(app, "--carry", &options->carries, "OUTPUT=INPUT",
          "save this output in place of that input: what one step leaves to the next one")
      ->needs("--save-state")
      ->group(group);
}

void AddMeasuringOptions(CLI::App* app, RunOptions* options) {
  const char* group = "Measuring";
  AddWholeNumber(app, "--repeat", &options->repeat, "N",
                 "run N times and print median, p90 and p99 of the time", 1)
      ->group(group);
  AddTime(app, "--duration", &options->duration,
          "run again and again for this long, such as 2s, and print the same")
      ->group(group);
  app->add_flag("--histogram", options->histogram, "print how the times of these runs are spread")
      ->group(group);
  AddWholeNumber(app, "--warmup", &options->warmup, "N", "run N times before the runs that are measured")
      ->group(group)
      ->default_str(std::to_string(options->warmup));
  app->add_flag("--trace", options->trace,
                "print every instruction, with the values of its operands, before it runs")
      ->group(group);
  app->add_flag("--profile", options->profile, "print how long each kernel took")->group(group);
  AddValue(app, "--profile-trace", &options->timeline, "FILE",
           "write a timeline of all kernel calls, for ui.perfetto.dev")
      ->group(group);
  AddValue(app, "--report", &options->report, "FILE.html",
           "write a page that shows where time and memory went: the model as a graph, a timeline, the "
           "memory, and advice")
      ->group(group);
  app->add_flag(
         "--record-device", options->record_device,
         "record the work of a device, and replay it in the runs that are measured; say why if it cannot be")
      ->excludes("--trace")
      ->excludes("--profile")
      ->excludes("--profile-trace")
      ->excludes("--report")
      ->group(group);
  AddWholeNumber(app, "--threads", &options->threads, "N", "let kernels use N threads; default: one per core",
                 1, 4096)
      ->group(group);
}

// Adds the options that a run is compared with beside --expect. Such runs are made for that alone.
void AddComparingOptions(CLI::App* app, RunOptions* options) {
  const char* group = "Finding what is wrong";
  const auto exclude = [](CLI::Option* option, std::initializer_list<const char*> others) {
    for (const char* other : others) option->excludes(other);
    option->excludes("--list")->excludes("--explain-outputs");
  };
  CLI::Option* dump =
      AddValue(app, "--dump-values", &options->dump_values, "FOLDER",
               "write every value that the run makes to a new folder, as .npy files with an index.json");
  exclude(dump->group(group), {"--repeat", "--duration"});
  CLI::Option* record =
      AddValue(app, "--record", &options->record, "FOLDER",
               "keep the call in a new folder: inputs, outputs, settings, and the model's hash");
  exclude(record->group(group), {});
  CLI::Option* replay = AddValue(
      app, "--replay", &options->replay, "FOLDER",
      "run a recorded call again and compare; exit with 1 if an output differs by a bit, or by more than "
      "--rtol and --atol. FILE is another build of the model");
  exclude(replay->group(group), {"--record", "--input", "--random", "--dim", "--expect", "--load-state"});
  CLI::Option* against =
      AddValue(app, "--against", &options->against, "FILE.onnx",
               "run ONNX Runtime, too, and name the first node whose value differs; exit with 1 if one does");
  exclude(against->group(group),
          {"--output", "--expect", "--repeat", "--duration", "--trace", "--profile", "--profile-trace",
           "--report", "--dump-values", "--record", "--save-state"});
  AddValue(app, "--python", &options->python, "PROGRAM",
           "the Python that has ONNX Runtime; default: REWIRE_PYTHON of the environment, or else python3")
      ->needs("--against")
      ->group(group);
}

void AddLimitOptions(CLI::App* app, RunOptions* options) {
  const char* group = "Limits";
  AddSize(app, "--max-bytes", &options->limits.bytes,
          "end a run that needs more memory than this, such as 64M")
      ->group(group);
  AddWholeNumber(app, "--max-steps", &options->limits.steps, "N", "end a run after N instructions")
      ->group(group);
  AddWholeNumber(app, "--max-depth", &options->limits.depth, "N",
                 "end a run when calls nest more than N deep")
      ->group(group)
      ->default_str(std::to_string(options->limits.depth));
  AddTime(app, "--deadline", &options->deadline, "end a run that takes longer than this, such as 2s or 250ms")
      ->group(group);
}

void AddRunOptions(CLI::App* app, RunOptions* options) {
  AddValue(
      app, "FILE", &options->file, "",
      "the model: an executable (.rwx), text assembly (.asm), an ONNX model (.onnx), a model of TVM, or the "
      "URL of a model on a server");
  AddValue(app, "--model", &options->model, "NAME", "choose one model of a bundle");
  AddValue(app, "--map", &options->map, "FILE",
           "give a stripped executable its names back, from the map that vm-strip wrote");
  app->add_flag(
      "--verify-data", options->verify_data,
      "check the checksum of every constant before the run; otherwise each is checked by vm-inspect --check "
      "alone");
  AddValue(app, "-f,--function", &options->function, "NAME",
           "run this function; default: main, or else the first function");
  app->add_flag("-l,--list", options->list, "print inputs, outputs and parameters, and do not run");
  app->add_flag(
      "--explain-outputs", options->explain_outputs,
      "print which outputs kernels can write straight into the caller's memory, why others are copied, and "
      "what is copied between devices; do not run");
  app->add_flag("--devices", options->devices,
                "print the devices that programs can use here, and what others lack; do not run");
  app->add_flag("--json", options->json, "print one JSON object instead of text");
  AddInputOptions(app, options);
  AddOutputOptions(app, options);
  AddStateOptions(app, options);
  AddMeasuringOptions(app, options);
  AddComparingOptions(app, options);
  AddLimitOptions(app, options);
}

Result<int> ParseAndRun(const RunOptions& options) {
  if (options.devices) {
    fmt::print("{}", DeviceList(options.json));
    return 0;
  }
  if (options.file.empty() && options.replay.empty())
    return Fail(StatusCode::kInvalidArgument, "FILE is required; vm-run --help lists the options");
  return Run(options);
}

constexpr const char kRunDescription[] =
    R"(Runs a function of a Rewire executable and prints, writes or checks its outputs.

  vm-run model.rwx --list
  vm-run model.rwx --input image=@images.npy --expect scores=@scores.npy
  vm-run model.rwx --random --dim N=8 --repeat 100 --profile
  vm-run step.rwx --load-state a.state --input x=@x.npy --carry next=state --save-state b.state
  vm-run model.rwx --random --against model.onnx                   names the first wrong node
  vm-run --replay call                                             runs a recorded call again
  vm-run --devices
  vm-run grpc://localhost:8001/model --random                      the model runs on a server; http:// likewise
  vm-run model.ro --kernels lib.so                                 a model for TVM's Relay VM
  vm-run graph.json --params weights.params --kernels lib.so       a model for TVM's graph executor

A VALUE is one of
  @x.npy  @all.npz  @all.npz:member  @w.safetensors:member    tensors from files
  1x3xf32=1,2,3  2x2xi64=0  f32=1.5  8x3xf32=random           tensors; a single number fills the tensor
  5                                                           an integer, or a scalar of the input's dtype
  (@a.npy,(5,@b.npy))  7(@a.npy)                              trees of values; a tag may stand in front
)";

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmRunMain(int argc, char** argv) {
  CLI::App app(rewire::tools::kRunDescription, "vm-run");
  rewire::tools::RunOptions options;
  rewire::tools::AddRunOptions(&app, &options);
  return rewire::tools::Main(app, argc, argv, [&] { return rewire::tools::ParseAndRun(options); });
}
