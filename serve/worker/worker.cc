// SPDX-License-Identifier: Apache-2.0
// rewire-sandbox: a process that runs one untrusted executable for a server (sandbox_message.h). The server
// starts it with these descriptors: a socket, the memory of tensors, the executable, and so many files of
// parameters.
//
//   rewire-sandbox MEMORY_BYTES THREADS BYTES STEPS DEPTH FILES [LIBRARY]...
//
// BYTES to DEPTH are limits of a run. The libraries are those of the host's kernels.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/shared_bytes.h"
#include "rewire/executable_format/executable.h"
#include "rewire/serve/models/signature.h"
#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/serve/worker/lock_down.h"
#include "rewire/serve/worker/sandboxed_process.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/thread_pool.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kAlignment = 64;

// An output whose size the server does not know.
struct OwnOutput {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory;

  static void* Allocate(void* context, std::uint64_t bytes, std::uint64_t) {
    const std::uint64_t rounded =
        (std::max<std::uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    auto* const self = static_cast<OwnOutput*>(context);
    self->memory.reset(std::aligned_alloc(kAlignment, static_cast<std::size_t>(rounded)));
    return self->memory.get();
  }
};

class Worker {
 public:
  Worker(Program program, ModelSignature signature, const Limits& limits)
      : signature_(std::move(signature)), vm_(std::move(program), limits) {}

  // Answers one message of the server, which is trusted.
  Status Answer(std::string_view message) {
    if (KindOf(message) == SandboxKind::kFetch) return Fetch(message);
    const Result<SandboxRun> run = DecodeRun(message);
    if (!run) return Forward(run);
    Status done = Run(*run);
    [[maybe_unused]] const Status inputs = vm_.TryClearInputs(), outputs = vm_.TryClearOutputs();
    if (!done) return done;
    SendToServer(EncodeDone(results_));
    return {};
  }

 private:
  Status Run(const SandboxRun& run) {
    if (Status mapped = memory_.MapUpTo(run.memory_bytes); !mapped) return mapped;
    for (std::size_t i = 0; i < signature_.inputs.size(); ++i) {
      const SandboxTensor& given = run.inputs[i];
      const void* const data = memory_.at(given.offset);
      const TensorView view(data, signature_.inputs[i].dtype, given.shape);
      if (Status set = vm_.TrySetInput(signature_.inputs[i].handle, view); !set) return set;
    }
    own_.clear();
    own_.resize(signature_.outputs.size());
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const SandboxTensor& wanted = run.outputs[i];
      const ModelOutput& output = signature_.outputs[i];
      Status set;
      if (wanted.offset == kNotPlaced) {
        set = vm_.TrySetOutput(output.handle, OutputAllocator{&own_[i], &OwnOutput::Allocate});
      } else {
        void* const data = memory_.at(wanted.offset);
        set = vm_.TrySetOutput(output.handle, TensorView(data, output.dtype, wanted.shape));
      }
      if (!set) return set;
    }
    if (Status invoked = vm_.TryInvoke(signature_.function); !invoked) return invoked;
    results_ = run.outputs;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].offset != kNotPlaced) continue;
      Result<std::vector<std::int64_t>> shape = vm_.TryOutputShape(signature_.outputs[i].handle);
      if (!shape) return Forward(shape);
      results_[i].shape = *std::move(shape);
      results_[i].bytes =
          *TensorBytes(signature_.outputs[i].dtype, {results_[i].shape.data(), results_[i].shape.size()});
    }
    return {};
  }

  Status Fetch(std::string_view message) {
    const Result<SandboxFetch> fetch = DecodeFetch(message);
    if (!fetch) return Forward(fetch);
    if (Status mapped = memory_.MapUpTo(fetch->memory_bytes); !mapped) return mapped;
    for (std::size_t i = 0; i < fetch->offsets.size(); ++i) {
      if (fetch->offsets[i] == kNotPlaced || results_[i].bytes == 0) continue;
      std::memcpy(memory_.at(fetch->offsets[i]), own_[i].memory.get(), results_[i].bytes);
    }
    SendToServer(EncodeDone({}));
    return {};
  }

  const ModelSignature signature_;
  VirtualMachine vm_;
  SharedMemory memory_;
  std::vector<OwnOutput> own_;
  std::vector<SandboxTensor> results_;
};

// The stock kernels that run untrusted executables, and those of the host, which trusts them. They are opened
// here, because nothing can be opened later.
Result<KernelSet> OpenKernels(const std::vector<std::string>& libraries) {
  KernelSet kernels;
  if (Status opened = kernels.AddLibrary("librewire_kernels_cpu.so"); !opened) return Forward(opened);
  for (const char* const other : {"librewire_kernels_re2.so", "librewire_kernels_image.so"})
    [[maybe_unused]] const Status opened = kernels.AddLibrary(other);  // an import that needs it says so
  for (const std::string& library : libraries) {
    if (Status opened = kernels.AddLibrary(library); !opened) return Forward(opened);
  }
  return kernels;
}

std::vector<RemoteTensor> Descriptions(const std::vector<TensorDescription>& tensors) {
  std::vector<RemoteTensor> list;
  for (const TensorDescription& tensor : tensors)
    list.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.dims});
  return list;
}

// The sizes of the executable and of the files of parameters.
Result<std::vector<std::size_t>> FileSizes(std::uint64_t parameters) {
  std::vector<std::size_t> sizes;
  for (int file = kSandboxFiles; sizes.size() <= parameters; ++file) {
    const Result<std::size_t> size = FileBytes(file, sizes.empty() ? "file" : "file of parameters");
    if (!size) return Forward(size);
    sizes.push_back(*size);
  }
  return sizes;
}

Status ReadParameters(const std::vector<std::size_t>& sizes, LinkOptions* link) {
  // A file of parameters may be that of several models.
  link->ignore_extra_parameters = true;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const Result<SharedBytes> bytes = MapSandboxFile(kSandboxFiles + static_cast<int>(i), sizes[i]);
    if (!bytes) return Forward(bytes);
    Result<ParameterSet> set = ParameterSet::FromBytes(*bytes);
    // The process does not know the file's name.
    if (!set) return Forward(set, "file " + std::to_string(i) + " of 'parameters'");
    link->parameters.push_back(*std::move(set));
  }
  return {};
}

Result<std::unique_ptr<Worker>> MakeWorker(char** arguments, const std::vector<std::string>& libraries) {
  Result<KernelSet> kernels = OpenKernels(libraries);
  if (!kernels) return Forward(kernels);
  LinkOptions link;
  link.kernels = *std::move(kernels);
  link.stock_kernels = false;
  link.stock_devices = false;
  link.threads = ThreadPool::Make(static_cast<std::int32_t>(NumberOf(arguments[2])));
  const Result<std::vector<std::size_t>> sizes = FileSizes(NumberOf(arguments[6]));
  if (!sizes) return Forward(sizes);
  if (Status locked = LockDown({NumberOf(arguments[1])}); !locked) return Forward(locked, "the sandbox");
  const Result<SharedBytes> bytes = MapSandboxFile(kSandboxFiles, sizes->front());
  if (!bytes) return Forward(bytes);
  const Result<Executable> executable = Executable::FromBytes(*bytes);
  if (!executable) return Forward(executable);
  if (Status read = ReadParameters(*sizes, &link); !read) return Forward(read);
  Result<Program> program = Program::Link(*executable, std::move(link));
  if (!program) return Forward(program);
  Result<ModelSignature> signature = ReadSignature(*program);
  if (!signature) return Forward(signature);
  const std::string ready =
      EncodeReady({Descriptions(DescribeInputs(*signature)), Descriptions(DescribeOutputs(*signature))});
  if (ready.size() > kMostMessageBytes)
    return Fail(StatusCode::kUnsupported, "the model has too many inputs and outputs for a sandbox");
  Limits limits;
  limits.bytes = NumberOf(arguments[3]);
  limits.steps = NumberOf(arguments[4]);
  limits.depth = static_cast<std::uint32_t>(NumberOf(arguments[5]));
  auto worker = std::make_unique<Worker>(*std::move(program), *std::move(signature), limits);
  SendToServer(ready);
  return worker;
}

}  // namespace
}  // namespace rewire::serve

int main(int argc, char** argv) {
  using namespace rewire::serve;  // NOLINT(google-build-using-namespace)
  if (argc < 7) return 2;
  const auto first_other =
      static_cast<unsigned>(kSandboxFiles) + 1 + static_cast<unsigned>(NumberOf(argv[6]));
  if (close_range(first_other, ~0U, 0) != 0) return 2;
  const rewire::Result<std::unique_ptr<Worker>> worker = MakeWorker(argv, {argv + 7, argv + argc});
  if (!worker) SendToServer(EncodeFailed(worker.error()));
  while (worker) {
    const std::string_view message = NextMessage();
    if (message.empty()) break;
    if (const rewire::Status done = (*worker)->Answer(message); !done)
      SendToServer(EncodeFailed(done.error()));
  }
  _exit(0);  // what runs at the end of a program needs system calls that are taken away
}
