// SPDX-License-Identifier: Apache-2.0
// Generations of many clients, whose steps run together.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/serve/generate/generation.h"
#include "rewire/tests/serve/generator_models.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;
using Tokens = std::vector<std::int64_t>;

ModelStatistics StatisticsOf(TestServer* server) { return (*server->service()->Statistics("rows", ""))[0]; }

// Waits until so many generations have begun, which run or wait.
void WaitForBegun(TestServer* server, std::uint64_t count) {
  for (int i = 0; i < 6000 && StatisticsOf(server).sequences.active < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(StatisticsOf(server).sequences.active >= count);
}

std::uint64_t LargestBatch(TestServer* server) {
  std::uint64_t largest = 0;
  for (const BatchStatistics& batch : StatisticsOf(server).batches)
    largest = std::max(largest, batch.batch_size);
  return largest;
}

struct AskedRows {
  Tokens prompt;
  int most = 0;
  int seed = 0;

  std::string Body(bool stream) const {
    return json{
        {"model", "rows"}, {"prompt", prompt}, {"max_tokens", most}, {"seed", seed}, {"stream", stream}}
        .dump();
  }
};

std::vector<AskedRows> DrawAsked(std::size_t count) {
  std::mt19937 random(21);
  std::vector<AskedRows> all(count);
  for (AskedRows& one : all) {
    one.prompt.resize(1 + random() % 9);
    for (std::int64_t& token : one.prompt) token = random() % 15;
    one.most = static_cast<int>(1 + random() % 30);
    one.seed = static_cast<int>(random() % 1000);
  }
  return all;
}

Tokens TokensOf(const TestClient::Response& response) {
  Tokens tokens;
  if (response.body.substr(0, 1) == "{") return json::parse(response.body)["choices"][0]["token_ids"];
  for (std::size_t at = 0; (at = response.body.find("data: {", at)) != std::string::npos; ++at) {
    const json event = json::parse(response.body.substr(at + 6, response.body.find("\n\n", at) - at - 6));
    for (const json& token : event["choices"][0]["token_ids"]) tokens.push_back(token);
  }
  return tokens;
}

TEST_CASE("continuous batching: 16 that come and go between steps make the tokens that each makes alone") {
  const std::vector<AskedRows> asked = DrawAsked(16);
  std::vector<Tokens> alone;
  {
    GeneratorModels models;
    const TestServer server(models.settings, {}, models.Kernels());
    TestClient client(server.port());
    for (const AskedRows& one : asked) alone.push_back(TokensOf(client.Post(kCompletions, one.Body(false))));
  }
  for (const std::uint32_t instances : {1U, 2U}) {
    GeneratorModels models;
    ModelSettings& rows = models.settings.models["rows"];
    rows.instances = instances;
    rows.batching.max_batch_size = 8;
    TestServer server(models.settings, {}, models.Kernels());
    models.ShutAt(1);
    std::atomic<int> wrong{0}, given_up{0};
    std::vector<std::thread> clients;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      clients.emplace_back([&, i] {
        std::mt19937 random(static_cast<unsigned>(i));
        for (int turn = 0; turn < 6; ++turn) {
          TestClient client(server.port());
          const bool stream = random() % 2 == 0;
          if (random() % 4 == 0) {
            // One that closes its connection with its first token, or before.
            const std::string body = asked[i].Body(true);
            client.Send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                        std::to_string(body.size()) + "\r\n\r\n" + body);
            if (stream) (void)client.ReadUntil("data: ");
            client.Close();
            ++given_up;
            continue;
          }
          wrong += TokensOf(client.Post(kCompletions, asked[i].Body(stream))) != alone[i] ? 1 : 0;
        }
      });
    }
    // At first all run or wait, so that some begin together. Then each goes on by itself.
    WaitForBegun(&server, 16);
    models.Open();
    for (std::thread& client : clients) client.join();
    CHECK(wrong == 0);
    CHECK(models.failed_batches() == 0);
    CHECK(given_up > 0);
    CHECK(LargestBatch(&server) > 1);
    CHECK(LargestBatch(&server) <= 8);
    for (int i = 0; i < 6000 && StatisticsOf(&server).sequences.active > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(StatisticsOf(&server).sequences.active == 0);
    CHECK(StatisticsOf(&server).sequences.bytes == 0);
  }
}

// A generation and its step that runs.
struct Made {
  std::unique_ptr<Generation> generation;
  std::unique_ptr<TestRequest> step;
  Status status;

  bool goes_on() const { return status && generation->state() == Generation::State::kRuns; }
};

TEST_CASE("continuous batching: one that fails takes none of those that ran with it") {
  GeneratorModels models;
  ModelSettings& rows = models.settings.models["rows"];
  rows.instances = 1;
  rows.batching.max_batch_size = 8;
  rows.generator.end = {};
  const std::unique_ptr<Service> service = ServiceOf(models.settings, models.Kernels());
  GenerationOptions options;
  options.max_tokens = 100;
  options.temperature = 0;
  std::vector<Made> all(6);
  for (std::size_t i = 0; i < all.size(); ++i) {
    // The sum of one is 1001 at its 77th step.
    const Tokens prompt = i == 3 ? Tokens(77, 13) : Tokens{static_cast<std::int64_t>(i), 2};
    auto begun = Generation::Begin(*service->HoldGenerator("rows"), prompt, options);
    REQUIRE(begun);
    all[i].generation = *std::move(begun);
  }
  const auto goes_on = [](const Made& one) { return one.goes_on(); };
  while (std::any_of(all.begin(), all.end(), goes_on)) {
    // The first step runs alone, and the others wait for it and then run together.
    const int runs = models.runs();
    models.ShutAt(runs + 1);
    for (Made& one : all) {
      if (!one.goes_on()) continue;
      one.step = std::make_unique<TestRequest>(1, 0.0F);
      REQUIRE(one.generation->FillStep(one.step.get()));
      service->Submit(one.step.get(), nullptr);
      models.WaitForRuns(runs + 1);
    }
    models.Open();
    for (Made& one : all) {
      if (!one.goes_on()) continue;
      one.step->Wait();
      one.status = one.generation->TakeStep(*one.step);
    }
  }
  CHECK(models.failed_batches() == 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(static_cast<bool>(all[i].status) == (i != 3));
    if (i == 3) {
      CHECK_THAT(all[i].status.error().message(), Contains("the sum is 1001"));
      continue;
    }
    std::int64_t sum = static_cast<std::int64_t>(i) + 2;
    Tokens expected;
    while (expected.size() < 100) {
      expected.push_back(NextToken(sum));
      sum += expected.back();
    }
    const Span<const std::int64_t> made = all[i].generation->made();
    CHECK(Tokens(made.begin(), made.end()) == expected);
  }
}

TEST_CASE("continuous batching: a step of a client's sequence does not run with those of generations") {
  GeneratorModels models;
  ModelSettings& rows = models.settings.models["rows"];
  rows.instances = 1;
  rows.batching.max_batch_size = 8;
  const std::unique_ptr<Service> service = ServiceOf(models.settings, models.Kernels());
  models.ShutAt(1);
  std::vector<Made> all(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].generation = *Generation::Begin(*service->HoldGenerator("rows"), Tokens{2}, GenerationOptions());
    all[i].step = std::make_unique<TestRequest>(1, 0.0F);
    REQUIRE(all[i].generation->FillStep(all[i].step.get()));
    service->Submit(all[i].step.get(), nullptr);
    models.WaitForRuns(1);
  }
  // The same tokens, by a client that keeps its sequence.
  const std::int64_t token = 2, total = 1;
  TestRequest client(1, 0.0F);
  client.model = "rows";
  client.step = {std::int64_t{7}, true, false};
  client.inputs.clear();
  for (const auto& [name, value] : {std::pair("tokens", &token), std::pair("total", &total)}) {
    InputTensor& input = client.inputs.emplace_back();
    input.name = name;
    input.dtype = kInt64;
    if (value == &token) input.shape = {1, 1};
    input.data = {reinterpret_cast<const std::byte*>(value), sizeof *value};
  }
  service->Submit(&client, nullptr);
  models.Open();
  client.Wait();
  INFO(client.message());
  CHECK(client.status);
  CHECK(client.results.size() == 1);
  for (Made& one : all) {
    one.step->Wait();
    CHECK(one.generation->TakeStep(*one.step));
  }
  // One alone, the two that have waited, and the client's.
  const ModelStatistics statistics = (*service->Statistics("rows", ""))[0];
  CHECK(statistics.execution_count == 3);
  REQUIRE(statistics.batches.size() == 2);
  CHECK(statistics.batches[1].batch_size == 2);
  CHECK(statistics.batches[1].compute_infer.count == 1);
}

TEST_CASE("continuous batching: a time limit of the model is that of a whole generation") {
  GeneratorModels models;
  ModelSettings& rows = models.settings.models["rows"];
  rows.generator.end = {};
  rows.generator.context = 1 << 30;
  rows.timeout_us = 200000;
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  json asked = {{"model", "rows"}, {"prompt", {5, 5}}, {"max_tokens", 1 << 30}, {"temperature", 0}};
  const TestClient::Response whole = client.Post(kCompletions, asked.dump());
  CHECK(whole.status == 504);
  CHECK_THAT(whole.body, Contains("deadline passed") || Contains("time was over"));
  asked["stream"] = true;
  const TestClient::Response streamed = client.Post(kCompletions, asked.dump());
  CHECK(streamed.status == 200);
  CHECK_THAT(streamed.body, Contains("data: {\"error\":{\"message\":"));
}

}  // namespace
}  // namespace rewire::serve::test
