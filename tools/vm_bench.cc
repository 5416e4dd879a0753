// SPDX-License-Identifier: Apache-2.0
// vm-bench: makes requests at a rate and measures how long they take. docs/vm-bench.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/atomic_file.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/interrupt.h"
#include "rewire/tools/io/units.h"
#include "rewire/tools/load/load.h"
#include "rewire/tools/load/load_report.h"
#include "rewire/tools/load/local_clients.h"
#include "rewire/tools/mains.h"
#include "rewire/tools/measure/process_time.h"
#include "rewire/tools/options/option_types.h"
#include "rewire/tools/run/link_model.h"
#include "rewire/tools/run/open_remote.h"
#include "rewire/tools/run/random_options.h"

namespace rewire::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char kBenchDescription[] =
    R"(Makes requests to a model at a rate, and measures how long they take.

  vm-bench model.rwx --rate 200 --duration 10s               requests arrive as they do from many users
  vm-bench model.rwx --rate 100 --rate 200 --rate 400        a row for each rate
  vm-bench model.rwx --clients 4                             4 clients, each waits for its answer
  vm-bench grpc://localhost:8001/model --rate 200            requests to a server; http:// likewise

With --rate, requests arrive at random times (Poisson), whether earlier ones are answered or not. A latency
counts from the arrival, so that it has the time for which a request waits until a client is free.
Without --rate, each client makes its next request when it has its answer.
)";

struct BenchCommand {
  std::string file, model, function;
  InputOptions inputs;
  std::vector<std::string> parameters, kernels;
  bool trust_device_code = false;
  std::vector<double> rates;
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
  std::optional<std::chrono::nanoseconds> deadline;
  std::uint32_t clients = 1, warmup = 10;
  std::int32_t threads = 1;
  std::optional<std::int32_t> server;  // a process, whose CPU time is measured
  std::string samples;
  bool json = false;
};

Status WriteSamples(const std::string& path, const std::vector<LoadRow>& rows) {
  std::string text;
  for (const LoadRow& row : rows) {
    for (const std::uint64_t sample : row.result.samples) text += fmt::format("{}\n", sample);
  }
  return WriteFileAtomically(path, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

// The clients of a local program, each with some calls behind it.
Result<std::vector<std::unique_ptr<LoadClient>>> MakeClients(const BenchCommand& options,
                                                             std::string* function) {
  const Result<OpenedModel> model =
      OpenModelOrRemote(options.file, options.parameters, {}, options.model, options.kernels);
  if (!model) return Forward(model);
  LinkChoices choices;
  choices.kernels = options.kernels;
  choices.parameters = options.parameters;
  choices.threads = options.threads;
  choices.trust_device_code = options.trust_device_code;
  const Result<Program> program = LinkModel(*model, options.file, choices);
  if (!program) return Forward(program);
  LocalCall call;
  const Result<std::uint32_t> index = program->FindFunction(options.function);
  if (!index) return Forward(index, options.file);
  call.function = *index;
  const Module& module = program->executable().module();
  *function = module.functions[*index].name;
  Result<std::vector<Value>> inputs = MakeInputs(module, module.functions[*index], options.inputs);
  if (!inputs) return Forward(inputs);
  call.inputs = *std::move(inputs);
  call.deadline = options.deadline;
  return MakeLocalClients(*program, call, options.clients);
}

Result<int> Bench(BenchCommand options) {
  options.inputs.random = true;
  LoadPlan plan;
  plan.duration = plan.patience = options.duration;
  plan.seed = options.inputs.seed;
  plan.keep_samples = !options.samples.empty();
  plan.stop = [] { return InterruptCount() > 0; };

  std::string function;
  const Result<std::vector<std::unique_ptr<LoadClient>>> clients = MakeClients(options, &function);
  if (!clients) return Forward(clients);
  const CatchInterrupts caught;
  for (const std::unique_ptr<LoadClient>& client : *clients) {
    for (std::uint32_t i = 0; i < options.warmup && InterruptCount() == 0; ++i) {
      if (Status called = client->Call(); !called) return Forward(called);
    }
  }

  std::vector<double> rates = options.rates;
  if (rates.empty()) rates.push_back(0);
  std::vector<LoadRow> rows;
  std::uint64_t failed = 0, answered = 0;
  for (const double rate : rates) {
    if (InterruptCount() > 0) break;
    plan.rate = rate;
    const Result<std::chrono::nanoseconds> before = ProcessTime(options.server);
    if (!before) return Forward(before, "--server-pid");
    Result<LoadResult> result = RunLoad(plan, *clients);
    if (!result) return Forward(result);
    failed += result->failed;
    answered += result->failed + result->succeeded;
    const Result<std::chrono::nanoseconds> after = ProcessTime(options.server);
    if (!after) return Forward(after, "--server-pid");
    rows.push_back({*std::move(result), *after - *before});
  }
  if (!options.samples.empty()) {
    if (Status written = WriteSamples(options.samples, rows); !written) return Forward(written);
  }
  // An interrupted load prints its measurements, too.
  const bool interrupted = InterruptCount() > 0;
  const Status outcome =
      interrupted ? Fail(StatusCode::kCancelled, "interrupted after {} requests", answered) : Status();
  if (options.json) {
    nlohmann::ordered_json json = {
        {"file", options.file}, {"function", function}, {"clients", options.clients}};
    json["loads"] = nlohmann::ordered_json::array();
    for (const LoadRow& row : rows) json["loads"].push_back(LoadJson(row));
    if (interrupted) json["error"] = ErrorJson(outcome.error());
    PrintJson(json);
  } else if (!rows.empty()) {
    fmt::print("{}, {}: {} {}\n{}", options.file, function, options.clients,
               options.clients == 1 ? "client" : "clients", LoadText(rows));
  }
  if (interrupted) return Forward(outcome);
  return failed == 0 ? 0 : kExitNo;
}

void AddBenchOptions(CLI::App* app, BenchCommand* options) {
  const auto value = [app](const char* name, auto* to, const char* type, const char* help) {
    return app->add_option(name, *to, help)->type_name(type);
  };
  const auto list = [&value](const char* name, auto* to, const char* type, const char* help) {
    return value(name, to, type, help)->allow_extra_args(false);
  };
  value("FILE", &options->file, "",
        "the model: an executable (.rwx), text assembly (.asm), an ONNX model (.onnx), a model of TVM, or "
        "the URL "
        "of a model on a server")
      ->required();
  value("--model", &options->model, "NAME", "choose one model of a bundle");
  value("-f,--function", &options->function, "NAME",
        "run this function; default: main, or else the first function");
  app->add_flag("--json", options->json, "print one JSON object instead of text");
  const char* load = "Load";
  AddRead(app, "--rate", "N", "let N requests arrive each second, at random times",
          [options](const std::string& text) -> Status {
            const Result<double> rate = ParseRealNumber(text, 0.001, 1e7);
            if (!rate) return Forward(rate);
            options->rates.push_back(*rate);
            return {};
          })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(load);
  AddTime(app, "--duration", &options->duration, "let requests arrive for this long, such as 2s")
      ->default_str("10s")
      ->group(load);
  AddWholeNumber(app, "--clients", &options->clients, "N",
                 "let N requests run at a time, each on a thread of its own", 1, 1000)
      ->default_str(std::to_string(options->clients))
      ->group(load);
  AddWholeNumber(app, "--threads", &options->threads, "N", "let the kernels of all clients share N threads",
                 1, 4096)
      ->default_str(std::to_string(options->threads))
      ->group(load);
  AddWholeNumber(app, "--warmup", &options->warmup, "N",
                 "make N requests with each client before those that are measured")
      ->default_str(std::to_string(options->warmup))
      ->group(load);
  AddWholeNumber(app, "--server-pid", &options->server, "PID",
                 "show the CPU time of this process, such as the server of a URL, not of this tool", 1,
                 std::numeric_limits<std::int32_t>::max())
      ->group(load);
  AddTime(app, "--deadline", &options->deadline, "let a run fail that takes longer than this, such as 250ms")
      ->group(load);
  value("--samples", &options->samples, "FILE", "write every latency, a line each, in nanoseconds")
      ->group(load);
  const char* inputs = "Inputs";
  list("-i,--input", &options->inputs.inputs, "NAME=VALUE",
       "set an input, by name or by index; the others are random numbers")
      ->group(inputs);
  AddRandomOptions(app, &options->inputs, inputs);
  list("--params", &options->parameters, "FILE",
       "read parameters (weights) by name, from .safetensors, .rwx, .npz or TVM's files")
      ->group(inputs);
  list("--kernels", &options->kernels, "LIBRARY",
       "load a shared library of kernels; loading it runs its code")
      ->group(inputs);
  app->add_flag("--trust-device-code", options->trust_device_code, kTrustDeviceCodeHelp)->group(inputs);
}

}  // namespace
}  // namespace rewire::tools

int rewire::tools::VmBenchMain(int argc, char** argv) {
  CLI::App app(kBenchDescription, "vm-bench");
  BenchCommand options;
  AddBenchOptions(&app, &options);
  return Main(app, argc, argv, [&] { return Bench(options); });
}
