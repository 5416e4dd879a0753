// SPDX-License-Identifier: Apache-2.0
//
// GrpcExchange: calls of gRPC over one connection of HTTP/2, one after the other. nghttp2 reads and writes
// the frames.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/client/client_socket.h"

struct nghttp2_session;

namespace rewire::serve {

class GrpcExchange {
 public:
  // An empty token is not sent.
  GrpcExchange(ClientSocket socket, std::string authority, const std::string& token);
  ~GrpcExchange();
  GrpcExchange(const GrpcExchange&) = delete;
  GrpcExchange& operator=(const GrpcExchange&) = delete;

  // Starts a call of a method with one message, whose parts follow each other. They must stay until `Begin`
  // returns, which is when the server has taken all of them or has begun to answer.
  Status Begin(std::string_view method, const std::vector<Span<const std::byte>>& message,
               const Patience& patience);
  // Receives the next bytes of the response's body. Those that arrive behind the head of a frame of their
  // own are received where they belong, without a copy. Errors: the status with which the server has ended
  // the call before.
  Status Read(Span<std::byte> to, const Patience& patience);
  // Receives the end of the call, behind which nothing of the body may be left.
  Status End(const Patience& patience);

  bool usable() const { return usable_ && stream_ < 0; }
  bool nothing_arrived() const { return nothing_arrived_; }

 private:
  struct Callbacks;

  Status Turn(bool to_read, const Patience& patience);
  Status Take(Span<const std::byte> bytes);
  void Track(Span<const std::byte> bytes);
  std::size_t ReceivesInPlace() const;
  Status EndedBefore() const;

  ClientSocket socket_;
  std::string authority_;
  std::string authorization_;  // the header's value; may be empty
  nghttp2_session* session_ = nullptr;
  OutputQueue output_;
  bool usable_ = true, nothing_arrived_ = true;
  bool sends_ = true;  // false once the server has answered a call that it has not received whole

  // The call.
  std::int32_t stream_ = -1;  // none
  std::vector<Span<const std::byte>> message_;
  std::size_t part_ = 0;       // of the message, the first that is not sent
  std::size_t part_sent_ = 0;  // bytes of it
  int http_status_ = 0, grpc_status_ = -1;
  std::string grpc_message_;
  std::uint32_t reset_ = 0;  // the error of HTTP/2 that ended the call

  // The state of receiving.
  Span<std::byte> wanted_;
  std::string spare_;            // bytes of the body that nobody has wanted yet
  std::size_t spare_read_ = 0;   // how much of it has been read since
  std::vector<std::byte> room_;  // for what is received and not the body's
  std::string frame_head_;       // as far as it has arrived
  std::size_t frame_left_ = 0;   // bytes of the frame
  bool frame_is_body_ = false;
};

}  // namespace rewire::serve
