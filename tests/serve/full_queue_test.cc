// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/serve/both_server.h"
#include "rewire/tests/serve/remote_fixture.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

TEST_CASE("remote: a full queue refuses over every transport, and those that wait are answered") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram("test.gate"));
  ServeSettings settings = SettingsOf(folder.path().string());
  settings.defaults.instances = 1;
  settings.defaults.max_queue_size = 2;
  Gate gate;
  gate.Shut();
  BothServer server(settings, gate.Kernels());
  const std::vector<std::int64_t> shape = {1, 4};
  const Tensor x = *Tensor::Make(kFloat32, shape);
  for (int i = 0; i < 4; ++i) x.data<float>()[i] = static_cast<float>(i + 1);
  const Value input = x;
  const auto run = [&](const std::string& url) { return Connected(url).program().TryRun({}, {&input, 1}); };
  const auto waiting = [&] { return (*server.service()->Statistics("double", ""))[0].waiting; };
  // One runs, and one of each protocol waits.
  std::vector<Result<Value>> answers(3, Fail(StatusCode::kInternal, "no answer"));
  std::vector<std::thread> clients;
  const std::string urls[] = {server.Http("double"), server.Http("double"), server.Grpc("double")};
  for (std::size_t i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] {
      answers[i] = RemoteProgram::TryConnect(urls[i])->program().TryRun({}, {&input, 1});
    });
    if (i == 0) gate.WaitForRuns(1);
    for (int turn = 0; turn < 6000 && waiting() < i; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(waiting() == 2);
  for (const std::string& url : server.Urls("double")) {
    INFO(url);
    const Result<Value> refused = run(url);
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message(),
               Catch::Contains("the queue of model 'double' is full: 2 requests wait"));
  }
  gate.Open();
  for (std::thread& client : clients) client.join();
  for (const Result<Value>& answer : answers) {
    REQUIRE(answer);
    CHECK(answer->tensor().data<float>()[3] == 8);
  }
  for (const std::string& url : server.Urls("double")) CHECK(run(url));
}

}  // namespace
}  // namespace rewire::serve::test
