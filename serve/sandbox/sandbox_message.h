// SPDX-License-Identifier: Apache-2.0
//
// The messages of a server and a sandboxed process, over a pair of sockets that keeps the borders of
// messages. Tensors are in memory that both map, and messages say where.
//
// A worker runs an executable.
//   worker: kReady, or kFailed
//   server: kRun, then worker: kDone, or kFailed
//   server: kFetch for results whose size it did not know, then worker: kDone, or kFailed
//
// A compiler makes one of a model, in the shared memory.
//   compiler: kCompiled, or kFailed
//   server: kFetch without offsets, when the memory has room, then compiler: kDone, or kFailed
//
// The server trusts nothing that they say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/client/channel.h"

namespace rewire::serve {

// Descriptors of the process. From kSandboxFiles on, a worker has its executable and then the files of
// parameters, and a compiler has its model.
inline constexpr int kSandboxSocket = 3;
inline constexpr int kSandboxMemory = 4;
inline constexpr int kSandboxFiles = 5;
inline constexpr char kSandboxWorker[] = "rewire-sandbox";
inline constexpr char kSandboxCompiler[] = "rewire-sandbox-compiler";

inline constexpr std::size_t kMostMessageBytes = 128 << 10;
inline constexpr std::uint64_t kNotPlaced = ~std::uint64_t{0};

// SandboxTensor: a tensor in the shared memory.
struct SandboxTensor {
  std::vector<std::int64_t> shape;
  std::uint64_t offset = kNotPlaced;  // of an output: kNotPlaced if the server does not know its size
  std::uint64_t bytes = 0;
};

struct SandboxRun {
  std::uint64_t memory_bytes = 0;  // of the shared memory, which may have grown
  std::vector<SandboxTensor> inputs;
  std::vector<SandboxTensor> outputs;  // those without a place have no shape
};

struct SandboxFetch {
  std::uint64_t memory_bytes = 0;
  std::vector<std::uint64_t> offsets;  // for each output; kNotPlaced: it is not wanted
};

enum class SandboxKind : std::uint8_t { kReady, kFailed, kRun, kDone, kFetch, kCompiled };

std::string EncodeReady(const RemoteSignature& signature);
std::string EncodeFailed(const Error& error);
std::string EncodeRun(const SandboxRun& run);
// The outputs with their shapes and sizes.
std::string EncodeDone(const std::vector<SandboxTensor>& outputs);
std::string EncodeFetch(const SandboxFetch& fetch);
// The size of the executable.
std::string EncodeCompiled(std::uint64_t bytes);

// Errors of all: kInvalidFile for a damaged message, and for one of another kind. The error of kFailed
// itself.
Result<RemoteSignature> DecodeReady(std::string_view message);
Result<SandboxRun> DecodeRun(std::string_view message);
Result<std::vector<SandboxTensor>> DecodeDone(std::string_view message);
Result<SandboxFetch> DecodeFetch(std::string_view message);
Result<std::uint64_t> DecodeCompiled(std::string_view message);
// The kind of a message; kFailed for an empty one.
SandboxKind KindOf(std::string_view message);

}  // namespace rewire::serve
