// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/grpc_connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rewire::serve {
namespace {

constexpr int kReadsAtOnce = 4;  // then other connections have their turn
constexpr std::size_t kParts = 64;
constexpr std::size_t kMostUnread = std::size_t{8} << 20;  // bytes of answers that a client has not read

}  // namespace

GrpcConnection::GrpcConnection(GrpcConnections* home, ServedSocket socket)
    : home_(home),
      socket_(std::move(socket)),
      last_(home->loop->now()),
      since_(last_),
      http2_(this, home->limits) {
  home_->open->fetch_add(1, std::memory_order_relaxed);
}

GrpcConnection::~GrpcConnection() { home_->open->fetch_sub(1, std::memory_order_relaxed); }

std::shared_ptr<Http2Stream> GrpcConnection::OnStream(StreamId id) {
  return std::make_shared<GrpcCall>(home_, this, id);
}

void GrpcConnection::OnEvents(std::uint32_t events) {
  if (!open_) return;
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) Receive();
  if (open_) Touch();
}

void GrpcConnection::Receive() {
  for (int i = 0; !failed_; ++i) {
    std::size_t room = home_->received.size();
    // The loop says nothing of bytes that TLS has received already.
    if (i >= kReadsAtOnce) room = std::min(room, socket_.pending());
    if (room == 0) return;
    const long got = socket_.Receive(home_->received.data(), room);
    if (got == 0) return;
    // A client that has gone waits for nothing.
    if (got < 0) return Close();
    last_ = home_->loop->now();
    moved_ += static_cast<std::size_t>(got);
    failed_ = !http2_.Receive({home_->received.data(), static_cast<std::size_t>(got)});
    if (static_cast<std::size_t>(got) < room) return;
  }
}

void GrpcConnection::Touch() {
  if (open_ && !std::exchange(touched_, true)) home_->unsent.push_back(this);
}

void GrpcConnection::Flush() {
  touched_ = false;
  if (!open_) return;
  OutputQueue* const output = http2_.output();
  for (;;) {
    http2_.Pump();
    if (output->empty()) break;
    std::array<iovec, kParts> parts;
    const std::size_t count = output->Next(parts.data(), parts.size());
    const long sent = socket_.Send(parts.data(), count);
    if (sent == 0) break;
    if (sent < 0) return Close();
    last_ = home_->loop->now();
    moved_ += static_cast<std::size_t>(sent);
    output->Drop(static_cast<std::size_t>(sent));
  }
  if (http2_.finished() || (failed_ && output->empty())) return Close();
  reading_ = output->bytes() < kMostUnread && !failed_;
  Watch();
}

void GrpcConnection::Watch() {
  const std::uint32_t events = (reading_ ? EPOLLIN | EPOLLRDHUP : 0U) |
                               (http2_.output()->empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT));
  if (events == watched_) return;
  const Status watched = watched_ == 0 ? home_->loop->Add(socket_.file(), events, this)
                                       : home_->loop->Change(socket_.file(), events, this);
  watched_ = events;
  if (!watched) Close();
}

void GrpcConnection::Close() {
  if (!std::exchange(open_, false)) return;
  home_->loop->Remove(socket_.file(), this);
  socket_.Close();
  const auto self = home_->connections.find(this);
  if (self == home_->connections.end()) return;
  home_->closed.push_back(std::move(self->second));
  home_->connections.erase(self);
}

void GrpcConnection::CheckTime(Clock::time_point now) {
  const bool busy = http2_.waits_for_client();
  const FrontEndLimits& limits = *home_->limits;
  if (busy && !std::exchange(busy_, true)) {
    since_ = now;
    moved_ = 0;
  }
  busy_ = busy;
  if (busy) {
    const std::chrono::seconds earned(moved_ / limits.least_bytes_per_second);
    if (now > since_ + limits.transfer_time + earned) return Close();
    return;
  }
  // Calls that wait for the service have all the time that they need.
  if (http2_.streams() == 0 && now > last_ + limits.idle_time) Close();
}

void GrpcConnection::Drain() {
  http2_.StartDraining();
  Touch();
}

bool GrpcConnection::Hold(std::size_t bytes) {
  if (bytes > home_->limits->body_bytes - held_) return false;
  held_ += bytes;
  return true;
}

}  // namespace rewire::serve
