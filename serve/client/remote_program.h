// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/serve/client/remote_program.h>.
//
// RemoteProgram: a model on a server of the Open Inference Protocol v2 (vm-serve, Triton, KServe), used as a
// program of this process.
//
//   auto remote = rewire::RemoteProgram::Connect("grpc://localhost:8001/model");
//   rewire::VirtualMachine vm(remote.program());
//   vm.SetInput("image", rewire::TensorView(pixels, {1, 3, 224, 224}));
//   vm.SetOutput("scores", rewire::TensorView(scores, {1, 1000}));  // received there
//   vm.Invoke("main");
//
// `program` is a Program like any other: an executable with the model's inputs and outputs, whose only kernel
// asks the server. All of Program and VirtualMachine works with it: bound outputs, limits, deadlines,
// cancelling, observers. A run that is cancelled or late closes its connection, so the server ends it, too.
//
// Outputs are received into the memory that they are bound to, without a copy between. Only bytes that arrive
// together with the head of an answer or of a frame are copied.
//
// Threads: many VMs may use one RemoteProgram at once. Each has a connection of its own, which it opens when
// it first runs. Errors of the server, and of the connection, are those of the kernel (kKernelFailed). The
// message has the URL and the server's own words.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/program.h"
#include "rewire/vm/tensor.h"

namespace rewire {

namespace serve {
class ClientRegions;
}

struct RemoteOptions {
  // For connecting, and for asking the server what the model's inputs and outputs are.
  std::chrono::nanoseconds connect_time = std::chrono::seconds(10);
  // `kernels` and `parameters` are of no use: the model is the server's. The allocator counts unless memory
  // is shared with the server.
  LinkOptions link;
};

class REWIRE_API RemoteProgram {
 public:
  // `url` is grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL, with /VERSION behind it for one version. In a
  // model's name, %XX stands for a byte. With grpcs:// and https://, the connection is by TLS
  // (docs/serving.md says by which certificates).
  //
  // With `?shared_memory` at its end, server and client are on one machine, and all memory of the VMs is
  // shared between them. The server's kernel writes an output that is not bound where the client reads it.
  // TryMakeTensor makes such memory for inputs and bound outputs. Other memory is sent and received.
  //
  // Errors: kInvalidArgument for another URL; kNotFound if there is no such host or model; kIo if the server
  // does not answer; kDeadlineExceeded after `connect_time`. kUnsupported for a server, or for a model, of
  // which no program can be made.
  static Result<RemoteProgram> TryConnect(const std::string& url, RemoteOptions options = {});
#if defined(__cpp_exceptions)
  // The same; throws Error.
  static RemoteProgram Connect(const std::string& url, RemoteOptions options = {}) {
    Result<RemoteProgram> remote = TryConnect(url, std::move(options));
    if (!remote) throw Error(remote.error());
    return *std::move(remote);
  }
#endif

  const Program& program() const { return program_; }

  // Makes a tensor in memory that is shared with the server: contiguous, uninitialized, from 4096 bytes on;
  // smaller ones are sent. It may outlive this object. Errors: kInvalidArgument without `?shared_memory`;
  // kOutOfMemory.
  Result<Tensor> TryMakeTensor(DLDataType dtype, Span<const std::int64_t> shape) const;

 private:
  RemoteProgram(Program program, std::shared_ptr<serve::ClientRegions> regions)
      : program_(std::move(program)), regions_(std::move(regions)) {}

  Program program_;
  std::shared_ptr<serve::ClientRegions> regions_;
};

}  // namespace rewire
