// SPDX-License-Identifier: Apache-2.0
//
// GrpcCall: one call of a method, on one stream of HTTP/2.
//
//   head ─▶ messages ─▶ GrpcQuestion ─▶ Service ─▶ GrpcQuestion::Finish ─▶ response ─▶ trailers
//
// A call of ModelStreamInfer has many messages. They are asked one after the other, so that answers come in
// order.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/serve/core/front_end.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/served_loop.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/grpc/grpc_status.h"
#include "rewire/serve/grpc/http2_connection.h"
#include "rewire/serve/grpc/infer_message.h"
#include "rewire/serve/grpc/message_buffer.h"
#include "rewire/serve/grpc/methods.h"
#include "rewire/serve/net/background.h"
#include "rewire/serve/net/event_loop.h"

namespace rewire::serve {

class GrpcCall;
class GrpcConnection;

// One message that asks for inference, with the memory of its answer. Whoever has it keeps it alive: the
// call, the service, and the output that is still to be sent.
struct GrpcQuestion final : Request {
  std::shared_ptr<GrpcCall> call;
  std::shared_ptr<GrpcQuestion> self;  // while the service has it
  MessageBuffer message;
  std::vector<OutputRegion> regions_of;
  std::string text;

  void Finish() override;
  // Makes it empty, so that it can be filled again. What has grown large is let go of.
  void Clear();
};

// The state that the calls of one loop share. All but `running` belongs to the loop's thread.
struct GrpcLoop : ServedLoop {
  std::atomic<std::size_t> running{0};                  // questions that the service has
  std::vector<std::shared_ptr<GrpcQuestion>> finished;  // whose answer is to be sent
  std::vector<std::shared_ptr<GrpcQuestion>> spare;     // empty ones, whose memory is used again

  std::shared_ptr<GrpcQuestion> TakeQuestion();
  // Keeps it for TakeQuestion, if nobody else has it: its answer may still have to be sent.
  void LetGo(std::shared_ptr<GrpcQuestion> question);
};

class GrpcCall final : public Http2Stream, public std::enable_shared_from_this<GrpcCall> {
 public:
  // `buffered` counts the bytes of messages that the connection holds.
  GrpcCall(GrpcLoop* home, GrpcConnection* connection, StreamId id)
      : home_(home), connection_(connection), id_(id) {}

  bool Wants(std::string_view name) const override;
  void OnHead(std::vector<Http2Header> headers, bool complete) override;
  void OnData(Span<const std::byte> bytes) override;
  void OnEnd() override;
  void OnClosed(std::uint32_t error) override;
  bool receiving() const override;

  // The service has finished a question of the call.
  void OnFinished(const std::shared_ptr<GrpcQuestion>& question);
  GrpcLoop* home() { return home_; }

 private:
  void AddMessage();
  void Ask(std::shared_ptr<GrpcQuestion> question);
  void AskNext();
  void Answer(std::shared_ptr<GrpcQuestion> question);
  void Respond(const Status& answered, std::shared_ptr<std::string> response);
  void SendHead();
  void End(int code, std::string_view message);
  // Ends the call; what is still to come of it is ignored.
  void Refuse(GrpcCode code, std::string_view message);
  void Refuse(const Status& status);
  bool is_stream() const { return method_ != nullptr && method_->kind == GrpcMethod::Kind::kStreamInfer; }

  GrpcLoop* const home_;
  GrpcConnection* connection_;  // null once the stream is closed
  const StreamId id_;
  const GrpcMethod* method_ = nullptr;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool head_sent_ = false;
  bool done_ = false;   // trailers are given
  bool ended_ = false;  // by the client

  char prefix_[5] = {};  // of the message that arrives
  std::size_t prefix_got_ = 0;
  std::shared_ptr<GrpcQuestion> arriving_;
  std::vector<std::shared_ptr<GrpcQuestion>> waiting_;  // whole messages
  std::shared_ptr<GrpcQuestion> asked_;                 // its answer is still to come
  bool submitted_ = false;                              // the service has it
  std::size_t buffered_ = 0;                            // bytes of messages that the connection counts for it
};

}  // namespace rewire::serve
