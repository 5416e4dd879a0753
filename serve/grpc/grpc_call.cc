// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/grpc_call.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "rewire/serve/core/token.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/grpc/grpc_connection.h"
#include "rewire/serve/grpc/grpc_status.h"
#include "rewire/serve/grpc/protobuf_wire.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kPrefix = 5;  // a flag, and the size of the message
constexpr std::size_t kMostWaiting = 64;
constexpr std::size_t kMostSpare = 256;
constexpr std::size_t kMostKept = 4096;  // bytes of each memory of a spare question

constexpr std::string_view kMethod = ":method", kPath = ":path", kType = "content-type";
constexpr std::string_view kTimeout = "grpc-timeout", kEncoding = "grpc-encoding";
constexpr std::string_view kAuthorization = "authorization";
constexpr std::string_view kHeaders[] = {kMethod, kPath, kType, kTimeout, kEncoding, kAuthorization};

void WritePrefix(std::size_t size, char* prefix) {
  prefix[0] = 0;  // not compressed
  for (int i = 0; i < 4; ++i) prefix[1 + i] = static_cast<char>(size >> (8 * (3 - i)));
}

std::size_t SizeIn(const char* prefix) {
  std::size_t size = 0;
  for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<std::uint8_t>(prefix[1 + i]);
  return size;
}

Span<const std::byte> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

const std::vector<Http2Header>& Head() {
  static const std::vector<Http2Header> kHead = {{":status", "200"}, {"content-type", "application/grpc"}};
  return kHead;
}

}  // namespace

void GrpcQuestion::Finish() {
  std::shared_ptr<GrpcQuestion> question = std::move(self);
  GrpcLoop* const home = question->call->home();
  if (home->loop->IsHere()) {
    home->finished.push_back(std::move(question));
  } else {
    home->loop->Post([home, question = std::move(question)] { home->finished.push_back(question); });
  }
  // The front end waits for this before it goes.
  home->running.fetch_sub(1, std::memory_order_release);
}

void GrpcQuestion::Clear() {
  call = nullptr;
  memory.Reset(kMostKept);
  Reset();
  message.LetGo(kMostKept);
  regions_of.clear();
  text.clear();
  if (text.capacity() > kMostKept) text.shrink_to_fit();
}

std::shared_ptr<GrpcQuestion> GrpcLoop::TakeQuestion() {
  if (spare.empty()) return std::make_shared<GrpcQuestion>();
  std::shared_ptr<GrpcQuestion> question = std::move(spare.back());
  spare.pop_back();
  return question;
}

void GrpcLoop::LetGo(std::shared_ptr<GrpcQuestion> question) {
  if (question.use_count() > 1 || spare.size() >= kMostSpare) return;
  // The count is read without an order, and another thread may have let its part go just now.
  std::atomic_thread_fence(std::memory_order_acquire);
  question->Clear();
  spare.push_back(std::move(question));
}

bool GrpcCall::Wants(std::string_view name) const {
  return std::find(std::begin(kHeaders), std::end(kHeaders), name) != std::end(kHeaders);
}

void GrpcCall::OnHead(std::vector<Http2Header> headers, bool complete) {
  const auto value = [&](std::string_view name) {
    std::string_view last;
    for (const Http2Header& header : headers) {
      if (header.name == name) last = header.value;
    }
    return last;
  };
  const std::string_view method = value(kMethod), path = value(kPath), type = value(kType);
  const std::string_view timeout = value(kTimeout), encoding = value(kEncoding);
  const std::string_view authorization = value(kAuthorization);
  if (!complete) return Refuse(GrpcCode::kResourceExhausted, "the headers are more than the server takes");
  constexpr std::string_view kGrpc = "application/grpc";
  const bool is_grpc =
      type.substr(0, kGrpc.size()) == kGrpc &&
      (type.size() == kGrpc.size() || type[kGrpc.size()] == '+' || type[kGrpc.size()] == ';');
  if (method != "POST" || !is_grpc) {
    // No client of gRPC: it understands codes of HTTP alone.
    done_ = true;
    connection_->http2()->Respond(id_, {{":status", method != "POST" ? "405" : "415"}}, true);
    return connection_->Touch();
  }
  if (!timeout.empty()) {
    const std::optional<std::chrono::nanoseconds> time = ParseGrpcTimeout(timeout);
    if (!time) return Refuse(GrpcCode::kInvalidArgument, "the header grpc-timeout is malformed");
    deadline_ = home_->loop->now() + std::chrono::duration_cast<Clock::duration>(*time);
  }
  if (!encoding.empty() && encoding != "identity") {
    return Refuse(GrpcCode::kUnimplemented, "messages compressed by '" + std::string(encoding) +
                                                "' are not supported; send them as they are");
  }
  method_ = FindGrpcMethod(path);
  const bool is_open =
      method_ != nullptr && (method_->name == "ServerLive" || method_->name == "ServerReady");
  if (!is_open && !HasToken(authorization, home_->limits->token))
    return Refuse(GrpcCode::kUnauthenticated, kNoToken);
  if (method_ == nullptr) Refuse(GrpcCode::kUnimplemented, "there is no method '" + std::string(path) + "'");
}

void GrpcCall::OnData(Span<const std::byte> bytes) {
  while (!done_) {
    if (prefix_got_ < kPrefix) {
      if (bytes.empty()) return;
      const std::size_t taken = std::min(kPrefix - prefix_got_, bytes.size());
      std::memcpy(prefix_ + prefix_got_, bytes.data(), taken);
      prefix_got_ += taken;
      bytes = bytes.subspan(taken);
      if (prefix_got_ < kPrefix) return;
      if (prefix_[0] != 0)
        return Refuse(GrpcCode::kUnimplemented, "a message is compressed, and no encoding was named");
      const std::size_t size = SizeIn(prefix_);
      if (size > home_->limits->body_bytes) {
        return Refuse(GrpcCode::kResourceExhausted, "a message has " + std::to_string(size) + " bytes, and " +
                                                        std::to_string(home_->limits->body_bytes) +
                                                        " are allowed");
      }
      if (!is_stream() && !waiting_.empty()) {
        return Refuse(GrpcCode::kInvalidArgument, "the call has a second message, and one is expected");
      }
      if (!connection_->Hold(size)) {
        return Refuse(
            GrpcCode::kResourceExhausted,
            "the messages of this connection have more bytes than the server holds; send fewer at a time");
      }
      buffered_ += size;
      arriving_ = home_->TakeQuestion();
      arriving_->message.Begin(size);
    }
    const std::size_t taken = std::min(arriving_->message.missing(), bytes.size());
    if (taken > 0 && !arriving_->message.Add(bytes.subspan(0, taken)))
      return Refuse(Fail(StatusCode::kOutOfMemory, "there is no memory for the message"));
    bytes = bytes.subspan(taken);
    if (arriving_->message.missing() > 0) return;
    prefix_got_ = 0;
    AddMessage();
  }
}

void GrpcCall::AddMessage() {
  waiting_.push_back(std::move(arriving_));
  if (!is_stream()) return;
  if (waiting_.size() > kMostWaiting)
    return Refuse(GrpcCode::kResourceExhausted,
                  "more than 64 messages of this call wait; send them when earlier ones are answered");
  AskNext();
}

void GrpcCall::OnEnd() {
  ended_ = true;
  if (done_) return;
  if (arriving_ != nullptr || prefix_got_ > 0)
    return Refuse(GrpcCode::kInvalidArgument, "the call ends within a message");
  if (is_stream()) return AskNext();
  if (waiting_.empty())
    return Refuse(GrpcCode::kInvalidArgument, "the call has no message, and one is expected");
  std::shared_ptr<GrpcQuestion> question = std::move(waiting_.front());
  waiting_.clear();
  if (method_->kind == GrpcMethod::Kind::kInfer) return Ask(std::move(question));
  auto response = std::make_shared<std::string>(kPrefix, '\0');
  if (method_->kind == GrpcMethod::Kind::kUnary) {
    const Status answered = method_->answer(home_->service, question->message.message(), response.get());
    return Respond(answered, std::move(response));
  }
  home_->running.fetch_add(1, std::memory_order_relaxed);
  home_->background->Run([self = shared_from_this(), question, response] {
    GrpcLoop* const home = self->home_;
    const Status answered = self->method_->answer(home->service, question->message.message(), response.get());
    home->loop->Post([self, answered, response] { self->Respond(answered, response); });
    home->running.fetch_sub(1, std::memory_order_release);
  });
}

void GrpcCall::AskNext() {
  if (asked_ != nullptr || done_) return;
  if (waiting_.empty()) {
    if (ended_) {
      SendHead();
      End(static_cast<int>(GrpcCode::kOk), {});
    }
    return;
  }
  std::shared_ptr<GrpcQuestion> question = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  Ask(std::move(question));
}

void GrpcCall::Ask(std::shared_ptr<GrpcQuestion> question) {
  question->call = shared_from_this();
  question->deadline = deadline_;
  asked_ = question;
  question->status = ReadInferRequest(question->message.message(), home_->service->regions(), question.get(),
                                      &question->regions_of);
  if (!question->status) {
    home_->finished.push_back(std::move(question));
    return;
  }
  GrpcQuestion* const request = question.get();
  request->self = std::move(question);
  home_->running.fetch_add(1, std::memory_order_relaxed);
  home_->submitted = submitted_ = true;
  home_->service->Submit(request, home_->lane);
}

void GrpcCall::OnFinished(const std::shared_ptr<GrpcQuestion>& question) {
  asked_ = nullptr;
  submitted_ = false;
  if (connection_ != nullptr && !done_) Answer(question);
  if (connection_ != nullptr && !done_ && is_stream()) {
    const std::size_t size = question->message.size();
    connection_->LetGo(size);
    buffered_ -= size;
    AskNext();
  }
}

void GrpcCall::Answer(std::shared_ptr<GrpcQuestion> question) {
  GrpcQuestion& answer = *question;
  if (!answer.status && !is_stream()) return Refuse(answer.status);
  std::vector<MessagePart> parts;
  parts.reserve(2 * answer.results.size() + 1);
  answer.text.assign(kPrefix, '\0');
  if (answer.status) {
    WriteInferResponse(answer, answer.regions_of, is_stream(), &answer.text, &parts);
  } else {
    // The stream goes on: the error is this request's own.
    WireWriter(&answer.text).Text(1, answer.status.error().message()).Message(2, [&](WireWriter* response) {
      response->Text(1, answer.model).Text(2, answer.version).Text(3, answer.id);
    });
    parts.push_back({kPrefix, answer.text.size() - kPrefix, {}});
  }
  std::size_t size = 0;
  for (const MessagePart& part : parts) size += part.size + part.tensor.size();
  if (size > std::uint32_t(-1))
    return Refuse(GrpcCode::kResourceExhausted,
                  "the response is larger than a message of gRPC can be, 4 GiB");
  WritePrefix(size, answer.text.data());
  SendHead();
  Http2Connection* const http2 = connection_->http2();
  http2->Write(id_, BytesOf({answer.text.data(), kPrefix}), question);
  for (const MessagePart& part : parts) {
    http2->Write(id_,
                 part.tensor.empty() ? BytesOf({answer.text.data() + part.begin, part.size}) : part.tensor,
                 question);
  }
  if (!is_stream()) End(static_cast<int>(GrpcCode::kOk), {});
  connection_->Touch();
}

void GrpcCall::Respond(const Status& answered, std::shared_ptr<std::string> response) {
  if (connection_ == nullptr || done_) return;
  if (!answered) return Refuse(answered);
  WritePrefix(response->size() - kPrefix, response->data());
  SendHead();
  const Span<const std::byte> bytes = BytesOf(*response);
  connection_->http2()->Write(id_, bytes, std::move(response));
  End(static_cast<int>(GrpcCode::kOk), {});
}

void GrpcCall::SendHead() {
  if (!std::exchange(head_sent_, true)) connection_->http2()->Respond(id_, Head(), false);
}

void GrpcCall::End(int code, std::string_view message) {
  done_ = true;
  connection_->http2()->End(id_, GrpcTrailers(code, message));
  connection_->Touch();
}

void GrpcCall::Refuse(const Status& status) {
  Refuse(static_cast<GrpcCode>(WireCodeOf(status.code()).grpc), status.error().message());
}

void GrpcCall::Refuse(GrpcCode code, std::string_view message) {
  if (done_) return;
  if (head_sent_) return End(static_cast<int>(code), message);
  done_ = true;
  std::vector<Http2Header> headers = Head();
  for (Http2Header& trailer : GrpcTrailers(static_cast<int>(code), message))
    headers.push_back(std::move(trailer));
  connection_->http2()->Respond(id_, headers, true);
  connection_->Touch();
}

void GrpcCall::OnClosed(std::uint32_t) {
  connection_->LetGo(std::exchange(buffered_, 0));
  connection_ = nullptr;
  waiting_.clear();
  arriving_ = nullptr;
  // The client has gone, or has ended the call: nobody waits for the answer.
  const std::shared_ptr<GrpcQuestion> asked = std::move(asked_);
  if (submitted_) home_->service->Cancel(asked.get());
}

bool GrpcCall::receiving() const {
  if (done_) return false;
  return is_stream() ? prefix_got_ > 0 : !ended_;
}

}  // namespace rewire::serve
