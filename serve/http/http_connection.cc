// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <utility>

#include "rewire/serve/core/token.h"
#include "rewire/serve/http/json_text.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kAlignment = Arena::kAlignment;
// A body's memory that is kept for the next request.
constexpr std::size_t kKeptBody = std::size_t{256} << 10;
constexpr std::size_t kMostParts = 64;
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

void HttpConnection::FreeBody::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

HttpConnection::HttpConnection(HttpLoop* home, int file)
    : home_(home), file_(file), until_(home->loop->now() + home->limits->idle_time) {
  home_->open->fetch_add(1, std::memory_order_relaxed);
}

HttpConnection::~HttpConnection() {
  if (state_ != State::kClosed) close(file_);
  home_->open->fetch_sub(1, std::memory_order_relaxed);
}

void HttpConnection::OnEvents(std::uint32_t events) {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
    // Nobody reads the response.
    if (state_ == State::kWaiting || (events & (EPOLLHUP | EPOLLERR))) return Close();
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
  while (true) {
    const ssize_t got = recv(file_, memory, room, 0);
    if (got > 0) {
      // Events are told once, so what is left must be asked for. Fewer bytes than there is room for: nothing
      // is left.
      if (static_cast<std::size_t>(got) < room) readable_ = false;
      return got;
    }
    if (got < 0 && errno == EINTR) continue;
    readable_ = false;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
  }
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
  // A response to HEAD would have no body, and none of our paths takes it.
  keep_alive_ = head.keep_alive && head.method != "HEAD";
  std::optional<std::string> path = DecodePath(head.target);
  if (!path) return RespondAndClose({400, "the target of the request has a damaged escape"});
  path_ = *std::move(path);
  route_ = FindRoute(path_);
  if (const HttpError error = CheckHead(head); error.status != 0) return RespondAndClose(error);
  json_bytes_ = head.json_bytes;
  body_bytes_ = static_cast<std::size_t>(head.content_length);
  if (head.expects_continue && rest.empty() && body_bytes_ > 0) {
    // If it cannot be sent, neither can the response, and then the connection is closed.
    [[maybe_unused]] const ssize_t sent = send(file_, kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
  }
  const std::size_t json = static_cast<std::size_t>(json_bytes_.value_or(body_bytes_));
  // So that the tensors behind the JSON are aligned.
  const std::size_t before = (kAlignment - json % kAlignment) % kAlignment;
  const std::size_t room = before + body_bytes_ + kJsonPadding;
  if (room > body_room_) {
    body_memory_.reset();
    body_room_ = 0;
    auto* const memory =
        static_cast<std::byte*>(::operator new (room, std::align_val_t{kAlignment}, std::nothrow));
    if (memory == nullptr) return RespondAndClose({503, "there is no memory for the body"});
    body_memory_.reset(memory);
    body_room_ = room;
  }
  body_ = body_memory_.get() + before;
  body_got_ = std::min(body_bytes_, rest.size());
  std::memcpy(body_, rest.data(), body_got_);
  rest.remove_prefix(body_got_);
  if (rest.empty()) {
    input_.clear();
  } else {
    input_ = std::string(rest);  // it may be a part of input_
  }
  if (body_got_ < body_bytes_) {
    // Many clients send head and body one after the other, and the kernel on their side holds the body back
    // until the head is acknowledged. By itself that takes 40 ms.
    const int on = 1;
    setsockopt(file_, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }
  state_ = State::kBody;
  until_ = home_->loop->now() + home_->limits->transfer_time +
           std::chrono::seconds(body_bytes_ / home_->limits->least_bytes_per_second);
}

bool HttpConnection::ReadBody() {
  while (body_got_ < body_bytes_) {
    const long got = Receive(body_ + body_got_, body_bytes_ - body_got_);
    if (got < 0) Close();
    if (got <= 0) return false;
    body_got_ += static_cast<std::size_t>(got);
  }
  std::memset(body_ + body_bytes_, 0, kJsonPadding);
  Dispatch();
  return true;
}

void HttpConnection::Dispatch() {
  state_ = State::kWaiting;
  until_ = Clock::time_point::max();
  const bool get = method_ == "GET";
  if (route_.kind == Route::kUnknown)
    return Respond({404, ErrorJson("there is nothing at the path '" + path_ + "'")});
  if (route_.kind != Route::kUnsupported && method_ != route_.method) {
    return Respond({405, ErrorJson("the path '" + path_ + "' takes the method " + route_.method)});
  }
  if (get && body_bytes_ > 0) return Respond({400, ErrorJson("a request of the method GET has no body")});
  if (route_.kind == Route::kInfer) return Infer(route_);
  const std::string_view body(reinterpret_cast<const char*>(body_), body_bytes_);
  if (route_.kind != Route::kLoad && route_.kind != Route::kUnload) {
    return Respond(Answer(route_, body, home_->service));
  }
  in_service_ = true;
  is_infer_ = false;
  home_->background->Run([this] {
    const std::string_view content(reinterpret_cast<const char*>(body_), body_bytes_);
    answer_ = Answer(route_, content, home_->service);
    home_->Post(this);
  });
}

void HttpConnection::Infer(const Route& route) {
  const std::size_t json = static_cast<std::size_t>(json_bytes_.value_or(body_bytes_));
  model = route.name;
  version = route.version;
  const std::string_view text(reinterpret_cast<const char*>(body_), json);
  const Status read =
      home_->reader.Read(text, {body_ + json, body_bytes_ - json}, home_->service->regions(), this, &form_);
  if (!read) return Respond(ErrorAnswer(read));
  in_service_ = true;
  is_infer_ = true;
  home_->submitted = true;
  home_->service->Submit(this, home_->lane);
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
  if (!is_infer_) {
    Respond(answer_);
  } else if (!status) {
    Respond(ErrorAnswer(status));
  } else {
    text_.clear();
    tensors_.clear();
    Status written = WriteInferResponse(*this, form_, &text_, &tensors_);
    if (!written) {
      tensors_.clear();
      Respond(ErrorAnswer(written));
    } else {
      std::size_t bytes = 0;
      for (const Span<const std::byte> tensor : tensors_) bytes += tensor.size();
      const std::string extra =
          tensors_.empty() ? std::string()
                           : "Inference-Header-Content-Length: " + std::to_string(text_.size()) + "\r\n";
      BeginSending(200, tensors_.empty() ? "application/json" : "application/octet-stream", extra, bytes);
    }
  }
  Advance();
}

void HttpConnection::Respond(const HttpAnswer& answer) {
  text_ = answer.body;
  tensors_.clear();
  BeginSending(answer.status, answer.type, {}, 0);
}

void HttpConnection::RespondAndClose(const HttpError& error) {
  keep_alive_ = false;
  Respond({error.status, ErrorJson(error.text)});
}

void HttpConnection::BeginSending(int code, const char* type, std::string_view extra,
                                  std::size_t tensor_bytes) {
  if (home_->draining) keep_alive_ = false;
  char digits[24];
  const auto append = [&](std::uint64_t number) {
    head_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  };
  head_ = "HTTP/1.1 ";
  append(static_cast<std::uint64_t>(code));
  head_ += ' ';
  head_ += HttpReason(code);
  head_ += "\r\nContent-Type: ";
  head_ += type;
  head_ += "\r\n";
  head_ += extra;
  if (code == 401) head_ += "WWW-Authenticate: Bearer\r\n";
  if (!keep_alive_) head_ += "Connection: close\r\n";
  head_ += "Content-Length: ";
  append(text_.size() + tensor_bytes);
  head_ += "\r\n\r\n";
  parts_.clear();
  part_ = 0;
  const auto add = [&](const void* data, std::size_t bytes) {
    if (bytes > 0) parts_.push_back({const_cast<void*>(data), bytes});
  };
  add(head_.data(), head_.size());
  add(text_.data(), text_.size());
  for (const Span<const std::byte> tensor : tensors_) add(tensor.data(), tensor.size());
  state_ = State::kSending;
  until_ = home_->loop->now() + home_->limits->transfer_time +
           std::chrono::seconds((text_.size() + tensor_bytes) / home_->limits->least_bytes_per_second);
}

bool HttpConnection::Send() {
  while (part_ < parts_.size()) {
    if (!writable_) return false;
    msghdr message{};
    message.msg_iov = &parts_[part_];
    message.msg_iovlen = std::min(parts_.size() - part_, kMostParts);
    const ssize_t sent = sendmsg(file_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      writable_ = false;
      return false;
    }
    if (sent < 0) {
      Close();
      return false;
    }
    auto left = static_cast<std::size_t>(sent);
    while (part_ < parts_.size() && left >= parts_[part_].iov_len) left -= parts_[part_++].iov_len;
    if (left > 0) {
      parts_[part_].iov_base = static_cast<char*>(parts_[part_].iov_base) + left;
      parts_[part_].iov_len -= left;
    }
  }
  EndRequest();
  return state_ != State::kClosed;
}

void HttpConnection::EndRequest() {
  Reset();
  text_.clear();
  if (body_room_ > kKeptBody) {
    body_memory_.reset();
    body_room_ = 0;
  }
  if (!keep_alive_ || home_->draining) {
    // A client that is still sending would otherwise lose the response with the connection.
    shutdown(file_, SHUT_WR);
    return Close();
  }
  state_ = State::kHead;
  until_ = home_->loop->now() + home_->limits->idle_time;
}

void HttpConnection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  home_->loop->Remove(file_, this);
  close(file_);
  if (in_service_) {
    // OnFinished lets go of it.
    if (is_infer_) home_->service->Cancel(this);
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
