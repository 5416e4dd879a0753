// SPDX-License-Identifier: Apache-2.0
// Models whose executables are not trusted, each run of which is in a process of its own.
#include <dirent.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/tests/serve/sandbox/library_path.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// Runs for as long as x is 1.
constexpr char kWaits[] = R"(.func main(x: i64[1]) -> y: i64[1]
  %one = load_consti 1
again:
  %two = load_consti 2
  if %x == %one goto again else done
done:
  ret %x
.end
)";
// Its result has a size that only the run knows.
constexpr char kEcho[] = ".func main(x: f32[?, 4]) -> y: f32[?, 4]\n  ret %x\n.end\n";

// The processes of sandboxes that this one has.
std::vector<pid_t> Workers() {
  std::vector<pid_t> workers;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string number, name, state;
    pid_t parent = 0;
    if (file >> number >> name >> state >> parent && parent == getpid() && name == "(rewire-sandbox)" &&
        state != "Z")
      workers.push_back(std::stoi(number));
  }
  return workers;
}

class SandboxServer {
 public:
  explicit SandboxServer(const std::string& program, const SandboxSettings& settings = {},
                         std::uint32_t instances = 1)
      : server_(Settings(program, settings, instances)), client_(server_.port()) {}
  TestClient& client() { return client_; }
  int port() const { return server_.port(); }
  TestClient::Response Ask(const std::string& x, const std::string& more = "") {
    return AskOver(&client_, x, more);
  }
  static TestClient::Response AskOver(TestClient* client, const std::string& x,
                                      const std::string& more = "") {
    return client->Post(
        "/v2/models/model/infer",
        R"({"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [)" + x + "]}]" + more + "}");
  }

 private:
  ServeSettings Settings(const std::string& program, const SandboxSettings& sandbox,
                         std::uint32_t instances) {
    ServeSettings settings = SettingsOf(WriteModel(folder_, "model.rwx", program));
    settings.defaults.sandbox = sandbox;
    settings.defaults.sandbox.enabled = true;
    settings.defaults.instances = instances;
    return settings;
  }
  rewire::test::TempFolder folder_;
  TestServer server_;
  TestClient client_;
};

std::string LoadError(const std::string& name, const std::string& content) {
  const rewire::test::TempFolder folder;
  ServeSettings settings = SettingsOf(folder.Write(name, content));
  settings.defaults.sandbox.enabled = true;
  const Result<std::unique_ptr<Service>> service = MakeService(settings);
  return service ? "" : service.error().message();
}

TEST_CASE("sandbox: a model gives what it gives without, in batches and with results of any size") {
  for (const std::string& program : {DoubleProgram(), std::string(kEcho)}) {
    const rewire::test::TempFolder folder;
    ServeSettings settings = SettingsOf(WriteModel(folder, "double.rwx", program));
    settings.defaults.sandbox.enabled = true;
    settings.defaults.instances = 2;
    settings.defaults.threads = 2;
    if (program != kEcho) settings.defaults.batching.max_batch_size = 8;
    const std::unique_ptr<Service> service = ServiceOf(settings);
    for (const std::int64_t rows : {1, 3, 0, 8, 2}) {
      TestRequest request(rows, 1);
      service->Submit(&request, nullptr);
      request.Wait();
      REQUIRE(request.message().empty());
      std::vector<float> given(static_cast<std::size_t>(rows) * 4);
      for (std::size_t i = 0; i < given.size(); ++i) given[i] = 1 + static_cast<float>(i);
      CHECK(request.Floats() == (program == kEcho ? given : request.Doubled()));
      CHECK(request.results[0].shape == std::vector<std::int64_t>{rows, 4});
    }
    // Results of megabytes, for which the shared memory grows.
    if (program == kEcho) {
      TestRequest request(300000, 1);
      service->Submit(&request, nullptr);
      request.Wait();
      CHECK(request.message().empty());
      CHECK(request.Floats().back() == 1200000);
    }
  }
}

TEST_CASE("sandbox: a process that is killed in a run fails that request alone") {
  SandboxServer server(kWaits);
  CHECK(server.Ask("2").status == 200);
  REQUIRE(Workers().size() == 1);
  const pid_t first = Workers()[0];
  TestClient::Response failed;
  std::thread waits([&] {
    TestClient client(server.port());
    failed = SandboxServer::AskOver(&client, "1");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(first, SIGKILL);
  waits.join();
  CHECK(failed.status == 500);
  CHECK_THAT(failed.body, Contains("the process of the sandbox was ended by signal 9 (Killed)"));
  CHECK(server.Ask("3").status == 200);
  REQUIRE(Workers().size() == 1);
  CHECK(Workers()[0] != first);
}

TEST_CASE("sandbox: a process that is killed between two requests fails none") {
  SandboxServer server(kWaits);
  for (int i = 0; i < 3; ++i) {
    CHECK(server.Ask("2").status == 200);
    REQUIRE(Workers().size() == 1);
    kill(Workers()[0], SIGKILL);
    for (int turn = 0; turn < 1000 && !Workers().empty(); ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_CASE("sandbox: a run that is late or whose client has gone ends with its process, and others go on") {
  SandboxServer server(kWaits, {}, 2);
  CHECK(server.Ask("1", R"(, "parameters": {"timeout": 100000})").status == 504);
  CHECK(server.Ask("2").status == 200);
  {
    TestClient client(server.port());
    const std::string body = R"({"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [1]}]})";
    client.Send("POST /v2/models/model/infer HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(server.Ask("2").status == 200);
  CHECK(server.Ask("2").status == 200);
}

TEST_CASE("sandbox: a run has a limit of CPU time") {
  SandboxSettings settings;
  settings.cpu_seconds = 1;
  SandboxServer server(kWaits, settings);
  TestClient::Response failed = server.Ask("1");
  // A client gives up before, where other work has the CPU.
  for (int turn = 0; turn < 9 && failed.status == 0; ++turn) failed = server.client().Read();
  CHECK(failed.status == 500);
  CHECK_THAT(failed.body, Contains("it has taken more CPU time than cpu_seconds"));
  CHECK(server.Ask("2").status == 200);
}

TEST_CASE("sandbox: limits of a run count in its process, and its errors are told") {
  const rewire::test::TempFolder folder;
  ServeSettings settings = SettingsOf(WriteModel(folder, "model.rwx", kWaits));
  settings.defaults.sandbox.enabled = true;
  settings.defaults.steps = 1000;
  TestServer server(settings);
  TestClient client(server.port());
  const TestClient::Response failed = SandboxServer::AskOver(&client, "1");
  CHECK(failed.status == 500);
  CHECK_THAT(failed.body, Contains("the limit of 1000 instructions is used up"));
  CHECK(SandboxServer::AskOver(&client, "2").status == 200);
}

TEST_CASE("sandbox: a process has as much memory as its settings say") {
  const std::string takes = R"(.kernel add = "rewire.add"
.func main(x: i64[1]) -> y: i64[1]
  %bytes = load_consti 400000000
  %storage = alloc_storage %bytes, alignment=64, i64, cpu
  %big = alloc_tensor %storage, _, i64[50000000]
  %small = load_consti 8
  %place = alloc_storage %small, alignment=64, i64, cpu
  %y = alloc_tensor %place, _, i64[1]
  invoke_packed add(%x, %x, %y), outputs=1
  ret %y
.end
)";
  SandboxSettings settings;
  settings.memory_bytes = 100000000;
  SandboxServer small(takes, settings);
  const TestClient::Response failed = small.Ask("2");
#ifndef REWIRE_SANITIZED  // then the limit is not set
  CHECK(failed.status == 500);
  CHECK_THAT(failed.body, Contains("the allocator has no 400000000 bytes"));
#endif
  settings.memory_bytes = 1000000000;
  SandboxServer large(takes, settings);
  CHECK(large.Ask("2").status == 200);
}

TEST_CASE("sandbox: what it cannot load is refused with a reason") {
  CHECK_THAT(LoadError("model.rwx", "nothing"), Contains("model.rwx: "));
  CHECK_THAT(LoadError("model.rwx", ""), Contains("the file is empty"));
  const rewire::test::TempFolder folder;
  std::ifstream file(WriteModel(folder, "gate.rwx", DoubleProgram("test.gate")), std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  CHECK_THAT(LoadError("model.rwx", bytes.str()), Contains("test.gate"));
  CHECK(Workers().empty());
}

// In place of the program of a sandbox: it says what the files beside it hold.
constexpr char kLiar[] = R"(#!/usr/bin/python3
import pathlib, socket, sys
folder = pathlib.Path(sys.argv[0]).parent
server = socket.socket(fileno=3)
server.send((folder / "ready").read_bytes())
while server.recv(1 << 17):
    answer = (folder / "answer").read_bytes()
    if not answer:
        sys.exit(0)
    server.send(answer)
)";

TEST_CASE("sandbox: a process that lies about its outputs fails its request alone") {
  const rewire::test::TempFolder folder;
  fs::permissions(folder.Write("rewire-sandbox", kLiar), fs::perms::owner_all);
  const RemoteSignature signature = {{{"x", kFloat32, {-1, 4}, "?,4"}}, {{"y", kFloat32, {-1, 4}, "?,4"}}};
  folder.Write("ready", EncodeReady(signature));
  const LibraryPath path(folder.path().string());
  ServeSettings settings = SettingsOf(WriteModel(folder, "double.rwx", kEcho));
  settings.defaults.sandbox.enabled = true;
  const std::unique_ptr<Service> service = ServiceOf(settings);
  struct Row {
    std::string answer;
    const char* words;
  };
  const SandboxTensor right = {{1, 4}, kNotPlaced, 16};
  const Row rows[] = {
      {EncodeDone({{{1, 4}, kNotPlaced, std::uint64_t{1} << 60}}), "the sandbox says that it has"},
      {EncodeDone({right, right}), "another number of outputs"},
      {EncodeDone({}), "another number of outputs"},
      {EncodeDone({{{1, 4}, kNotPlaced, 64}}), "is not of the type that the model says"},
      {EncodeDone({{{-1, 4}, kNotPlaced, 16}}), "is not of the type that the model says"},
      {EncodeDone({{{4}, kNotPlaced, 16}}), "is not of the type that the model says"},
      {EncodeReady(signature), "the message is of another kind"},
      {EncodeDone({right}) + "more", "the message is damaged"},
      {std::string(1 << 17, 'a') + "b", "the answer of the sandbox is too long"},
      {"", "the process of the sandbox has ended"},
  };
  for (const Row& row : rows) {
    folder.Write("answer", row.answer);
    TestRequest request(1, 1);
    service->Submit(&request, nullptr);
    request.Wait();
    CHECK(request.status.code() == StatusCode::kKernelFailed);
    CHECK_THAT(request.message(), Contains(row.words));
  }
}

TEST_CASE("sandbox: damaged messages of a process are refused, and read as far as they go") {
  const RemoteSignature signature = {{{"x", kFloat32, {-1, 4}, "N,4"}}, {{"y", kFloat32, {-1, 4}, "N,4"}}};
  const std::string messages[] = {EncodeReady(signature), EncodeDone({{{1, 4}, 64, 16}, {{}, kNotPlaced, 4}}),
                                  EncodeFailed(Error(StatusCode::kKernelFailed, "a kernel failed")),
                                  EncodeCompiled(4096)};
  CHECK(DecodeReady(messages[0])->outputs[0].dims == "N,4");
  CHECK((*DecodeDone(messages[1]))[0].shape == std::vector<std::int64_t>{1, 4});
  CHECK(DecodeDone(messages[2]).error().message() == "a kernel failed");
  CHECK(*DecodeCompiled(messages[3]) == 4096);
  CHECK(DecodeDone(messages[0]).error().code() == StatusCode::kInvalidFile);
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 60000; ++i) {
    std::string text = messages[random() % 4];
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 4 == 0) {
        text.resize(at + 1);
      } else {
        text[at] = static_cast<char>(random());
      }
    }
    // A copy of exactly this size, so that a sanitizer sees a read behind it.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view message(exact.data(), exact.size());
    refused += DecodeReady(message) ? 0 : 1;
    refused += DecodeDone(message) ? 0 : 1;
    refused += DecodeCompiled(message) ? 0 : 1;
  }
  CHECK(refused > 120000);
}

}  // namespace
}  // namespace rewire::serve::test
