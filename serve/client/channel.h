// SPDX-License-Identifier: Apache-2.0
//
// Channel: one connection to a server, and the calls that a client makes over it. There is one class for each
// protocol.
//
//   Begin ─▶ the request is sent, and the shapes of the outputs have arrived
//   Receive ─▶ the bytes of each output are received into its place
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/client/client_socket.h"
#include "rewire/serve/client/remote_url.h"

namespace rewire::serve {

// An input or an output, as the server describes it.
struct RemoteTensor {
  std::string name;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;  // -1: any size
  // Names of its dimensions (core/dim_names.h); empty if the server does not tell them.
  std::string dims;
};

struct RemoteSignature {
  std::vector<RemoteTensor> inputs, outputs;
};

// A part of the client's memory that the server has registered.
struct RegionPlace {
  std::string_view region;  // empty: none
  std::uint64_t offset = 0;
};

struct SentTensor {
  const RemoteTensor* tensor = nullptr;
  Span<const std::int64_t> shape;
  Span<const std::byte> bytes;
  RegionPlace place;  // the server reads the bytes there, and they are not sent
};

struct WantedTensor {
  const RemoteTensor* tensor = nullptr;
  bool is_known = false;  // shape and bytes are
  Span<const std::int64_t> shape;
  std::uint64_t bytes = 0;
  RegionPlace place;  // the server writes the bytes there
};

struct InferCall {
  std::vector<SentTensor> inputs;
  std::vector<WantedTensor> outputs;
};

// The head of an output that has arrived.
struct AnsweredTensor {
  std::string name;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;  // that follow; 0 for one in a region
  bool in_region = false;
};

class Channel {
 public:
  virtual ~Channel() = default;

  // Errors of all calls: what the server answers, with its message; kIo if the connection fails; those of
  // waiting. kUnsupported for an answer in a form that this client does not read.
  virtual Result<RemoteSignature> Describe(const Patience& patience) = 0;
  // `call` and what it refers to must stay until Begin returns.
  virtual Status Begin(const InferCall& call, std::vector<AnsweredTensor>* outputs,
                       const Patience& patience) = 0;
  // One place for each output that Begin has told, with its number of bytes.
  virtual Status Receive(const std::vector<Span<std::byte>>& places, const Patience& patience) = 0;
  virtual Status RegisterRegion(const std::string& name, const std::string& key, std::uint64_t bytes,
                                const Patience& patience) = 0;
  virtual Status UnregisterRegion(const std::string& name, const Patience& patience) = 0;

  // Whether the connection can take a call. It cannot after a failure of the connection, and while an answer
  // has not been received.
  virtual bool usable() const = 0;
  // Whether the last call has failed before anything of its answer arrived. If the connection had been used
  // before, the server has probably closed it meanwhile, and the call may be made again over another one.
  virtual bool nothing_arrived() const = 0;
};

Result<std::unique_ptr<Channel>> OpenChannel(const RemoteUrl& url, const Patience& patience);

}  // namespace rewire::serve
