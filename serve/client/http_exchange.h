// SPDX-License-Identifier: Apache-2.0
//
// HttpExchange: requests and responses of HTTP/1.1 over one connection, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/client/client_socket.h"

namespace rewire::serve {

struct HttpResponse {
  int status = 0;
  std::uint64_t bytes = 0;                  // of the body
  std::optional<std::uint64_t> json_bytes;  // Inference-Header-Content-Length
};

class HttpExchange {
 public:
  // An empty token is not sent.
  HttpExchange(ClientSocket socket, std::string authority, std::string token)
      : socket_(std::move(socket)), authority_(std::move(authority)), token_(std::move(token)) {}

  // Sends a request and receives the head of its response. `tensors` stand in the body behind `json`; if
  // there are any, the head says how long the JSON is.
  Result<HttpResponse> Send(std::string_view method, std::string_view path, std::string_view json,
                            const std::vector<Span<const std::byte>>& tensors, const Patience& patience);
  // Receives the next bytes of the body.
  Status Read(Span<std::byte> to, const Patience& patience);
  // How much of the body has not been received.
  std::uint64_t left() const { return left_; }
  // Whether another request can be sent: the last response has been received, and the server keeps the
  // connection.
  bool usable() const { return usable_ && left_ == 0; }
  bool nothing_arrived() const { return nothing_arrived_; }

 private:
  Status SendAll(OutputQueue* queue, const Patience& patience);
  Status ReadHead(HttpResponse* response, const Patience& patience);

  ClientSocket socket_;
  std::string authority_, token_;
  std::string received_;  // and not yet read
  std::uint64_t left_ = 0;
  bool usable_ = true, keeps_ = true, nothing_arrived_ = true;
};

}  // namespace rewire::serve
