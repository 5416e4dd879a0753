// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/serve/client/c_api.h"
#include "rewire/tests/serve/both_server.h"
#include "rewire/tests/serve/tls_server.h"
#include "rewire/vm/c_api/machine.h"
#include "rewire/vm/c_api/outputs.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

constexpr DLDataType kFloat32{kDLFloat, 32, 1};

// Runs the model `double` at a URL, with 600 rows: so large that memory is shared where the URL asks for it.
void RunInC(const std::string& url) {
  constexpr std::int64_t kShape[] = {600, 4};
  INFO(url);
  RewireRemote* remote = nullptr;
  const RewireConnectOptions options{sizeof(RewireConnectOptions), 5'000'000'000};
  REQUIRE(rewire_remote_connect(url.c_str(), &options, nullptr, &remote) == kRewireOk);
  RewireProgram* program = nullptr;
  REQUIRE(rewire_remote_program(remote, &program) == kRewireOk);
  const bool is_shared = url.find("?shared_memory") != std::string::npos;
  RewireValue* shared = nullptr;
  const RewireStatus made = rewire_remote_make_tensor(remote, kFloat32, 2, kShape, &shared);
  CHECK(made == (is_shared ? kRewireOk : kRewireInvalidArgument));
  if (!is_shared) CHECK_THAT(rewire_last_error_message(), Contains("?shared_memory"));
  rewire_remote_destroy(remote);  // program and tensor stay

  std::vector<float> x(2400), y(2400);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::int64_t shape[] = {kShape[0], kShape[1]};
  DLTensor in{x.data(), {kDLCPU, 0}, 2, kFloat32, shape, nullptr, 0};
  const DLTensor out{y.data(), {kDLCPU, 0}, 2, kFloat32, shape, nullptr, 0};
  if (is_shared) {
    REQUIRE(rewire_value_tensor(shared, &in) == kRewireOk);
    std::memcpy(in.data, x.data(), x.size() * sizeof(float));
  }
  RewireVm* vm = nullptr;
  REQUIRE(rewire_vm_make(program, nullptr, &vm) == kRewireOk);
  rewire_program_destroy(program);
  REQUIRE(rewire_vm_set_input_by_index(vm, 0, &in, kRewireBorrow) == kRewireOk);
  REQUIRE(rewire_vm_set_output_by_index(vm, 0, &out) == kRewireOk);
  INFO(rewire_last_error_message());
  REQUIRE(rewire_vm_invoke(vm, nullptr) == kRewireOk);
  CHECK(y[7] == 14);
  CHECK(y[2399] == 4798);
  rewire_vm_destroy(vm);
  rewire_value_destroy(shared);
}

TEST_CASE("remote: a C program runs a model on a server, into its own memory") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  BothServer server(folder.path().string());
  for (const std::string& url : server.Urls("double")) RunInC(url);
}

TEST_CASE("tls: a C program runs a model by https:// and grpcs://") {
  const Certificates certificates;
  const TlsServer server(certificates, certificates.Files("server", "root"));
  const Variables client(certificates.Client("client"));
  for (const std::string& url : server.Urls()) RunInC(url);
}

TEST_CASE("remote: in C, wrong arguments and servers that are not there have their codes") {
  RewireRemote* remote = nullptr;
  CHECK(rewire_remote_connect(nullptr, nullptr, nullptr, &remote) == kRewireInvalidArgument);
  CHECK(rewire_remote_connect("http://127.0.0.1:1/m", nullptr, nullptr, nullptr) == kRewireInvalidArgument);
  CHECK(rewire_remote_connect("ftp://127.0.0.1/m", nullptr, nullptr, &remote) == kRewireInvalidArgument);
  const RewireConnectOptions past{sizeof(RewireConnectOptions), -1};
  CHECK(rewire_remote_connect("http://127.0.0.1:1/m", &past, nullptr, &remote) == kRewireInvalidArgument);
  CHECK_THAT(rewire_last_error_message(),
             Contains("options.timeout: expected at least 0 nanoseconds, -1 given"));
  const RewireConnectOptions soon{sizeof(RewireConnectOptions), 1'000'000'000};
  CHECK(rewire_remote_connect("http://127.0.0.1:1/m", &soon, nullptr, &remote) == kRewireIo);
  CHECK(rewire_remote_program(nullptr, nullptr) == kRewireInvalidArgument);
  RewireValue* value = nullptr;
  CHECK(rewire_remote_make_tensor(nullptr, kFloat32, 0, nullptr, &value) == kRewireInvalidArgument);
  rewire_remote_destroy(nullptr);
}

}  // namespace
}  // namespace rewire::serve::test
