// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/served_socket.h"

#include <sys/socket.h>

#include <cerrno>

namespace rewire::serve {

void ServedSocket::Close() {
  tls_.reset();
  file_.Close();
}

long ServedSocket::Receive(void* memory, std::size_t room) {
  if (tls_ != nullptr) return tls_->Receive(memory, room);
  while (true) {
    const ssize_t got = recv(file_.get(), memory, room, 0);
    if (got > 0) return got;
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
  }
}

long ServedSocket::Send(const iovec* parts, std::size_t count) {
  if (tls_ != nullptr) return tls_->Send(parts, count);
  if (count == 1) {
    while (true) {
      const ssize_t sent = send(file_.get(), parts->iov_base, parts->iov_len, MSG_NOSIGNAL);
      if (sent >= 0) return sent;
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  while (true) {
    const ssize_t sent = sendmsg(file_.get(), &message, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

void ServedSocket::EndSending() {
  if (tls_ != nullptr) tls_->EndSending();
  shutdown(file_.get(), SHUT_WR);
}

}  // namespace rewire::serve
