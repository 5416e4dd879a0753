// SPDX-License-Identifier: Apache-2.0
// Libraries of kernels that the settings name, in a sandbox and without.
#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/support/paths.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;

std::string HostKernels() {
  return rewire::test::BuildDir() + std::string("/tests/libraries/host_kernels.so");
}

ServeSettings WithKernels(const std::string& path, const std::vector<std::string>& kernels, bool sandbox) {
  ServeSettings settings = SettingsOf(path);
  settings.defaults.kernels = kernels;
  settings.defaults.sandbox.enabled = sandbox;
  settings.defaults.instances = 1;
  return settings;
}

// Whether this process has loaded the test's library.
bool HasLoadedIt() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/host_kernels.so") != std::string::npos) return true;
  }
  return false;
}

// Asks a model of one kernel for 1, 2, 3, 4, and returns its error.
std::string Answer(Service* service, std::vector<float>* floats, float first = 1) {
  TestRequest request(1, first);
  service->Submit(&request, nullptr);
  request.Wait();
  if (request.status) *floats = request.Floats();
  return request.message();
}

TEST_CASE("sandbox: kernels of a host are loaded in its processes, before they give up anything") {
  const rewire::test::TempFolder folder;
  const std::string model = WriteModel(folder, "double.rwx", DoubleProgram("host_triple"));
  std::vector<float> floats;
  const std::unique_ptr<Service> sandboxed = ServiceOf(WithKernels(model, {HostKernels()}, true));
  CHECK(Answer(sandboxed.get(), &floats) == "");
  CHECK(floats == std::vector<float>{3, 6, 9, 12});
  CHECK(!HasLoadedIt());
  const std::unique_ptr<Service> service = ServiceOf(WithKernels(model, {HostKernels()}, false));
  CHECK(Answer(service.get(), &floats) == "");
  CHECK(floats == std::vector<float>{3, 6, 9, 12});
  CHECK(HasLoadedIt());
}

TEST_CASE("sandbox: kernels of a host can do there what stock kernels can") {
  const rewire::test::TempFolder folder;
  std::vector<float> floats;
  {
    const std::string model = WriteModel(folder, "double.rwx", DoubleProgram("host_opens"));
    const std::unique_ptr<Service> service = ServiceOf(WithKernels(model, {HostKernels()}, true));
    CHECK(Answer(service.get(), &floats) == "");
    CHECK(floats == std::vector<float>(4, EPERM));
  }
  const std::string model = WriteModel(folder, "double.rwx", DoubleProgram("host_connects"));
  const std::unique_ptr<Service> service = ServiceOf(WithKernels(model, {HostKernels()}, true));
  CHECK_THAT(Answer(service.get(), &floats), Contains("it has called what a sandbox does not have"));
  CHECK(Answer(service.get(), &floats, 2) == "");
  CHECK(floats == std::vector<float>{2, 3, 4, 5});
}

TEST_CASE("sandbox: libraries that cannot be loaded are refused with a reason") {
  const rewire::test::TempFolder folder;
  const std::string model = WriteModel(folder, "double.rwx", DoubleProgram("host_triple"));
  const std::string text = folder.Write("text.so", "no library");
  for (const bool sandbox : {true, false}) {
    CAPTURE(sandbox);
    const auto error = [&](const std::vector<std::string>& kernels) {
      const Result<std::unique_ptr<Service>> service = MakeService(WithKernels(model, kernels, sandbox));
      return service ? "" : service.error().message();
    };
    CHECK_THAT(error({"libnone.so"}), Contains("kernel library 'libnone.so' was not found"));
    CHECK_THAT(error({HostKernels(), text}), Contains("not a shared library"));
    CHECK_THAT(error({}), Contains("host_triple"));
  }
}

TEST_CASE("settings name libraries of kernels by their files, or as they are searched") {
  const rewire::test::TempFolder folder;
  folder.Write("own.so", "");
  folder.Write("serve.toml",
               "[defaults]\nkernels = [\"own.so\", \"libother.so\"]\n[models.one]\nthreads = 2\n"
               "[models.two]\nkernels = [\"sub/a.so\", \"/b.so\"]\n");
  ServeSettings settings;
  REQUIRE(ReadSettings((folder.path() / "serve.toml").string(), &settings));
  const std::string own = (folder.path() / "own.so").string(), sub = (folder.path() / "sub/a.so").string();
  CHECK(settings.defaults.kernels == std::vector<std::string>{own, "libother.so"});
  CHECK(settings.models["one"].kernels == std::vector<std::string>{own, "libother.so"});
  CHECK(settings.models["two"].kernels == std::vector<std::string>{sub, "/b.so"});
  CHECK(LibraryFile(".", "own.so") == "own.so");
  CHECK(LibraryFile(folder.path().string(), "own.so") == own);
}

#if REWIRE_SERVE_COMPILES
TEST_CASE("sandbox: a model of ONNX may use operators of a host's library") {
  const std::string model = rewire::test::SourceDir() + std::string("/examples/own_operator/acme.onnx");
  const std::string library = rewire::test::BuildDir() + std::string("/lib/acme.so");
  for (const bool sandbox : {true, false}) {
    CAPTURE(sandbox);
    TestServer server(WithKernels(model, {library}, sandbox));
    TestClient client(server.port());
    const TestClient::Response answer = client.Post(
        "/v2/models/acme/infer",
        R"({"inputs": [{"name": "x", "shape": [3, 2], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}]})");
    INFO(answer.body);
    REQUIRE(answer.status == 200);
    CHECK(json::parse(answer.body)["outputs"][0]["data"] == json::parse("[10, 20, 50, 60]"));
  }
  const Result<std::unique_ptr<Service>> without = MakeService(WithKernels(model, {}, true));
  REQUIRE(!without);
  CHECK_THAT(without.error().message(), Contains("com.acme"));
}
#endif

}  // namespace
}  // namespace rewire::serve::test
