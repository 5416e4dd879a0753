// SPDX-License-Identifier: Apache-2.0
// A client of HTTP/2 that a test drives by hand, over a pair of sockets and a loop that turns when it is told
// to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/core/front_end.h"
#include "rewire/serve/net/acceptor.h"
#include "rewire/serve/net/event_loop.h"
#include "rewire/tests/serve/grpc/fake_service.h"

struct nghttp2_session;

namespace rewire::test {

// The answer that a call has got so far.
struct GrpcAnswer {
  std::map<std::string, std::string> headers;  // trailers, too
  std::string body;                            // with the prefix of each message
  bool closed = false;
  std::uint32_t error = 0;  // of HTTP/2
  int status() const;       // grpc-status; -1 if there is none
  std::vector<std::string> messages() const;
};

// A front end of gRPC on a listener of its own, with the fake service.
class GrpcServer {
 public:
  explicit GrpcServer(const serve::FrontEndLimits& limits = {});
  ~GrpcServer();
  int port() const { return port_; }
  FakeService& service() { return service_; }
  // Runs on the loop's thread, and returns when it is done.
  void On(const std::function<void()>& task);
  void Drain();
  std::size_t connections() const { return front_end_->open_connections(); }

 private:
  FakeService service_;
  std::unique_ptr<serve::EventLoop> loop_;
  std::unique_ptr<serve::Lane> lane_;
  std::unique_ptr<serve::FrontEnd> front_end_;
  std::unique_ptr<serve::Acceptor> acceptor_;
  int port_ = 0;
  std::thread thread_;
};

class GrpcClient {
 public:
  explicit GrpcClient(int port);
  ~GrpcClient();
  using Headers = std::vector<std::pair<std::string, std::string>>;
  // Begins a call. Headers replace those of the same name. `end`: the client sends no more than `body`.
  std::int32_t Call(const std::string& method, const std::string& body, bool end = true,
                    const Headers& headers = {});
  // Sends more of a body.
  void Send(std::int32_t id, const std::string& body, bool end);
  void Reset(std::int32_t id);
  // Sends bytes that are no frames of nghttp2.
  void SendRaw(std::string_view bytes);
  // Sends bytes and no more, and waits until the server has closed the connection.
  void SendAlone(std::string_view bytes);
  // Waits for the end of the call, or of the connection.
  const GrpcAnswer& Wait(std::int32_t id);
  // Waits until the call has so many messages, or ends.
  const GrpcAnswer& WaitForMessages(std::int32_t id, std::size_t count);
  // Waits until the server has closed the connection.
  void WaitForEnd();
  bool going_away() const { return going_away_; }
  std::uint32_t goaway_error() const { return goaway_error_; }

 private:
  friend struct ClientCallbacks;
  void Flush();
  bool Receive();  // false: the connection is closed

  const int port_;
  int file_;
  bool open_ = true, going_away_ = false;
  std::uint32_t goaway_error_ = 0;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, GrpcAnswer> answers_;
  struct Body {
    std::string bytes;
    std::size_t sent = 0;
    bool end = false, waits = false;
  };
  std::map<std::int32_t, Body> bodies_;
};

// A message with its prefix.
std::string Framed(std::string_view message);
// A ModelInferRequest with the input x.
std::string InferMessage(const std::string& model, const std::vector<float>& x, const std::string& id = {});
// The elements of y in a ModelInferResponse.
std::vector<float> OutputOf(std::string_view response);

}  // namespace rewire::test
