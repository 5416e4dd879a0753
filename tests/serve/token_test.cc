// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "rewire/serve/client/remote_program.h"
#include "rewire/serve/core/token.h"
#include "rewire/tests/serve/both_server.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

TEST_CASE("a token is compared whole, and files without one are refused") {
  const std::string token = kToken;
  CHECK(HasToken("Bearer " + token, token));
  CHECK(HasToken("bearer " + token, token));
  CHECK(HasToken("", ""));
  for (const std::string& wrong :
       {std::string(), std::string("Bearer"), std::string("Bearer "), "Basic " + token, token,
        "Bearer " + token + token, "Bearer " + token + "0", "Bearer " + token.substr(1),
        "Bearer  " + token}) {
    INFO(wrong);
    CHECK_FALSE(HasToken(wrong, token));
  }
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string wrong = token;
    wrong[i] = 'x';
    CHECK_FALSE(HasToken("Bearer " + wrong, token));
    CHECK_FALSE(HasToken("Bearer " + token.substr(0, i), token));
  }
  const rewire::test::TempFolder folder;
  CHECK(*ReadTokenFile(folder.Write("good", token + "\r\nmore\n")) == token);
  for (const std::string& wrong :
       {std::string(), std::string("short\n"), "\n" + token, token + " " + token, token + '\0'}) {
    const Result<std::string> read = ReadTokenFile(folder.Write("wrong", wrong));
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message(), Contains("a token of at least 16 letters"));
  }
  CHECK(ReadTokenFile("no such file").error().code() == StatusCode::kNotFound);
}

// The variable, as long as this lives.
class ServerToken {
 public:
  explicit ServerToken(const char* token) { setenv("REWIRE_SERVER_TOKEN", token, 1); }
  ~ServerToken() { unsetenv("REWIRE_SERVER_TOKEN"); }
  ServerToken(const ServerToken&) = delete;
  ServerToken& operator=(const ServerToken&) = delete;
};

TEST_CASE("remote: a server with a token serves those who have it, over every transport, and no others") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  FrontEndLimits limits;
  limits.token = kToken;
  BothServer server(SettingsOf(folder.path().string()), {}, limits);
  for (const std::string& url : server.Urls("double")) {
    INFO(url);
    const auto refused = [&] {
      const Result<RemoteProgram> remote = RemoteProgram::TryConnect(url);
      REQUIRE_FALSE(remote);
      CHECK_THAT(remote.error().message(), Contains("the server's token is expected"));
    };
    refused();
    {
      const ServerToken token("0123456789abcdef0123456789abcdeX");
      refused();
    }
    const ServerToken token(kToken);
    const Result<RemoteProgram> remote = RemoteProgram::TryConnect(url);
    INFO((remote ? "" : remote.error().message()));
    REQUIRE(remote);
    const std::vector<std::int64_t> shape = {1, 4};
    const Tensor x = *Tensor::Make(kFloat32, shape);
    for (int i = 0; i < 4; ++i) x.data<float>()[i] = static_cast<float>(i);
    const Value input = x;
    const Result<Value> y = remote->program().TryRun({}, {&input, 1});
    REQUIRE(y);
    CHECK(y->tensor().data<float>()[3] == 6);
  }
  TestClient client(server.http_port());
  CHECK(client.Get("/v2/health/live").status == 200);
  CHECK(client.Get("/v2/health/ready").status == 200);
  // The body is not waited for, and the connection ends.
  client.Send("POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  const TestClient::Response response = client.Read();
  CHECK(response.status == 401);
  CHECK_THAT(response.head, Contains("WWW-Authenticate: Bearer"));
  CHECK(client.IsClosed());
  for (const char* const path : {"/v2", "/metrics", "/v2/models/double", "/v2/nothing"}) {
    INFO(path);
    CHECK(TestClient(server.http_port()).Get(path).status == 401);
  }
  const ServerToken lines("a\r\nb: c");
  const Result<RemoteProgram> remote = RemoteProgram::TryConnect(server.Http("double"));
  REQUIRE_FALSE(remote);
  CHECK_THAT(remote.error().message(), Contains("REWIRE_SERVER_TOKEN has more than one line"));
}

}  // namespace
}  // namespace rewire::serve::test
