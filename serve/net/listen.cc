// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

namespace rewire::serve {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int kBacklog = 1024;

Status CannotListen(const std::string& address, int error) {
  return Fail(StatusCode::kIo, "cannot listen on {}: {}", address, std::generic_category().message(error));
}

Result<Descriptor> Bound(const std::string& address, const sockaddr* where, socklen_t size) {
  Descriptor file(socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!file.is_open()) return CannotListen(address, errno);
  const int on = 1;
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (where->sa_family != AF_UNIX) setsockopt(file.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (bind(file.get(), where, size) != 0 || listen(file.get(), kBacklog) != 0)
    return CannotListen(address, errno);
  return file;
}

}  // namespace

Result<Descriptor> Listen(const std::string& address) {
  if (address.compare(0, kUnix.size(), kUnix) == 0) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    const std::string path = address.substr(kUnix.size());
    if (path.empty() || path.size() >= sizeof where.sun_path) {
      return Fail(StatusCode::kInvalidArgument, "{}: the path of a socket has 1 to {} bytes", address,
                  sizeof where.sun_path - 1);
    }
    std::memcpy(where.sun_path, path.data(), path.size());
    unlink(path.c_str());  // of a server that has ended
    return Bound(address, reinterpret_cast<const sockaddr*>(&where), sizeof where);
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    return Fail(StatusCode::kInvalidArgument, "'{}' is no address: ADDRESS:PORT or unix:PATH is expected",
                address);
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.empty() ? nullptr : host.c_str(), address.c_str() + colon + 1, &hints, &found)) {
    return Fail(StatusCode::kInvalidArgument, "cannot listen on {}: {}", address, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  return Bound(address, found->ai_addr, found->ai_addrlen);
}

int PortOf(int file) {
  sockaddr_storage where{};
  socklen_t size = sizeof where;
  if (getsockname(file, reinterpret_cast<sockaddr*>(&where), &size) != 0) return 0;
  if (where.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&where)->sin_port);
  if (where.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&where)->sin6_port);
  return 0;
}

}  // namespace rewire::serve
