// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/token.h"
#include "rewire/serve/http/openai.h"

namespace rewire::serve {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

void HttpLoop::Post(HttpConnection* connection) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    posted_.push_back(connection);
    if (posted_.size() > 1) return;
  }
  loop->Post([this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished.insert(finished.end(), posted_.begin(), posted_.end());
    posted_.clear();
  });
}

HttpConnection::HttpConnection(HttpLoop* home, ServedSocket socket)
    : home_(home), socket_(std::move(socket)), until_(home->loop->now() + home->limits->idle_time) {
  home_->open->fetch_add(1, std::memory_order_relaxed);
}

HttpConnection::~HttpConnection() { home_->open->fetch_sub(1, std::memory_order_relaxed); }

void HttpConnection::OnEvents(std::uint32_t events) {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  // TLS may have to send before it can receive.
  readable_ |= socket_.has_tls();
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
    client_ended_ = true;
    // Nobody reads the response.
    if (state_ == State::kWaiting || exchange_ != nullptr || (events & (EPOLLHUP | EPOLLERR))) return Close();
  }
  Advance();
}

void HttpConnection::Advance() {
  while (true) {
    switch (state_) {
      case State::kHead:
        if (!ReadHead()) return;
        break;
      case State::kBody:
        if (!ReadBody()) return;
        break;
      case State::kSending:
        if (!Send()) return;
        break;
      case State::kWaiting:
      case State::kClosed:
        return;
    }
  }
}

long HttpConnection::Receive(void* memory, std::size_t room) {
  if (!readable_) return 0;
  const long got = socket_.Receive(memory, room);
  // Events are told once, so what is left must be asked for. That is the end, too, if it came with the bytes.
  if (got < static_cast<long>(room)) readable_ = client_ended_ && got > 0;
  return got;
}

bool HttpConnection::ReadHead() {
  // The request before may have left some bytes. Idle connections hold nothing.
  std::string_view unread = input_;
  while (true) {
    HttpHead head;
    const HeadResult result = unread.empty() ? HeadResult() : ParseHead(unread, *home_->limits, &head);
    if (result.error.status != 0) {
      RespondAndClose(result.error);
      return true;
    }
    if (result.bytes != 0) {
      TakeHead(head, unread.substr(result.bytes));
      return true;
    }
    if (unread.data() != input_.data()) input_.assign(unread);
    const long got = Receive(home_->received.data(), home_->received.size());
    if (got < 0) Close();
    if (got <= 0) return false;
    unread = {home_->received.data(), static_cast<std::size_t>(got)};
    if (input_.empty()) {
      until_ = home_->loop->now() + home_->limits->header_time;
    } else {
      input_.append(unread);
      unread = input_;
    }
  }
}

HttpError HttpConnection::CheckHead(const HttpHead& head) const {
  const FrontEndLimits& limits = *home_->limits;
  const bool is_open = route_.kind == Route::kLive || route_.kind == Route::kReady;
  if (!is_open && !HasToken(head.authorization, limits.token)) return {401, std::string(kNoToken)};
  if (head.content_length > limits.body_bytes) {
    return {413, "the body has " + std::to_string(head.content_length) + " bytes, and " +
                     std::to_string(limits.body_bytes) + " are allowed"};
  }
  if (head.json_bytes.value_or(0) > head.content_length) {
    return {400, "Inference-Header-Content-Length is larger than Content-Length"};
  }
  const std::uint64_t json = head.json_bytes.value_or(head.content_length);
  if (json > limits.json_bytes) {
    return {413, "the JSON has " + std::to_string(json) + " bytes, and " + std::to_string(limits.json_bytes) +
                     " are allowed: send tensors as binary data"};
  }
  return {};
}

void HttpConnection::TakeHead(const HttpHead& head, std::string_view rest) {
  method_.assign(head.method);
  is_11_ = head.is_11;
  keep_alive_ = head.keep_alive;
  std::optional<std::string> path = DecodePath(head.target);
  if (!path) return RespondAndClose({400, "the target of the request has a damaged escape"});
  path_ = *std::move(path);
  route_ = FindRoute(path_);
  if (const HttpError error = CheckHead(head); error.status != 0) return RespondAndClose(error);
  json_bytes_ = head.json_bytes;
  const auto bytes = static_cast<std::size_t>(head.content_length);
  if (head.expects_continue && rest.empty() && bytes > 0) {
    // If it cannot be sent, neither can the response, and then the connection is closed.
    const iovec part = {const_cast<char*>(kContinue.data()), kContinue.size()};
    (void)socket_.Send(&part, 1);
  }
  const std::size_t arrived = std::min(bytes, rest.size());
  const auto json = static_cast<std::size_t>(json_bytes_.value_or(bytes));
  if (!body_.Begin(bytes, json, rest.substr(0, arrived)))
    return RespondAndClose({503, "there is no memory for the body"});
  rest.remove_prefix(arrived);
  if (rest.empty()) {
    input_.clear();
  } else {
    input_ = std::string(rest);  // it may be a part of input_
  }
  if (body_.missing_bytes() > 0) {
    // Many clients send head and body one after the other, and the kernel on their side holds the body back
    // until the head is acknowledged. By itself that takes 40 ms.
    const int on = 1;
    setsockopt(socket_.file(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }
  state_ = State::kBody;
  until_ = home_->loop->now() + home_->limits->transfer_time +
           std::chrono::seconds(bytes / home_->limits->least_bytes_per_second);
}

bool HttpConnection::ReadBody() {
  while (body_.missing_bytes() > 0) {
    const long got = Receive(body_.missing(), body_.missing_bytes());
    if (got < 0) Close();
    if (got <= 0) return false;
    body_.Got(static_cast<std::size_t>(got));
  }
  Dispatch();
  return true;
}

void HttpConnection::Dispatch() {
  state_ = State::kWaiting;
  until_ = Clock::time_point::max();
  const bool get = method_ == "GET" || method_ == "HEAD";
  if (route_.kind == Route::kUnknown)
    return RespondWithError({404, "there is nothing at the path '" + path_ + "'"});
  const std::string_view method = route_.method;
  const bool fits = (get && method != "POST") || (method_ == "POST" && method != "GET");
  if (route_.kind != Route::kUnsupported && !fits) {
    return RespondWithError({405, "the path '" + path_ + "' takes the method " +
                                      std::string(method.empty() ? "GET or POST" : method)});
  }
  if (get && body_.bytes() > 0) {
    return RespondWithError({400, "a request of the method " + method_ + " has no body"});
  }
  if (route_.kind == Route::kInfer) return Infer(route_);
  exchange_ = MakeExchange(route_, home_->service);
  if (exchange_ != nullptr) return Go(exchange_->Begin(body_.text(), this));
  if (route_.kind != Route::kLoad && route_.kind != Route::kUnload) {
    return Respond(Answer(route_, body_.text(), home_->service));
  }
  in_service_ = true;
  is_run_ = false;
  home_->background->Run([this] {
    answer_ = Answer(route_, body_.text(), home_->service);
    home_->Post(this);
  });
}

void HttpConnection::Infer(const Route& route) {
  const std::size_t json = static_cast<std::size_t>(json_bytes_.value_or(body_.bytes()));
  model = route.name;
  version = route.version;
  const Status read =
      home_->reader.Read(body_.text().substr(0, json), {body_.data() + json, body_.bytes() - json},
                         home_->service->regions(), this, &form_);
  if (!read) return Respond(ErrorAnswer(read));
  Submit();
}

void HttpConnection::Submit() {
  state_ = State::kWaiting;
  until_ = Clock::time_point::max();
  in_service_ = true;
  is_run_ = true;
  home_->submitted = true;
  home_->service->Submit(this, home_->lane);
}

void HttpConnection::Go(Piece piece) {
  if (client_ended_) return Close();
  if (!piece.streamed) return piece.run ? Submit() : Respond(piece.answer);
  if (piece.run && piece.answer.body.empty()) return Submit();
  response_.text = std::move(piece.answer.body);
  response_.tensors.clear();
  if (!in_pieces_) {
    if (home_->draining || !is_11_) keep_alive_ = false;
    in_pieces_ = true;
    response_.BeginPieces(piece.answer.status, piece.answer.type,
                          is_11_ ? HttpResponse::Framing::kChunks : HttpResponse::Framing::kClose,
                          keep_alive_);
  }
  runs_again_ = piece.run;
  response_.AddPiece(!piece.run);
  BeginTransfer();
}

void HttpConnection::Finish() {
  if (home_->loop->IsHere()) {
    home_->finished.push_back(this);
  } else {
    home_->Post(this);
  }
}

void HttpConnection::OnFinished() {
  in_service_ = false;
  if (state_ == State::kClosed) {
    // The client has gone meanwhile.
    const auto self = home_->connections.find(this);
    home_->closed.push_back(std::move(self->second));
    home_->connections.erase(self);
    return;
  }
  if (!is_run_) {
    Respond(answer_);
  } else if (exchange_ != nullptr) {
    Go(exchange_->Continue(this));
  } else {
    RespondToInfer();
  }
  Advance();
}

void HttpConnection::RespondToInfer() {
  if (!status) return Respond(ErrorAnswer(status));
  std::string* const text = &response_.text;
  text->clear();
  response_.tensors.clear();
  const Status written = WriteInferResponse(*this, form_, text, &response_.tensors);
  if (!written) return Respond(ErrorAnswer(written));
  if (response_.tensors.empty()) return BeginSending(200, "application/json", {});
  BeginSending(200, "application/octet-stream",
               "Inference-Header-Content-Length: " + std::to_string(text->size()) + "\r\n");
}

void HttpConnection::Respond(const HttpAnswer& answer) {
  response_.text = answer.body;
  response_.tensors.clear();
  BeginSending(answer.status, answer.type, {});
}

void HttpConnection::RespondAndClose(const HttpError& error) {
  keep_alive_ = false;
  RespondWithError(error);
}

void HttpConnection::RespondWithError(const HttpError& error) {
  Respond({error.status,
           IsOpenAiPath(path_) ? OpenAiErrorJson(error.status, error.text) : ErrorJson(error.text)});
}

void HttpConnection::BeginSending(int code, const char* type, std::string_view extra) {
  if (home_->draining) keep_alive_ = false;
  response_.Begin(code, type, extra, keep_alive_, method_ == "HEAD");
  BeginTransfer();
}

void HttpConnection::BeginTransfer() {
  state_ = State::kSending;
  until_ = home_->loop->now() + home_->limits->transfer_time +
           std::chrono::seconds(response_.body_bytes() / home_->limits->least_bytes_per_second);
}

bool HttpConnection::Send() {
  if (!writable_) return false;
  switch (response_.Send(&socket_)) {
    case HttpResponse::Sent::kAll:
      break;
    case HttpResponse::Sent::kPart:
      writable_ = false;
      return false;
    case HttpResponse::Sent::kGone:
      Close();
      return false;
  }
  if (std::exchange(runs_again_, false)) {
    Submit();
  } else {
    EndRequest();
  }
  return state_ != State::kClosed;
}

void HttpConnection::EndRequest() {
  Reset();
  response_.text.clear();
  body_.End();
  exchange_ = nullptr;
  in_pieces_ = false;
  method_.clear();
  path_.clear();
  if (!keep_alive_ || home_->draining) {
    // A client that is still sending would otherwise lose the response with the connection.
    socket_.EndSending();
    return Close();
  }
  state_ = State::kHead;
  until_ = home_->loop->now() + home_->limits->idle_time;
}

void HttpConnection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  home_->loop->Remove(socket_.file(), this);
  socket_.Close();
  if (in_service_) {
    // OnFinished lets go of it.
    if (is_run_) home_->service->Cancel(this);
    return;
  }
  const auto self = home_->connections.find(this);
  home_->closed.push_back(std::move(self->second));
  home_->connections.erase(self);
}

void HttpConnection::CheckTime(Clock::time_point now) {
  if (now < until_ || state_ == State::kClosed) return;
  const bool asked = state_ == State::kBody || (state_ == State::kHead && !input_.empty());
  if (!asked) return Close();
  RespondAndClose({408, "the request did not arrive in time"});
  Advance();
}

void HttpConnection::Drain() {
  keep_alive_ = false;
  if (state_ == State::kHead && input_.empty()) Close();
}

}  // namespace rewire::serve
