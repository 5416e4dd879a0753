// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/client_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace rewire::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostParts = 16;
constexpr auto kLongestWait = std::chrono::milliseconds(5);  // then the patience is asked

Status Failed(const char* what, int error) {
  return Fail(StatusCode::kIo, "{}: {}", what, std::generic_category().message(error));
}

// Waits for events of a file. An error of the file ends the wait, too: the next call tells which.
Status WaitFor(int file, short events, const Patience& patience) {
  pollfd one = {file, events, 0};
  while (true) {
    if (patience.stopped != nullptr && patience.stopped() != 0)
      return Fail(StatusCode::kCancelled, "stopped while waiting for the server");
    const Clock::time_point now = Clock::now();
    if (now >= patience.until)
      return Fail(StatusCode::kDeadlineExceeded, "the server has not answered in time");
    Clock::duration wait = patience.until - now;
    if (patience.stopped != nullptr) wait = std::min<Clock::duration>(wait, kLongestWait);
    // At most an hour, so that it fits an int, and at least what poll can wait.
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
    const int ready =
        poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(milliseconds, 1, std::int64_t{3600} * 1000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Failed("cannot wait for the server", errno);
  }
}

Result<Descriptor> ConnectTo(const addrinfo& where, const Patience& patience) {
  Descriptor file(socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!file.is_open()) return Failed("cannot make a socket", errno);
  int error = connect(file.get(), where.ai_addr, where.ai_addrlen) == 0 ? 0 : errno;
  Status waited;
  if (error == EINPROGRESS) {
    waited = WaitFor(file.get(), POLLOUT, patience);
    socklen_t size = sizeof error;
    if (waited) getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (!waited) return waited;
  if (error != 0) return Failed("cannot connect", error);
  const int on = 1;
  setsockopt(file.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return file;
}

}  // namespace

Result<ClientSocket> ClientSocket::Connect(const RemoteUrl& url, const std::string& protocol,
                                           const Patience& patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); error != 0)
    return Fail(StatusCode::kNotFound, "there is no host '{}': {}", url.host, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Status last;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Result<Descriptor> file = ConnectTo(*one, patience);
    if (file) {
      ClientSocket made(*std::move(file));
      if (url.tls == nullptr) return made;
      if (Status secured = made.Secure(url, protocol, patience); !secured) return Forward(secured);
      return made;
    }
    last = file.status();
    if (last.code() != StatusCode::kIo) break;
  }
  return Forward(last);
}

Status ClientSocket::Secure(const RemoteUrl& url, const std::string& protocol, const Patience& patience) {
  tls_ = url.tls->Connect(file_.get(), url.host, protocol);
  if (tls_ == nullptr) return Fail(StatusCode::kOutOfMemory, "there is no memory for a connection by TLS");
  while (true) {
    short wanted = POLLIN;
    switch (tls_->Handshake()) {
      case TlsStream::Step::kDone:
        // HTTP/1.1 is what a server without ALPN speaks.
        if (tls_->protocol() == protocol || (tls_->protocol().empty() && protocol != "h2")) return {};
        return Fail(StatusCode::kUnsupported, "the server does not speak {} by TLS at this port", protocol);
      case TlsStream::Step::kWantsRead:
        break;
      case TlsStream::Step::kWantsWrite:
        wanted = POLLOUT;
        break;
      case TlsStream::Step::kFailed:
        return Fail(StatusCode::kIo, "no connection by TLS: {}", tls_->failure());
    }
    if (Status waited = WaitFor(file_.get(), wanted, patience); !waited) return waited;
  }
}

Status ClientSocket::Send(OutputQueue* queue) {
  while (!queue->empty()) {
    iovec parts[kMostParts];
    if (tls_ != nullptr) {
      const long sent = tls_->Send(parts, queue->Next(parts, kMostParts));
      if (sent < 0) return Fail(StatusCode::kIo, "cannot send to the server: {}", tls_->failure());
      if (sent == 0) return {};
      queue->Drop(static_cast<std::size_t>(sent));
      continue;
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = queue->Next(parts, kMostParts);
    const ssize_t sent = sendmsg(file_.get(), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      queue->Drop(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return Failed("cannot send to the server", errno);
    }
  }
  return {};
}

Result<std::size_t> ClientSocket::Receive(const iovec* parts, int count) {
  std::size_t received = 0;
  for (int i = 0; tls_ != nullptr && i < count; ++i) {
    const long got = tls_->Receive(parts[i].iov_base, parts[i].iov_len);
    if (got < 0 && received == 0)
      return Fail(StatusCode::kIo, "the connection has ended: {}", tls_->failure());
    if (got > 0) received += static_cast<std::size_t>(got);
    if (got < static_cast<long>(parts[i].iov_len)) break;
  }
  if (tls_ != nullptr) return received;
  while (true) {
    const ssize_t got = readv(file_.get(), parts, count);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return Fail(StatusCode::kIo, "the server has closed the connection");
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return Failed("cannot receive from the server", errno);
  }
}

Status ClientSocket::Wait(bool to_send, const Patience& patience) {
  if (tls_ != nullptr && tls_->pending() > 0) return {};  // the system knows nothing of it
  return WaitFor(file_.get(), static_cast<short>(to_send ? POLLIN | POLLOUT : POLLIN), patience);
}

}  // namespace rewire::serve
