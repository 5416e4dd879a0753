// SPDX-License-Identifier: Apache-2.0
// Servers whose answers do not hold what was asked for.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rewire/serve/client/remote_program.h"
#include "rewire/vm/tensor.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

// Answers as a server of the model 'double' does, but says that the output is in a region.
class RegionClaimer {
 public:
  RegionClaimer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(listen(listener_, 8) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~RegionClaimer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/double"; }

 private:
  void Serve() {
    while (true) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      while (Answer(client)) {
      }
      close(client);
    }
  }
  // The requests are so small that each arrives whole.
  static bool Answer(int client) {
    char request[4096];
    const ssize_t size = recv(client, request, sizeof request, 0);
    if (size <= 0) return false;
    const std::string_view text(request, static_cast<std::size_t>(size));
    const std::string tensor = R"("datatype":"FP32","shape":[-1,4])";
    std::string body =
        R"({"inputs":[{"name":"x",)" + tensor + R"(}],"outputs":[{"name":"y",)" + tensor + "}]}";
    if (text.find("/infer ") != text.npos)
      body = R"({"outputs":[{"name":"y","datatype":"FP32","shape":[1,4],)"
             R"("parameters":{"shared_memory_region":"r"}}]})";
    if (text.find("/config ") != text.npos) body = "{}";
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    return send(client, answer.data(), answer.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(answer.size());
  }

  int listener_;
  int port_ = 0;
  std::thread thread_;
};

TEST_CASE("remote: a server that says an output is in a region it was not given is refused") {
  const RegionClaimer server;
  const Result<RemoteProgram> remote = RemoteProgram::TryConnect(server.url());
  REQUIRE(remote);
  const std::vector<std::int64_t> shape = {1, 4};
  const Value x = *Tensor::Make(kFloat32, shape);
  const Result<Value> y = remote->program().TryRun({}, {&x, 1});
  REQUIRE_FALSE(y);
  CHECK_THAT(y.error().message(),
             Contains("the server says that its output 'y' is in a region, and no region was given for it"));
}

}  // namespace
}  // namespace rewire::serve::test
