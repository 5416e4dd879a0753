// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "rewire/serve/client/remote_program.h"
#include "rewire/serve/http/http_front_end.h"
#include "rewire/tests/serve/remote_fixture.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/serve/tls_server.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

void CheckDoubles(const std::string& url, std::int64_t rows) {
  INFO(url);
  const RemoteProgram remote = Connected(url);
  const std::vector<std::int64_t> shape = {rows, 4};
  const Tensor x = *Tensor::Make(kFloat32, shape);
  for (std::int64_t i = 0; i < rows * 4; ++i) x.data<float>()[i] = static_cast<float>(i % 1000);
  const Value input = x;
  for (int run = 0; run < 3; ++run) {
    const Result<Value> y = remote.program().TryRun({}, {&input, 1});
    INFO((y ? "" : y.error().message()));
    REQUIRE(y);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < rows * 4; ++i)
      wrong += y->tensor().data<float>()[i] == static_cast<float>(i % 1000 * 2) ? 0 : 1;
    CHECK(wrong == 0);
  }
}

// No connection by any URL, and each says why.
void CheckRefused(const std::vector<std::string>& urls, const std::string& why) {
  for (const std::string& url : urls) {
    INFO(url);
    const Result<RemoteProgram> remote = RemoteProgram::TryConnect(url);
    REQUIRE_FALSE(remote);
    CHECK_THAT(remote.error().message(), Contains(why));
  }
}

TEST_CASE("tls: both protocols are served at one port, by name and by address, for tensors of any size") {
  const Certificates certificates;
  const TlsServer server(certificates, certificates.Files("server"));
  const Variables client(certificates.Client());
  for (const char* const host : {"localhost", "127.0.0.1"}) {
    for (const std::string& url : server.Urls(host)) CheckDoubles(url, 1);
  }
  for (const std::string& url : server.Urls()) {
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{100}, std::int64_t{5000}, kMostRows})
      CheckDoubles(url, rows);
  }
}

TEST_CASE("tls: a client refuses a server's certificate that is not right, and says why") {
  const Certificates certificates;
  const auto refused = [&](const std::string& server, const Values& client, const std::string& why) {
    const TlsServer with(certificates, certificates.Files(server));
    const Variables variables(client);
    CheckRefused(with.Urls(), why);
    CheckRefused(with.Urls("127.0.0.1"), why);
  };
  refused("expired", certificates.Client(), "the certificate is refused: certificate has expired");
  refused("later", certificates.Client(), "the certificate is refused: certificate is not yet valid");
  refused("elsewhere", certificates.Client(), "mismatch");
  refused("strange", certificates.Client(),
          "the certificate is refused: unable to get local issuer certificate");
  // The system's authorities have not signed it.
  refused("server", {}, "the certificate is refused: unable to get local issuer certificate");
}

TEST_CASE(
    "tls: a server that asks for certificates serves those that its authority has signed, and no others") {
  const Certificates certificates;
  FrontEndLimits limits;
  limits.token = "0123456789abcdef0123456789abcdef";
  const TlsServer server(certificates, certificates.Files("server", "root"), limits);
  const Variables token(Values{{"REWIRE_SERVER_TOKEN", limits.token}});
  {
    const Variables client(certificates.Client("client"));
    for (const std::string& url : server.Urls()) CheckDoubles(url, 10);
  }
  for (const char* const wrong : {"", "strange", "expired", "later"}) {
    INFO(wrong);
    const Variables client(certificates.Client(wrong));
    for (const std::string& url : server.Urls()) {
      INFO(url);
      // The message is what the server says of it, or that it has closed the connection.
      const Result<RemoteProgram> remote = RemoteProgram::TryConnect(url);
      REQUIRE_FALSE(remote);
      CHECK(remote.error().code() == StatusCode::kIo);
    }
  }
  // The token is asked for as without TLS.
  const Variables client(certificates.Client("client"));
  const Variables none(Values{{"REWIRE_SERVER_TOKEN", ""}});
  CheckRefused(server.Urls(), "the server's token is expected");
}

TEST_CASE("tls: what is no TLS, and a protocol that is not served, end the connection and nothing else") {
  const Certificates certificates;
  TlsServer server(certificates, certificates.Files("server"));
  const Variables variables(certificates.Client());
  for (const std::string& bytes :
       {std::string("GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n"), std::string(100000, '\0'),
        std::string("\x16\x03\x01\xff\xff", 5) + std::string(70000, 'x')}) {
    TestClient client(server.http_port());
    client.Send(bytes);
    CHECK(client.Read().status == 0);
  }
  for (const std::string& url : server.Urls()) CheckDoubles(url, 1);
  // A server without TLS, and one without gRPC.
  const TestServer plain(SettingsOf(certificates.Models()));
  const std::string port = std::to_string(plain.port());
  CheckRefused({"https://localhost:" + port + "/double", "grpcs://localhost:" + port + "/double"},
               "no connection by TLS");
  Server http(ServiceOf(SettingsOf(certificates.Models())), 1);
  const auto tls = *TlsContext::ForServer(certificates.Files("server"), {"http/1.1"});
  const int http_port = *http.Add(MakeHttpFrontEnd(http.service(), {}), "127.0.0.1:0", tls);
  REQUIRE(http.Start());
  CheckDoubles("https://localhost:" + std::to_string(http_port) + "/double", 1);
  CheckRefused({"grpcs://localhost:" + std::to_string(http_port) + "/double"}, "no application protocol");
  // A client whose handshake has not ended does not hold the server back.
  TestClient silent(server.http_port());
  CHECK(server.server()->Drain(std::chrono::seconds(20)) == 0);
  CHECK(silent.IsClosed());
}

TEST_CASE("tls: files that do not fit are refused by name") {
  const Certificates certificates;
  const auto refused = [&](const TlsFiles& files, const std::string& why) {
    const auto made = TlsContext::ForServer(files, {"http/1.1"});
    REQUIRE_FALSE(made);
    CHECK(made.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(made.error().message(), Contains(why));
  };
  const TlsFiles good = certificates.Files("server");
  refused({good.certificate, "", ""}, "is given without its key: both are expected for TLS");
  refused({"", good.key, ""}, "is given without its certificate: both are expected for TLS");
  refused({"", "", good.certificate}, "a certificate and its key are expected for TLS, and neither is given");
  refused({good.certificate, certificates.Path("client.key"), ""}, "is none: key values mismatch");
  refused({certificates.Models(), good.key, ""}, "double.rwx' is none: no start line");
  refused({certificates.Path("none"), good.key, ""}, "a certificate is expected in PEM, and '");
  refused({good.certificate, good.key, certificates.Models()},
          "a list of authorities is expected in PEM, and '");
  const Variables wrong(Values{{"REWIRE_SERVER_CA", certificates.Path("none")}});
  CheckRefused({"https://localhost:1/double"}, "a list of authorities is expected in PEM, and '");
}

}  // namespace
}  // namespace rewire::serve::test
