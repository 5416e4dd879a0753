// SPDX-License-Identifier: Apache-2.0
// Programs whose model is on a server, over every transport: they give what a local run gives, bit by bit.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>
#include <utility>

#include "rewire/serve/client/remote_program.h"
#include "rewire/serve/client/remote_url.h"
#include "rewire/serve/core/dim_names.h"
#include "rewire/tests/serve/both_server.h"
#include "rewire/tests/serve/remote_fixture.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

Value FloatsOf(std::int64_t rows, std::int64_t columns, float first) {
  const std::vector<std::int64_t> shape = {rows, columns};
  const Tensor tensor = *Tensor::Make(kFloat32, shape);
  std::iota(tensor.data<float>(), tensor.data<float>() + rows * columns, first);
  return tensor;
}

// The declaration of y decides whether its shape is known before the server answers.
std::string DoubleWith(const std::string& output, const std::string& kernel = "rewire.add") {
  std::string program = DoubleProgram(kernel);
  const std::string usual = "y: f32[N, 4]";
  return program.replace(program.find(usual), usual.size(), "y: " + output);
}

// A large limit, since DoubleProgram reserves 64 KB.
constexpr std::int64_t kRows = 1000;

TEST_CASE("remote: inputs of any size arrive, and outputs whose shapes are known before, and not") {
  const rewire::test::TempFolder folder;
  const std::string output = GENERATE(as<std::string>(), "f32[N, 4]", "f32[?, 4]", "f32[M, 4]");
  (void)WriteModel(folder, "double.rwx", DoubleWith(output));
  BothServer server(folder.path().string());
  const Program local = *Program::TryOpen((folder.path() / "double.rwx").string());
  for (const std::string& url : server.Urls("double")) {
    INFO(url << " " << output);
    const RemoteProgram remote = Connected(url);
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, kRows, 4 * kRows}) {
      const Value x = FloatsOf(rows, 4, 0.5F);
      const Result<Value> expected = local.TryRun({}, {&x, 1});
      const Result<Value> value = remote.program().TryRun({}, {&x, 1});
      INFO((value ? "" : value.error().message()));
      REQUIRE(expected);
      REQUIRE(value);
      CHECK(Leaves(*expected) == Leaves(*value));
    }
  }
}

TEST_CASE("remote: tensors of many megabytes arrive whole, in messages of many frames") {
  const rewire::test::TempFolder folder;
  std::string program = DoubleProgram();
  program.replace(program.find("65536"), 5, "67108864");
  (void)WriteModel(folder, "double.rwx", program);
  BothServer server(folder.path().string());
  constexpr std::int64_t kMany = 1'100'001;  // more than the windows of HTTP/2 hold
  const Value x = FloatsOf(kMany, 4, 1);
  std::vector<float> y(static_cast<std::size_t>(kMany) * 4);
  for (const std::string& url : server.Urls("double")) {
    INFO(url);
    const RemoteProgram remote = Connected(url);
    VirtualMachine vm(remote.program());
    REQUIRE(vm.TrySetInput("x", x));
    REQUIRE(vm.TrySetOutput("y", TensorView(y.data(), {kMany, 4})));
    for (int run = 0; run < 2; ++run) {
      std::fill(y.begin(), y.end(), 0.0F);
      const Status done = vm.TryInvoke();
      INFO((done ? "" : done.error().message()));
      REQUIRE(done);
      const Tensor sent = x.tensor();
      const float* const from = sent.data<float>();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != 2 * from[i] ? 1 : 0;
      CHECK(wrong == 0);
    }
    // It was received there, and not copied.
    CHECK_FALSE(vm.TryOutputReport("y")->copied);
  }
}

TEST_CASE("remote: with shared memory, the server's kernel reads and writes the client's region") {
  const rewire::test::TempFolder folder;
  Gate gate;
  (void)WriteModel(folder, "double.rwx", DoubleProgram("test.gate"));
  BothServer server(folder.path().string(), gate.Kernels());
  for (const std::string& url : {server.Http("double"), server.Grpc("double")}) {
    INFO(url);
    {
      const RemoteProgram remote = Connected(url + "?shared_memory");
      const std::vector<std::int64_t> shape = {kRows, 4};
      const Tensor x = *remote.TryMakeTensor(kFloat32, shape), y = *remote.TryMakeTensor(kFloat32, shape);
      std::iota(x.data<float>(), x.data<float>() + 4 * kRows, 1.0F);
      VirtualMachine vm(remote.program());
      REQUIRE(vm.TrySetInput("x", Value(x)));
      REQUIRE(vm.TrySetOutput("y", y));
      const Status done = vm.TryInvoke();
      INFO((done ? "" : done.error().message()));
      REQUIRE(done);
      CHECK(y.data<float>()[kRows] == 2 * (1.0F + kRows));
      CHECK_FALSE(vm.TryOutputReport("y")->copied);
      // The two regions as the server has mapped them.
      const std::vector<RegionDescription> regions = *server.service()->regions().List();
      REQUIRE(regions.size() == 2);
      bool reads = false, writes = false;
      for (const RegionDescription& region : regions) {
        const RegionPart part = *server.service()->regions().Find(region.name, 0, region.bytes);
        reads = reads || part.data.data() == gate.last_input();
        writes = writes || part.data.data() == gate.last_output();
      }
      CHECK(reads);
      CHECK(writes);
      // An output that nobody binds lies in shared memory, too.
      REQUIRE(vm.TryClearOutputs());
      REQUIRE(vm.TryInvoke());
      CHECK(server.service()->regions().List()->size() == 3);
    }
    // When the program is gone, so are the regions, at the server and in the system.
    CHECK(server.service()->regions().List()->empty());
  }
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    CHECK_THAT(entry.path().filename().string(), !Contains("rewire-" + std::to_string(getpid()) + "-"));
}

TEST_CASE("remote: many VMs use one program at once, each over a connection of its own") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  BothServer server(folder.path().string());
  for (const std::string& url : server.Urls("double")) {
    const RemoteProgram remote = Connected(url);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int run = 0; run < 20; ++run) {
          const Value x = FloatsOf(300, 4, static_cast<float>(i * 100 + run));
          const Result<Value> y = remote.program().TryRun({}, {&x, 1});
          wrong += !y || y->tensor().data<float>()[0] != 2.0F * static_cast<float>(i * 100 + run) ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    INFO(url);
    CHECK(wrong == 0);
  }
}

TEST_CASE("remote: an error of the server is told with its words, and the connection goes on") {
  const rewire::test::TempFolder folder;
  Gate gate;
  (void)WriteModel(folder, "double.rwx", DoubleProgram("test.gate"));
  BothServer server(folder.path().string(), gate.Kernels());
  for (const std::string& url : server.Urls("double")) {
    INFO(url);
    const RemoteProgram remote = Connected(url);
    VirtualMachine vm(remote.program());
    for (const float first : {1.0F, -1.0F, 2.0F}) {
      REQUIRE(vm.TrySetInput("x", FloatsOf(1, 4, first)));
      const Status done = vm.TryInvoke();
      CHECK(static_cast<bool>(done) == (first > 0));
      if (done) continue;
      CHECK(done.code() == StatusCode::kKernelFailed);
      CHECK_THAT(done.error().message(), Contains(url) && Contains("an element is negative"));
    }
  }
}

TEST_CASE("remote: a run that is late or cancelled ends, and the server's with it") {
  const rewire::test::TempFolder folder;
  Gate gate;
  (void)WriteModel(folder, "double.rwx", DoubleProgram("test.gate"));
  BothServer server(folder.path().string(), gate.Kernels());
  for (const std::string& url : server.Urls("double")) {
    INFO(url);
    const RemoteProgram remote = Connected(url);
    VirtualMachine vm(remote.program());
    REQUIRE(vm.TrySetInput("x", FloatsOf(1, 4, 1)));
    gate.Shut();
    REQUIRE(vm.TrySetDeadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(30)));
    CHECK(vm.TryInvoke().code() == StatusCode::kDeadlineExceeded);
    gate.Open();
    REQUIRE(vm.TrySetDeadline(std::chrono::steady_clock::time_point::max()));
    gate.Shut();
    // Cancelling does nothing before the run has begun.
    std::atomic<bool> ended{false};
    std::thread stopper([&] {
      while (!ended) {
        vm.Cancel();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    const Status cancelled = vm.TryInvoke();
    ended = true;
    stopper.join();
    CHECK(cancelled.code() == StatusCode::kCancelled);
    gate.Open();
    CHECK(vm.TryInvoke());
  }
}

TEST_CASE("remote: a connection that the server has closed between two runs is opened again") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  FrontEndLimits limits;
  limits.idle_time = std::chrono::seconds(1);
  TestServer server(SettingsOf(folder.path().string()), limits);
  const RemoteProgram remote = Connected("http://127.0.0.1:" + std::to_string(server.port()) + "/double");
  VirtualMachine vm(remote.program());
  REQUIRE(vm.TrySetInput("x", FloatsOf(1, 4, 1)));
  for (int run = 0; run < 3; ++run) {
    const Status done = vm.TryInvoke();
    INFO((done ? "" : done.error().message()));
    CHECK(done);
    if (run == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
}

TEST_CASE("remote: what cannot be connected to is refused with what is expected") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  BothServer server(folder.path().string());
  const auto refused = [](const std::string& url, StatusCode code, const std::string& text) {
    const Result<RemoteProgram> remote = RemoteProgram::TryConnect(url);
    INFO(url);
    REQUIRE_FALSE(remote);
    CHECK(remote.error().code() == code);
    CHECK_THAT(remote.error().message(), Contains(text));
  };
  const auto wrong = StatusCode::kInvalidArgument;
  refused("model.rwx", wrong, "this is no URL of a model");
  refused("http://localhost:8000", wrong, "the model is missing");
  refused("http://localhost/model", wrong, "the server is no HOST:PORT");
  refused("http://localhost:70000/model", wrong, "the server is no HOST:PORT");
  refused("grpc://localhost:8001/", wrong, "the model's name is missing or damaged");
  refused("grpc://localhost:8001/a%2", wrong, "the model's name is missing or damaged");
  refused("grpc://localhost:8001/a/b", wrong, "the version is no number");
  refused("grpc://localhost:8001/a?b", wrong, "its query is unknown");
  refused(server.Http("none"), StatusCode::kNotFound, "there is no model 'none'");
  refused(server.Grpc("none"), StatusCode::kNotFound, "there is no model 'none'");
  refused("http://no-such-host.invalid:80/a", StatusCode::kNotFound,
          "there is no host 'no-such-host.invalid'");
  refused("http://127.0.0.1:1/a", StatusCode::kIo, "cannot connect");
  // Each protocol at the port of the other.
  const std::string http = server.Http("double"), grpc = server.Grpc("double");
  CHECK_FALSE(RemoteProgram::TryConnect("grpc" + http.substr(4)));
  CHECK_FALSE(RemoteProgram::TryConnect("http" + grpc.substr(4)));
  const std::vector<std::int64_t> shape = {1};
  const Result<Tensor> tensor = Connected(http).TryMakeTensor(kFloat32, shape);
  REQUIRE_FALSE(tensor);
  CHECK_THAT(tensor.error().message(), Contains("no memory is shared with the server"));
}

TEST_CASE("remote: names of dimensions come back from their text, and other texts are refused") {
  const std::vector<std::string> symbols = {"N", "7 rows", "", "a,b", "~x", "?"};
  std::vector<Dim> dims = {4, kUnknownDim, 0};
  for (std::uint32_t i = 0; i < symbols.size(); ++i) dims.push_back(SymbolDim(i));
  std::vector<std::string> found;
  const auto parsed = ParseDimNames(DimNamesText({dims.data(), dims.size()}, symbols), &found);
  REQUIRE(parsed);
  CHECK(*parsed == dims);
  CHECK(found == symbols);
  for (const char* text : {"4,,5", "4x", "99999999999999999999", "N%2"}) {
    INFO(text);
    CHECK_FALSE(ParseDimNames(text, &found));
  }
}

}  // namespace
}  // namespace rewire::serve::test
