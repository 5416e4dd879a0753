// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/served_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rewire::serve {

ServedSocket::ServedSocket(ServedSocket&& other) noexcept
    : file_(std::exchange(other.file_, -1)), tls_(std::move(other.tls_)) {}

void ServedSocket::Close() {
  tls_.reset();
  if (file_ >= 0) close(std::exchange(file_, -1));
}

long ServedSocket::Receive(void* memory, std::size_t room) {
  if (tls_ != nullptr) return tls_->Receive(memory, room);
  while (true) {
    const ssize_t got = recv(file_, memory, room, 0);
    if (got > 0) return got;
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
  }
}

long ServedSocket::Send(const iovec* parts, std::size_t count) {
  if (tls_ != nullptr) return tls_->Send(parts, count);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  while (true) {
    const ssize_t sent = sendmsg(file_, &message, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

void ServedSocket::EndSending() {
  if (tls_ != nullptr) tls_->EndSending();
  shutdown(file_, SHUT_WR);
}

}  // namespace rewire::serve
