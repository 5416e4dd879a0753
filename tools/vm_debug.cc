// SPDX-License-Identifier: Apache-2.0
// vm-debug: runs a function step by step. docs/vm-debug.md.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "rewire/tools/debug/debugger.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/mains.h"
#include "rewire/tools/options/option_types.h"
#include "rewire/tools/run/link_model.h"
#include "rewire/tools/run/random_options.h"

namespace rewire::tools {
namespace {

constexpr const char kDebugDescription[] =
    R"(Runs a function of a Rewire executable step by step, and shows what its registers hold.

  $ vm-debug model.rwx --input image=@image.npy
  (vm-debug) break conv_1             stop at a node of the model, a function, or main@12
  (vm-debug) run
  (vm-debug) registers                what each register holds, a line each
  (vm-debug) step                     one instruction further; an empty line repeats it
  (vm-debug) print %4                 all elements of a register
  (vm-debug) catch nan                stop after the first kernel that writes NaN
  (vm-debug) continue
  (vm-debug) input image=fill:0       change an input
  (vm-debug) run                      and run again
  (vm-debug) help                     all commands; `help step` explains one

Commands also come from files (-x FILE), and from standard input if it is no terminal. There the first
command that fails ends the session with its exit code.
)";

void AddDebugOptions(CLI::App* app, DebugOptions* options) {
  const auto list = [app](const char* name, std::vector<std::string>* values, const char* type,
                          const char* help) {
    app->add_option(name, *values, help)->allow_extra_args(false)->type_name(type);
  };
  app->add_option("FILE", options->file,
                  "the model: an executable (.rwx), text assembly (.asm), an ONNX model (.onnx), or a model "
                  "of TVM")
      ->required()
      ->type_name("");
  app->add_option("--model", options->model, "choose one model of a bundle")->type_name("NAME");
  app->add_option("--map", options->map,
                  "give a stripped executable its names back, from the map that vm-strip wrote")
      ->type_name("FILE");
  app->add_option("-f,--function", options->function,
                  "debug this function; default: main, or else the first function")
      ->type_name("NAME");
  list("-x,--commands", &options->scripts, "FILE", "read commands from this file first");
  app->add_flag("--json", options->json, "print one JSON object for each command instead of text");
  list("-i,--input", &options->inputs.inputs, "NAME=VALUE", "set an input; `help input` says how");
  app->add_flag("--random", options->inputs.random, "fill the other inputs with random numbers");
  AddRandomOptions(app, &options->inputs);
  list("--params", &options->parameters, "FILE",
       "read parameters (weights) by name, from .safetensors, .rwx, .npz or TVM's files");
  list("--kernels", &options->kernels, "LIBRARY",
       "load a shared library of kernels, with its operators in the .json beside it; loading it runs its "
       "code");
  app->add_flag("--trust-device-code", options->trust_device_code, kTrustDeviceCodeHelp);
  AddWholeNumber(app, "--threads", &options->threads, "N", "let kernels use N threads; default: one per core",
                 1, 4096);
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmDebugMain(int argc, char** argv) {
  CLI::App app(rewire::tools::kDebugDescription, "vm-debug");
  rewire::tools::DebugOptions options;
  rewire::tools::AddDebugOptions(&app, &options);
  return rewire::tools::Main(app, argc, argv, [&] { return rewire::tools::Debug(options); });
}
