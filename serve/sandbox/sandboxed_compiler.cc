// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/sandbox/sandboxed_compiler.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/serve/sandbox/worker_process.h"

namespace rewire::serve {

Result<Descriptor> CompileSandboxed(const Descriptor& model, const std::string& name,
                                    const std::vector<std::string>& kernels,
                                    const SandboxSettings& settings) {
  Result<std::string> program = FindSandboxProgram(kSandboxCompiler);
  if (!program) return Forward(program);
  std::vector<std::string> arguments = {std::to_string(settings.memory_bytes), name};
  arguments.insert(arguments.end(), kernels.begin(), kernels.end());
  const Result<std::unique_ptr<WorkerProcess>> started =
      WorkerProcess::Start({*std::move(program), std::move(arguments), {model.get()}, settings});
  if (!started) return Forward(started);
  WorkerProcess* const process = started->get();
  Patience patience;
  patience.until = std::chrono::steady_clock::now() + kSandboxLoadTime;
  Result<std::string_view> answer = process->Ask({}, patience);
  if (!answer) return Forward(answer);
  const Result<std::uint64_t> bytes = DecodeCompiled(*answer);
  if (!bytes) return Forward(bytes);
  // The process has no memory for more.
  if (*bytes > settings.memory_bytes)
    return Fail(StatusCode::kInvalidFile, "the sandbox says that it has compiled {} bytes", *bytes);
  if (Status sized = process->Resize(*bytes); !sized) return Forward(sized);
  answer = process->Ask(EncodeFetch({*bytes, {}}), patience);
  if (!answer) return Forward(answer);
  if (const auto done = DecodeDone(*answer); !done) return Forward(done);
  return process->TakeMemory();
}

}  // namespace rewire::serve
