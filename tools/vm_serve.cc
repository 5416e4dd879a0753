// SPDX-License-Identifier: Apache-2.0
//
// vm-serve: serves models to clients over the network.
#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/serve/core/forget_code.h"
#include "rewire/serve/core/token.h"
#include "rewire/serve/grpc/grpc_front_end.h"
#include "rewire/serve/http/http_front_end.h"
#include "rewire/serve/models/settings.h"
#include "rewire/serve/run/model_service.h"
#include "rewire/serve/server.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/log.h"
#include "rewire/tools/options/option_types.h"

namespace rewire::tools {
namespace {

constexpr const char kDescription[] =
    R"(Serves models by the Open Inference Protocol (v2) over HTTP.

  $ vm-serve model.onnx                                a model of ONNX or an executable, at 127.0.0.1:8000
  $ vm-serve models/                                   files of a folder, or Triton's layout: MODEL/VERSION/model.onnx
  $ vm-serve model.onnx --max-batch 32                 requests of several clients run together
  $ vm-serve --config serve.toml                       settings of the server and of each model
  $ curl -s localhost:8000/v2/models/model             names, types and shapes of inputs and outputs

SIGTERM ends the server when the requests that have arrived are answered. docs/serving.md says more.
)";

struct Options {
  std::vector<std::string> paths;
  std::string config;
  std::string http;
  std::string grpc;
  std::string token_file;
  std::string trace_file;
  std::string cache;
  std::vector<std::string> kernels;
  serve::TlsFiles tls;
  std::uint32_t loops = 0;
  std::uint32_t busy_poll_us = 0;
  std::uint32_t instances = 0;
  std::int32_t threads = 0;
  std::int64_t max_batch = 0;
  std::uint64_t batch_delay_us = 0;
  std::uint64_t max_body = std::uint64_t{1} << 30;
  std::uint32_t drain_seconds = 30;
  bool sandbox = false;
  bool let_clients_load = false;
};

// The command line counts more than the file of settings.
Result<serve::ServeSettings> Settings(const Options& options) {
  serve::ServeSettings settings;
  serve::ModelSettings& defaults = settings.defaults;
  if (!options.config.empty()) {
    if (Status read = serve::ReadSettings(options.config, &settings); !read) return Forward(read);
  }
  settings.paths.insert(settings.paths.end(), options.paths.begin(), options.paths.end());
  if (!options.http.empty()) settings.http = options.http;
  if (options.loops != 0) settings.loops = options.loops;
  if (options.busy_poll_us != 0) settings.busy_poll_us = options.busy_poll_us;
  if (options.instances != 0) defaults.instances = options.instances;
  if (options.threads != 0) defaults.threads = options.threads;
  if (options.max_batch != 0) defaults.batching.max_batch_size = options.max_batch;
  if (options.batch_delay_us != 0) defaults.batching.max_queue_delay_us = options.batch_delay_us;
  settings.let_clients_load |= options.let_clients_load;
  if (options.sandbox) {
    defaults.sandbox.enabled = true;
    for (auto& [name, model] : settings.models) model.sandbox.enabled = true;
  }
  for (const std::string& library : options.kernels) {
    const std::string file = serve::LibraryFile(".", library);
    defaults.kernels.push_back(file);
    for (auto& [name, model] : settings.models) model.kernels.push_back(file);
  }
  if (!options.trace_file.empty()) settings.trace_file = options.trace_file;
  if (!options.cache.empty()) settings.cache = options.cache;
  if (const char* const folder = std::getenv("REWIRE_MODEL_CACHE");
      settings.cache.empty() && folder != nullptr)
    settings.cache = folder;
  if (!options.tls.certificate.empty()) settings.tls.certificate = options.tls.certificate;
  if (!options.tls.key.empty()) settings.tls.key = options.tls.key;
  if (!options.tls.authorities.empty()) settings.tls.authorities = options.tls.authorities;
  return settings;
}

// The log of the options, at a level that clients may set.
class ClientsLog : public serve::ServerLog {
 public:
  serve::ServerLogLevel level() const override {
    const std::optional<LogLevel> level = CurrentLogLevel();
    if (!level) return serve::ServerLogLevel::kOff;
    switch (*level) {
      case LogLevel::kDebug:
        return serve::ServerLogLevel::kDebug;
      case LogLevel::kInfo:
        return serve::ServerLogLevel::kInfo;
      case LogLevel::kError:
        return serve::ServerLogLevel::kError;
    }
    return serve::ServerLogLevel::kOff;
  }
  void SetLevel(serve::ServerLogLevel level) override { SetLogLevel(LevelOf(level)); }
  void Write(serve::ServerLogLevel level, std::string_view text) override {
    if (const std::optional<LogLevel> of = LevelOf(level)) Log(*of, text);
  }

 private:
  static std::optional<LogLevel> LevelOf(serve::ServerLogLevel level) {
    switch (level) {
      case serve::ServerLogLevel::kOff:
        return std::nullopt;
      case serve::ServerLogLevel::kError:
        return LogLevel::kError;
      case serve::ServerLogLevel::kInfo:
        return LogLevel::kInfo;
      case serve::ServerLogLevel::kDebug:
        return LogLevel::kDebug;
    }
    return std::nullopt;
  }
};

// Returns when a signal asks the server to end.
void WaitForSignal(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
}

// The address with the port that it has got.
std::string Where(const std::string& address, int port) {
  return port == 0 ? address : address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

Result<int> Serve(const Options& options) {
  Result<serve::ServeSettings> settings = Settings(options);
  if (!settings) return Forward(settings);
  // Bodies and outputs of large tensors come and go: their pages stay with the process.
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  // All threads block them, and this one waits for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  std::shared_ptr<const serve::TlsContext> tls;
  if (!settings->tls.empty()) {
    Result<std::shared_ptr<const serve::TlsContext>> made =
        serve::TlsContext::ForServer(settings->tls, {"http/1.1", "h2"});
    if (!made) return Forward(made, "--tls-cert, --tls-key");
    tls = *std::move(made);
  }
  const std::string address = settings->http;
  const std::uint32_t loops = settings->loops;
  const std::chrono::microseconds busy_poll(settings->busy_poll_us);
  KeepLogOpen("vm-serve");
  ClientsLog log;
  Result<std::unique_ptr<serve::Service>> service =
      serve::MakeService(*std::move(settings), {ProgramLog(), {}, &log});
  if (!service) return Forward(service);
  // The memory goes that loading alone has needed. Many small models take no more than it does.
  malloc_trim(0);
  serve::ForgetCode();
  for (const serve::ModelIndexEntry& model : (*service)->Index(true)) {
    Detail(fmt::format("model {}, version {}: ready", model.name, model.version));
  }
  serve::FrontEndLimits limits;
  limits.body_bytes = options.max_body;
  if (!options.token_file.empty()) {
    Result<std::string> token = serve::ReadTokenFile(options.token_file);
    if (!token) return Forward(token, "--token-file");
    limits.token = *std::move(token);
  }
  serve::Server server(*std::move(service), loops, busy_poll);
  const Result<int> port = server.Add(serve::MakeHttpFrontEnd(server.service(), limits), address, tls);
  if (!port) return Forward(port, "--http");
  std::string served = fmt::format("serving HTTP at {}\n", Where(address, *port));
  // By TLS, clients of both protocols come to the port of HTTP.
  if (!options.grpc.empty() || tls != nullptr) {
    const Result<int> grpc = server.Add(serve::MakeGrpcFrontEnd(server.service(), limits), options.grpc, tls);
    if (!grpc) return Forward(grpc, "--grpc");
    if (!options.grpc.empty()) served += fmt::format("serving gRPC at {}\n", Where(options.grpc, *grpc));
  }
  if (Status started = server.Start(); !started) return Forward(started);
  Tell(served);
  std::fflush(stdout);  // whoever has started the server waits for this line
  WaitForSignal(signals);
  Detail("ending: requests that have arrived are answered first");
  const std::size_t open = server.Drain(std::chrono::seconds(options.drain_seconds));
  if (open == 0) return 0;
  Detail(fmt::format("{} connections were still open after {} seconds", open, options.drain_seconds));
  return kExitNo;
}

}  // namespace
}  // namespace rewire::tools

int main(int argc, char** argv) {
  using namespace rewire::tools;  // NOLINT(google-build-using-namespace)
  CLI::App app(kDescription, "vm-serve");
  Options options;
  app.add_option("PATH", options.paths, "models (.onnx, .rwx) and folders of models")->type_name("");
  app.add_option("--config", options.config, "read settings from this file (TOML)")->type_name("FILE");
  app.add_option("--http", options.http,
                 "serve HTTP here: ADDRESS:PORT or unix:PATH; 127.0.0.1:8000 otherwise")
      ->type_name("ADDRESS");
  app.add_option("--grpc", options.grpc, "serve gRPC here, too: ADDRESS:PORT or unix:PATH")
      ->type_name("ADDRESS");
  app.add_option("--token-file", options.token_file,
                 "serve clients that send the token in this file's first line, and no others")
      ->type_name("FILE");
  app.add_option("--trace-file", options.trace_file,
                 "let clients trace the times of requests into this file (JSON), which is written anew")
      ->type_name("FILE");
  app.add_option(
         "--cache", options.cache,
         "keep compiled models in this folder, so that each .onnx file is compiled once; otherwise the "
         "folder that REWIRE_MODEL_CACHE names, if it is set")
      ->type_name("FOLDER");
  app.add_option(
         "--kernels", options.kernels,
         "load a shared library of kernels for all models, with its operators in the .json beside it; "
         "loading it runs its code, with --sandbox in the processes of models alone")
      ->allow_extra_args(false)
      ->type_name("LIBRARY");
  app.add_option(
         "--tls-cert", options.tls.certificate,
         "serve by TLS alone, with the certificate in this file (PEM); gRPC then also at the port of HTTP")
      ->type_name("FILE");
  app.add_option("--tls-key", options.tls.key, "the key of --tls-cert (PEM)")->type_name("FILE");
  app.add_option(
         "--tls-client-ca", options.tls.authorities,
         "serve clients whose certificate one of the authorities in this file has signed, and no others")
      ->type_name("FILE");
  AddWholeNumber(&app, "--loops", &options.loops, "N",
                 "threads that serve connections; one per core otherwise", 1, 1024);
  AddWholeNumber(&app, "--busy-poll", &options.busy_poll_us, "US",
                 "microseconds that each of these threads looks for requests before it sleeps; 0 otherwise",
                 1, 1000000);
  AddWholeNumber(&app, "--instances", &options.instances, "N",
                 "runs of a model at once; one per core otherwise", 1, 1024);
  AddWholeNumber(&app, "--threads", &options.threads, "N", "threads of one run; 1 otherwise", 1, 1024);
  AddWholeNumber(&app, "--max-batch", &options.max_batch, "N", "put requests together, up to this many rows",
                 1, 1 << 20);
  AddWholeNumber(&app, "--batch-delay", &options.batch_delay_us, "US",
                 "microseconds that a request may wait for others while the model is idle; 0 otherwise");
  AddSize(&app, "--max-body", &options.max_body, "bytes that a request may have; 1G otherwise");
  AddWholeNumber(&app, "--drain", &options.drain_seconds, "SECONDS",
                 "seconds for open requests when the server ends; 30 otherwise");
  app.add_flag("--sandbox", options.sandbox, "run each model in processes that can only compute");
  app.add_flag("--let-clients-load", options.let_clients_load, "clients may load and unload models");
  return Main(app, argc, argv, [&] { return Serve(options); });
}
