// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rewire/serve/grpc/grpc_front_end.h"
#include "rewire/serve/http/http_front_end.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/serve/test_certificates.h"

namespace rewire::serve::test {

using Values = std::map<std::string, std::string>;

// Variables of the environment, as long as this lives.
class Variables {
 public:
  explicit Variables(Values values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  const Values values_;
};

// The model of TlsServer reserves memory for as many.
inline constexpr std::int64_t kMostRows = 500000;

// An authority, another one, and certificates of both.
class Certificates {
 public:
  Certificates() {
    const std::string local = "DNS:localhost,IP:127.0.0.1";
    MakeCertificate(folder_, {"root", "", "", -7200, 7200});
    MakeCertificate(folder_, {"other", "", "", -7200, 7200});
    MakeCertificate(folder_, {"server", "root", local});
    MakeCertificate(folder_, {"expired", "root", local, -7200, -3600});
    MakeCertificate(folder_, {"later", "root", local, 3600, 7200});
    MakeCertificate(folder_, {"elsewhere", "root", "DNS:elsewhere.example,IP:127.0.0.2"});
    MakeCertificate(folder_, {"strange", "other", local});
    MakeCertificate(folder_, {"client", "root", ""});
    std::string program = DoubleProgram();
    program.replace(program.find("65536"), 5, std::to_string(kMostRows * 16));
    (void)WriteModel(folder_, "double.rwx", program);
  }
  std::string Path(const std::string& name) const { return folder_.path().string() + "/" + name; }
  std::string Models() const { return Path("double.rwx"); }
  TlsFiles Files(const std::string& name, const std::string& authority = "") const {
    return {Path(name + ".pem"), Path(name + ".key"), authority.empty() ? "" : Path(authority + ".pem")};
  }
  // The variables by which a client knows the authority, and its own certificate if it has one.
  Values Client(const std::string& name = "") const {
    Values values = {{"REWIRE_SERVER_CA", Path("root.pem")}};
    if (!name.empty()) {
      values["REWIRE_CLIENT_CERT"] = Path(name + ".pem");
      values["REWIRE_CLIENT_KEY"] = Path(name + ".key");
    }
    return values;
  }
  const rewire::test::TempFolder& folder() const { return folder_; }

 private:
  const rewire::test::TempFolder folder_;
};

// A server of both protocols by TLS: HTTP and gRPC at one port, and gRPC at a port of its own.
class TlsServer {
 public:
  TlsServer(const Certificates& certificates, const TlsFiles& files, const FrontEndLimits& limits = {})
      : server_(ServiceOf(SettingsOf(certificates.Models())), 2) {
    const auto tls = TlsContext::ForServer(files, {"http/1.1", "h2"});
    if (!tls) FAIL(tls.error().message());
    http_ = *server_.Add(MakeHttpFrontEnd(server_.service(), limits), "127.0.0.1:0", *tls);
    grpc_ = *server_.Add(MakeGrpcFrontEnd(server_.service(), limits), "127.0.0.1:0", *tls);
    REQUIRE(server_.Start());
  }
  std::vector<std::string> Urls(const std::string& host = "localhost") const {
    std::vector<std::string> urls;
    for (const auto& [scheme, port] : {std::pair("https", http_), {"grpcs", http_}, {"grpcs", grpc_}})
      urls.push_back(std::string(scheme) + "://" + host + ":" + std::to_string(port) + "/double");
    return urls;
  }
  int http_port() const { return http_; }
  Server* server() { return &server_; }

 private:
  Server server_;
  int http_ = 0, grpc_ = 0;
};

}  // namespace rewire::serve::test
