// SPDX-License-Identifier: Apache-2.0
// rewire-sandbox-compiler: a process that compiles one untrusted model of ONNX for a server
// (sandbox_message.h). The server starts it with three descriptors: a socket, the memory that the executable
// is to be in, and the model.
//
//   rewire-sandbox-compiler MEMORY_BYTES NAME [LIBRARY]...      the model's name in messages, and kernels
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/library_operators.h"
#include "rewire/compiler/opened_kernels.h"
#include "rewire/serve/models/unsupported_nodes.h"
#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/serve/worker/lock_down.h"
#include "rewire/serve/worker/sandboxed_process.h"

namespace rewire::serve {
namespace {

// `libraries` are trusted.
Result<std::vector<std::byte>> CompileModel(char** arguments, const std::vector<std::string>& libraries) {
  // Nothing can be opened later.
  const std::shared_ptr<const void> kernels = OpenStockKernels();
  Result<std::vector<OperatorSchema>> operators = ReadLibraryOperators(libraries);
  if (!operators) return Forward(operators);
  const Result<std::size_t> size = FileBytes(kSandboxFiles, "model");
  if (!size) return Forward(size);
  if (Status locked = LockDown({NumberOf(arguments[1])}); !locked) return Forward(locked, "the sandbox");
  const Result<SharedBytes> model = MapSandboxFile(kSandboxFiles, *size);
  if (!model) return Forward(model);
  CompileOptions options;
  options.bound_memory = false;
  options.compress = false;
  options.operators = *std::move(operators);
  std::vector<UnsupportedNode> unsupported;
  const Result<Compilation> compiled = CompileBytes(model->view, "", arguments[2], options, &unsupported);
  if (!compiled) return Fail(compiled.error().code(), "{}", WithNodes(compiled.error(), unsupported));
  return SerializeExecutable(compiled->executable);
}

Status CopyTo(const SandboxFetch& place, const std::vector<std::byte>& executable) {
  SharedMemory memory;
  if (Status mapped = memory.MapUpTo(place.memory_bytes); !mapped) return mapped;
  std::memcpy(memory.at(0), executable.data(), executable.size());
  return {};
}

Status Serve(char** arguments, const std::vector<std::string>& libraries) {
  const Result<std::vector<std::byte>> executable = CompileModel(arguments, libraries);
  if (!executable) return Forward(executable);
  SendToServer(EncodeCompiled(executable->size()));
  const std::string_view message = NextMessage();
  if (message.empty()) return {};
  const Result<SandboxFetch> fetch = DecodeFetch(message);
  if (!fetch) return Forward(fetch);
  if (Status copied = CopyTo(*fetch, *executable); !copied) return copied;
  SendToServer(EncodeDone({}));
  return {};
}

}  // namespace
}  // namespace rewire::serve

int main(int argc, char** argv) {
  using namespace rewire::serve;  // NOLINT(google-build-using-namespace)
  if (argc < 3 || close_range(kSandboxFiles + 1, ~0U, 0) != 0) return 2;
  if (const rewire::Status served = Serve(argv, {argv + 3, argv + argc}); !served)
    SendToServer(EncodeFailed(served.error()));
  _exit(0);  // what runs at the end of a program needs system calls that are taken away
}
