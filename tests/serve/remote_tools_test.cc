// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tests/serve/both_server.h"
#include "rewire/tests/serve/tls_server.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

TEST_CASE("remote: vm-run and vm-bench take a URL in place of a file") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  BothServer server(folder.path().string());
  for (const std::string& url : server.Urls("double")) {
    INFO(url);
    const auto run = rewire::test::RunProgram(
        "vm-run", {url, "--input", "x=1x4xf32=1,2,3,4", "--expect", "y=1x4xf32=2,4,6,8", "--rtol", "0"},
        folder.path());
    CHECK(run.exit_code == 0);
    INFO(run.err);
    const auto list = rewire::test::RunProgram("vm-run", {url, "--list"}, folder.path());
    CHECK_THAT(list.out, Contains("f32[N, 4]"));
    const auto bench = rewire::test::RunProgram("vm-bench",
                                                {url, "--dim", "N=3", "--duration", "50ms", "--rate", "400",
                                                 "--json", "--server-pid", std::to_string(getpid())},
                                                folder.path());
    INFO(bench.err);
    REQUIRE(bench.exit_code == 0);
    const auto json = nlohmann::json::parse(bench.out);
    CHECK(json["loads"][0]["failed"] == 0);
    CHECK(json["loads"][0]["succeeded"] > 0);
  }
  const std::string url = server.Grpc("double");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& text) {
    const auto finished = rewire::test::RunProgram("vm-run", arguments, folder.path());
    CHECK(finished.exit_code > 10);
    CHECK_THAT(finished.err, Contains(text));
  };
  refused({url, "--params", "w.npz"}, "--model, --params and --kernels are for files");
  refused({server.Http("none"), "--list"}, "there is no model 'none'");
  const auto nobody = rewire::test::RunProgram(
      "vm-bench", {url, "--dim", "N=3", "--duration", "10ms", "--server-pid", "99999999"}, folder.path());
  CHECK_THAT(nobody.err, Contains("--server-pid: there is no process 99999999"));
}

TEST_CASE("tls: vm-run takes https:// and grpcs:// URLs, and says why a certificate is refused") {
  const Certificates certificates;
  const TlsServer server(certificates, certificates.Files("server"));
  for (const std::string& url : server.Urls()) {
    INFO(url);
    const std::vector<std::string> arguments = {
        url, "--input", "x=1x4xf32=1,2,3,4", "--expect", "y=1x4xf32=2,4,6,8", "--rtol", "0"};
    {
      const Variables client(certificates.Client());
      const auto run = rewire::test::RunProgram("vm-run", arguments, certificates.folder().path());
      INFO(run.err);
      CHECK(run.exit_code == 0);
    }
    const auto run = rewire::test::RunProgram("vm-run", arguments, certificates.folder().path());
    CHECK(run.exit_code > 10);
    CHECK_THAT(run.err, Contains("the certificate is refused: unable to get local issuer certificate"));
  }
}

}  // namespace
}  // namespace rewire::serve::test
