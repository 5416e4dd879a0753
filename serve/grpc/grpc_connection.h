// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rewire/serve/grpc/grpc_call.h"
#include "rewire/serve/grpc/http2_connection.h"
#include "rewire/serve/net/event_loop.h"
#include "rewire/serve/net/served_socket.h"

namespace rewire::serve {

// The state that the connections of one loop share.
struct GrpcConnections : GrpcLoop {
  std::unordered_map<GrpcConnection*, std::unique_ptr<GrpcConnection>> connections;
  std::vector<std::unique_ptr<GrpcConnection>> closed;  // in this turn
  std::vector<GrpcConnection*> unsent;                  // they have something to send in this turn
  std::vector<std::byte> received = std::vector<std::byte>(std::size_t{64} << 10);  // what was read last
};

// One client: its socket, and HTTP/2 over it.
class GrpcConnection final : public EventLoop::Handler, public Http2Connection::Handler {
 public:
  GrpcConnection(GrpcConnections* home, ServedSocket socket);
  ~GrpcConnection() override;

  void OnEvents(std::uint32_t events) override;
  std::shared_ptr<Http2Stream> OnStream(StreamId id) override;

  Http2Connection* http2() { return &http2_; }
  // Something is to be sent at the end of the turn.
  void Touch();
  // At the end of the turn: sends what the socket takes.
  void Flush();
  // Called now and then: closes the connection if the client is too slow.
  void CheckTime(Clock::time_point now);
  void Drain();

  // Counts bytes of messages that are held. False if they would be more than one request may have.
  bool Hold(std::size_t bytes);
  void LetGo(std::size_t bytes) { held_ -= bytes; }

 private:
  void Receive();
  void Close();
  void Watch();

  GrpcConnections* const home_;
  ServedSocket socket_;
  std::uint32_t watched_ = 0;  // events
  bool open_ = true;
  bool touched_ = false;
  bool reading_ = true;  // false: the client does not read what it has asked for
  bool failed_ = false;  // nothing can be received any more
  std::size_t held_ = 0;
  Clock::time_point last_;   // something was received or sent
  Clock::time_point since_;  // when what arrives now, or is being sent, has begun
  std::size_t moved_ = 0;    // bytes since then
  bool busy_ = false;        // something is arriving, or being sent
  Http2Connection http2_;    // last: its end closes the calls
};

}  // namespace rewire::serve
