// SPDX-License-Identifier: Apache-2.0
//
// The client's end of one TCP connection, with TLS over it or without.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/status.h"
#include "rewire/serve/client/remote_url.h"
#include "rewire/serve/grpc/output_queue.h"
#include "rewire/serve/tls/tls_context.h"

namespace rewire::serve {

// How long a client waits for a server.
struct Patience {
  // Asked at least every few milliseconds; waiting ends with kCancelled when it answers other than 0. May be
  // null.
  int (*stopped)() = nullptr;
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// One thread at a time.
class ClientSocket {
 public:
  // Connects to a URL's server. `protocol` is the name by which ALPN knows what is spoken: "http/1.1" or
  // "h2". Errors: kNotFound if the host has no address. kIo if no server answers, or one end refuses the
  // other's certificate, with the reason. kUnsupported if the server speaks another protocol. Those of
  // waiting.
  static Result<ClientSocket> Connect(const RemoteUrl& url, const std::string& protocol,
                                      const Patience& patience);
  ClientSocket(ClientSocket&&) = default;
  ClientSocket& operator=(ClientSocket&&) = delete;
  ~ClientSocket() = default;

  // Sends what the system takes at once, and takes it out of the queue. Errors: kIo.
  Status Send(OutputQueue* queue);
  // Receives what has arrived into the parts, in order. Returns the number of bytes, 0 if none has. Errors:
  // kIo, also when the server has closed the connection.
  Result<std::size_t> Receive(const iovec* parts, int count);
  // Waits until bytes have arrived or, with `to_send`, until some can be sent. Errors: kCancelled;
  // kDeadlineExceeded.
  Status Wait(bool to_send, const Patience& patience);

 private:
  explicit ClientSocket(Descriptor file) : file_(std::move(file)) {}

  // Makes the connection one by TLS.
  Status Secure(const RemoteUrl& url, const std::string& protocol, const Patience& patience);

  Descriptor file_;
  std::unique_ptr<TlsStream> tls_;  // goes before the descriptor
};

}  // namespace rewire::serve
