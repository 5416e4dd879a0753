// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewire/serve/grpc/grpc_front_end.h"
#include "rewire/serve/http/http_front_end.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {

// A server of a folder with both protocols.
class BothServer {
 public:
  explicit BothServer(const std::string& path, KernelSet kernels = {})
      : BothServer(SettingsOf(path), std::move(kernels)) {}
  explicit BothServer(ServeSettings settings, KernelSet kernels = {}, const FrontEndLimits& limits = {})
      : server_(ServiceOf(std::move(settings), std::move(kernels)), 2) {
    http_ = Port(MakeHttpFrontEnd(server_.service(), limits));
    grpc_ = Port(MakeGrpcFrontEnd(server_.service(), limits));
    REQUIRE(server_.Start());
  }
  std::string Http(const std::string& model) const {
    return "http://127.0.0.1:" + std::to_string(http_) + "/" + model;
  }
  std::string Grpc(const std::string& model) const {
    return "grpc://127.0.0.1:" + std::to_string(grpc_) + "/" + model;
  }
  // Over every transport.
  std::vector<std::string> Urls(const std::string& model) const {
    return {Http(model), Grpc(model), Http(model) + "?shared_memory", Grpc(model) + "?shared_memory"};
  }
  int http_port() const { return http_; }
  Service* service() { return server_.service(); }

 private:
  int Port(std::unique_ptr<FrontEnd> front_end) {
    const Result<int> port = server_.Add(std::move(front_end), "127.0.0.1:0");
    REQUIRE(port);
    return *port;
  }
  Server server_;
  int http_ = 0, grpc_ = 0;
};

}  // namespace rewire::serve::test
