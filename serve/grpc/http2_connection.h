// SPDX-License-Identifier: Apache-2.0
//
// Http2Connection: the server's end of one HTTP/2 connection, without a socket. It takes the bytes that
// arrive and has the bytes to send. nghttp2 reads and writes the frames.
//
//   Receive(bytes) ─▶ Http2Stream::OnHead, OnData, OnEnd, OnClosed
//   Respond, Write, End ─▶ Pump ─▶ output()
//
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/front_end.h"
#include "rewire/serve/grpc/output_queue.h"

struct nghttp2_session;

namespace rewire::serve {

using StreamId = std::int32_t;

struct Http2Header {
  std::string name;  // in lower case
  std::string value;
};

// One stream, as a protocol above sees it. The connection keeps it until OnClosed has returned.
class Http2Stream {
 public:
  virtual ~Http2Stream() = default;
  // Whether a header is wanted. Others count among the limits all the same.
  virtual bool Wants(std::string_view name) const = 0;
  // The wanted headers have arrived. `complete` is false if they were more than the limits allow; then some
  // are missing.
  virtual void OnHead(std::vector<Http2Header> headers, bool complete) = 0;
  // A part of the body. It is valid during the call.
  virtual void OnData(Span<const std::byte> bytes) = 0;
  // The client sends no more.
  virtual void OnEnd() = 0;
  // The stream is gone: `error` is 0 if both ends have sent everything, or else the client or the connection
  // has ended it.
  virtual void OnClosed(std::uint32_t error) = 0;
  // Whether the client has begun to send something and not ended it.
  virtual bool receiving() const = 0;
};

class Http2Connection {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual std::shared_ptr<Http2Stream> OnStream(StreamId id) = 0;
  };

  // A client may end this many more requests before their answer than it has waited for. Whoever ends more
  // gets work done that nobody asks for, and is sent away.
  static constexpr std::uint64_t kMostResets = 200;

  // Both must outlive the connection.
  Http2Connection(Handler* handler, const FrontEndLimits* limits);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  // False if the connection is to be closed when output() has been sent: the client broke the protocol.
  bool Receive(Span<const std::byte> bytes);

  // The head of a response. With `end`, it has no body and no trailers.
  void Respond(StreamId id, const std::vector<Http2Header>& headers, bool end);
  // Adds to the body. `owner` keeps the bytes until they are sent.
  void Write(StreamId id, Span<const std::byte> bytes, std::shared_ptr<const void> owner);
  // Ends the body; trailers follow. What has not been received of the request is then not wanted any more.
  void End(StreamId id, std::vector<Http2Header> trailers);

  // Makes frames of what can be sent now. Call it before output() is sent, and again when it is empty.
  void Pump();
  OutputQueue* output() { return &output_; }
  // Accepts no more streams; those that are there go on (GOAWAY).
  void StartDraining();
  // Whether it may be closed: draining, or broken, and nothing is left to do.
  bool finished() const;
  std::size_t streams() const { return streams_.size(); }
  // Whether a client is sending a part of a request, or has to make room for a response.
  bool waits_for_client() const;

 private:
  struct Callbacks;
  struct Stream;
  Stream* Find(StreamId id);
  void Close(StreamId id, std::uint32_t error);

  Handler* handler_;
  const FrontEndLimits* limits_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<StreamId, std::unique_ptr<Stream>> streams_;
  OutputQueue output_;
  std::size_t unsent_ = 0;  // bytes of bodies that no frame has yet
  std::uint64_t resets_ = 0, answers_ = 0;
  bool draining_ = false, broken_ = false;
};

}  // namespace rewire::serve
