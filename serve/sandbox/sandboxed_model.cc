// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/sandbox/sandboxed_model.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/executable_format/types.h"
#include "rewire/serve/client/remote_call.h"
#include "rewire/serve/client/remote_module.h"
#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/serve/sandbox/sandboxed_compiler.h"
#include "rewire/serve/sandbox/worker_process.h"

namespace rewire::serve {
namespace {

constexpr std::uint64_t kAlignment = 64;

std::uint64_t Aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The connection of a VM with its process.
class SandboxChannel final : public Channel {
 public:
  SandboxChannel(std::unique_ptr<WorkerProcess> process, RemoteSignature signature, std::uint64_t most_bytes)
      : process_(std::move(process)), signature_(std::move(signature)), most_bytes_(most_bytes) {}

  Result<RemoteSignature> Describe(const Patience&) override { return signature_; }

  // Inputs lie behind each other in the shared memory, and then the outputs whose size is known.
  Status Begin(const InferCall& call, std::vector<AnsweredTensor>* outputs,
               const Patience& patience) override {
    SandboxRun run;
    std::uint64_t used = 0;
    const auto place = [&](std::uint64_t bytes) { return std::exchange(used, used + Aligned(bytes)); };
    for (const SentTensor& input : call.inputs)
      run.inputs.push_back(
          {{input.shape.begin(), input.shape.end()}, place(input.bytes.size()), input.bytes.size()});
    for (const WantedTensor& output : call.outputs) {
      SandboxTensor& wanted = run.outputs.emplace_back();
      if (!output.is_known) continue;
      wanted = {{output.shape.begin(), output.shape.end()}, place(output.bytes), output.bytes};
    }
    if (Status reserved = process_->Reserve(std::max<std::uint64_t>(used, 1)); !reserved) return reserved;
    run.memory_bytes = process_->memory_bytes();
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Span<const std::byte> bytes = call.inputs[i].bytes;
      if (!bytes.empty()) std::memcpy(process_->memory() + run.inputs[i].offset, bytes.data(), bytes.size());
    }
    const Result<std::string_view> answer = process_->Ask(EncodeRun(run), patience);
    if (!answer) return Forward(answer);
    Result<std::vector<SandboxTensor>> done = DecodeDone(*answer);
    if (!done) return Forward(done);
    if (done->size() != run.outputs.size())
      return Fail(StatusCode::kInvalidFile, "the sandbox has answered with another number of outputs");
    wanted_ = std::move(run.outputs);
    std::uint64_t told = 0;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      SandboxTensor& given = (*done)[i];
      if (wanted_[i].offset == kNotPlaced) {
        // The process has no memory for more, and this one would take it in vain.
        if (given.bytes > most_bytes_ - told)
          return Fail(StatusCode::kInvalidFile, "the sandbox says that it has {} bytes of output '{}'",
                      given.bytes, signature_.outputs[i].name);
        told += given.bytes;
        wanted_[i].bytes = given.bytes;
      }
      outputs->push_back({signature_.outputs[i].name, signature_.outputs[i].dtype, std::move(given.shape),
                          wanted_[i].bytes, false});
    }
    return {};
  }

  Status Receive(const std::vector<Span<std::byte>>& places, const Patience& patience) override {
    if (Status fetched = Fetch(patience); !fetched) return fetched;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!places[i].empty())
        std::memcpy(places[i].data(), process_->memory() + wanted_[i].offset, places[i].size());
    }
    return {};
  }

  Status RegisterRegion(const std::string&, const std::string&, std::uint64_t, const Patience&) override {
    return Fail(StatusCode::kUnsupported, "a sandbox has no regions");
  }
  Status UnregisterRegion(const std::string&, const Patience&) override { return {}; }

  bool usable() const override { return process_->is_idle(); }
  // A process that ends has got the request, which may be the reason.
  bool nothing_arrived() const override { return false; }

 private:
  // Lets the process copy the outputs whose size is known only now.
  Status Fetch(const Patience& patience) {
    SandboxFetch fetch;
    std::uint64_t used = 0;
    bool any = false;
    for (SandboxTensor& output : wanted_) {
      fetch.offsets.push_back(kNotPlaced);
      if (output.offset != kNotPlaced) {
        used = std::max(used, output.offset + Aligned(output.bytes));
      } else {
        any = true;
      }
    }
    if (!any) return {};
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      SandboxTensor& output = wanted_[i];
      if (output.offset != kNotPlaced) continue;
      output.offset = fetch.offsets[i] = std::exchange(used, used + Aligned(output.bytes));
    }
    if (Status reserved = process_->Reserve(std::max<std::uint64_t>(used, 1)); !reserved) return reserved;
    fetch.memory_bytes = process_->memory_bytes();
    const Result<std::string_view> answer = process_->Ask(EncodeFetch(fetch), patience);
    if (!answer) return Forward(answer);
    const Result<std::vector<SandboxTensor>> done = DecodeDone(*answer);
    return done ? Status() : Forward(done);
  }

  std::unique_ptr<WorkerProcess> process_;
  const RemoteSignature signature_;
  const std::uint64_t most_bytes_;  // of outputs whose size the process tells
  std::vector<SandboxTensor> wanted_;
};

// Starts processes for one executable, whose files it keeps open.
class Starter {
 public:
  Starter(WorkerStart start, std::vector<Descriptor> files)
      : start_(std::move(start)), files_(std::move(files)) {
    for (const Descriptor& file : files_) start_.files.push_back(file.get());
  }

  // A process that has loaded the executable: the one that has been kept, or a new one.
  Result<std::unique_ptr<Channel>> Open(const Patience& patience) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (kept_ != nullptr) return std::move(kept_);
    }
    Patience how_long = patience;
    how_long.until = std::min(how_long.until, std::chrono::steady_clock::now() + kSandboxLoadTime);
    Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(start_);
    if (!process) return Forward(process);
    const Result<std::string_view> ready = (*process)->Ask({}, how_long);
    if (!ready) return Forward(ready);
    Result<RemoteSignature> signature = DecodeReady(*ready);
    if (!signature) return Forward(signature);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (described_.empty()) described_ = *ready;
      if (described_ != *ready)
        return Fail(StatusCode::kInvalidFile, "the executable has changed since it was loaded");
    }
    return std::unique_ptr<Channel>(std::make_unique<SandboxChannel>(
        *std::move(process), *std::move(signature), start_.settings.memory_bytes));
  }
  void Keep(std::unique_ptr<Channel> channel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_ = std::move(channel);
  }

 private:
  WorkerStart start_;
  const std::vector<Descriptor> files_;
  std::mutex mutex_;
  std::unique_ptr<Channel> kept_;
  std::string described_;  // what the first process has said of inputs and outputs
};

Result<Descriptor> OpenFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.is_open()) return file;
  return Fail(errno == ENOENT ? StatusCode::kNotFound : StatusCode::kIo, "cannot open '{}': {}", path,
              std::generic_category().message(errno));
}

// The executable, and files of parameters.
Result<std::vector<Descriptor>> OpenFiles(const std::string& path, const SandboxStart& start) {
  std::vector<Descriptor> files;
  Result<Descriptor> model = OpenFile(path);
  if (!model) return Forward(model);
  if (start.is_onnx) {
    Result<Descriptor> compiled =
        CompileSandboxed(*model, path.substr(path.rfind('/') + 1), start.kernels, start.settings);
    if (!compiled) return Forward(compiled);
    model = std::move(compiled);
  }
  files.push_back(*std::move(model));
  for (const std::string& parameters : start.parameters) {
    Result<Descriptor> file = OpenFile(parameters);
    if (!file) return Forward(file);
    files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace

Result<SandboxedModel> OpenSandboxed(const std::string& path, const SandboxStart& start) {
  Result<std::string> program = FindSandboxProgram(kSandboxWorker);
  if (!program) return Forward(program);
  Result<std::vector<Descriptor>> files = OpenFiles(path, start);
  if (!files) return Forward(files);
  WorkerStart worker{*std::move(program), {}, {}, start.settings};
  for (const std::uint64_t number :
       {start.settings.memory_bytes, static_cast<std::uint64_t>(std::max(start.threads, 1)),
        start.limits.bytes, start.limits.steps, static_cast<std::uint64_t>(start.limits.depth),
        static_cast<std::uint64_t>(start.parameters.size())})
    worker.arguments.push_back(std::to_string(number));
  worker.arguments.insert(worker.arguments.end(), start.kernels.begin(), start.kernels.end());
  const auto starter = std::make_shared<Starter>(std::move(worker), *std::move(files));
  RemoteCall call;
  call.text = "sandbox of '" + path + "'";
  call.open = [starter](const Patience& patience) { return starter->Open(patience); };
  Result<std::unique_ptr<Channel>> first = call.open({});
  if (!first) return Forward(first);
  call.signature = *(*first)->Describe({});
  starter->Keep(*std::move(first));
  Result<RemoteModule> made = MakeRemoteModule(call.signature);
  if (!made) return Forward(made);
  call.derived = made->derived;
  Result<Executable> executable = Executable::FromModule(std::move(made->module));
  if (!executable) return Forward(executable);
  SandboxedModel sandboxed{*std::move(executable), {}};
  sandboxed.kernels.AddFunction(kRemoteKernel,
                                MakeRemoteFunction(std::make_shared<const RemoteCall>(std::move(call))));
  return sandboxed;
}

}  // namespace rewire::serve
