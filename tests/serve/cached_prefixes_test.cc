// SPDX-License-Identifier: Apache-2.0
// Generations whose caches grow with their texts, and which share what prompts have in common.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/cache_models.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;
using Tokens = std::vector<std::int64_t>;

Tokens DrawTokens(std::mt19937* random, std::size_t count) {
  Tokens tokens(count);
  for (std::int64_t& token : tokens) token = static_cast<std::int64_t>((*random)() % 15);
  return tokens;
}

Tokens Joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string Body(const std::string& model, const Tokens& prompt, std::size_t most) {
  return json{{"model", model}, {"prompt", prompt}, {"max_tokens", most}, {"temperature", 0}}.dump();
}

// The answer, whose tokens must be those of the prompt.
json Ask(TestClient* client, const std::string& model, const Tokens& prompt, std::size_t most) {
  const TestClient::Response response = client->Post("/v1/completions", Body(model, prompt, most));
  INFO(response.body);
  REQUIRE(response.status == 200);
  const json answer = json::parse(response.body);
  CHECK(answer["choices"][0]["token_ids"] == CacheTokensBehind(prompt, most));
  return answer;
}

std::int64_t Reused(const json& answer) { return answer["usage"]["prompt_tokens_details"]["cached_tokens"]; }

ModelStatistics StatisticsOf(TestServer* server, const std::string& model) {
  return (*server->service()->Statistics(model, ""))[0];
}

TEST_CASE(
    "prefixes: what prompts have in common is read once, in whole blocks, and the tokens are the same") {
  CacheModels models;
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  std::mt19937 random(5);
  for (const char* const model : {"room", "grown"}) {
    CAPTURE(model);
    const Tokens system = DrawTokens(&random, 100);
    models.TakeRead();
    CHECK(Reused(Ask(&client, model, system, 5)) == 0);
    CHECK(models.TakeRead() == 104);
    // The first 96 tokens are 6 blocks of 16.
    for (int turn = 0; turn < 3; ++turn) {
      const Tokens prompt = Joined(system, DrawTokens(&random, 30));
      CHECK(Reused(Ask(&client, model, prompt, 5)) == 96);
      CHECK(models.TakeRead() == 130 - 96 + 4);
      // The same again has two blocks of its own.
      CHECK(Reused(Ask(&client, model, prompt, 5)) == 128);
      CHECK(models.TakeRead() == 130 - 128 + 4);
    }
    // A prompt that is kept whole still reads its last token, and with it the last block.
    const Tokens whole = DrawTokens(&random, 32);
    Ask(&client, model, whole, 1);
    CHECK(Reused(Ask(&client, model, whole, 1)) == 16);
    // One that differs in its 17th token shares a block, and one that differs in its first none.
    Tokens other = whole;
    other[16] = (other[16] + 1) % 15;
    CHECK(Reused(Ask(&client, model, other, 3)) == 16);
    other[0] = (other[0] + 1) % 15;
    CHECK(Reused(Ask(&client, model, other, 3)) == 0);
  }
  const TestClient::Response metrics = client.Get("/metrics");
  CHECK_THAT(metrics.body, Contains("rewire_prompt_tokens_reused_total{model=\"room\",version=\"1\"} 704"));
}

TEST_CASE("prefixes: a conversation reads only what is new to the last prompt") {
  CacheModels models;
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  std::mt19937 random(6);
  Tokens text = DrawTokens(&random, 40);
  std::size_t last = 0;
  for (int turn = 0; turn < 6; ++turn) {
    const json answer = Ask(&client, "room", text, 10);
    CHECK(Reused(answer) == static_cast<std::int64_t>(last / 16 * 16));
    last = text.size();
    text = Joined(text, answer["choices"][0]["token_ids"].get<Tokens>());
    text = Joined(text, DrawTokens(&random, 9));
  }
}

TEST_CASE("prefixes: blocks that were used longest ago go when there is no memory for all") {
  CacheModels models;
  constexpr std::uint64_t kBlockBytes = 2 * 16 * 16 * 8;
  models.settings.models["room"].generator.prefix_bytes = 5 * kBlockBytes;
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  std::mt19937 random(7);
  const Tokens a = DrawTokens(&random, 33), b = DrawTokens(&random, 33), c = DrawTokens(&random, 33);
  Ask(&client, "room", a, 2);
  Ask(&client, "room", b, 2);
  CHECK(Reused(Ask(&client, "room", a, 2)) == 32);  // now b is the older one
  CHECK(StatisticsOf(&server, "room").prefixes.bytes == 4 * kBlockBytes);
  Ask(&client, "room", c, 2);
  const PrefixStatistics prefixes = StatisticsOf(&server, "room").prefixes;
  CHECK(prefixes.bytes == 5 * kBlockBytes);
  CHECK(prefixes.evicted == 1);
  CHECK(Reused(Ask(&client, "room", a, 2)) == 32);
  CHECK(Reused(Ask(&client, "room", b, 2)) == 16);  // its first block is still there
  // A prompt with more blocks than there may be keeps its first ones.
  const Tokens large = DrawTokens(&random, 200);
  Ask(&client, "room", large, 2);
  CHECK(StatisticsOf(&server, "room").prefixes.bytes == 5 * kBlockBytes);
  CHECK(Reused(Ask(&client, "room", large, 2)) == 80);
}

TEST_CASE("prefixes: clients at once get what each gets alone, while blocks come and go") {
  CacheModels models;
  ModelSettings& room = models.settings.models["room"];
  room.batching.max_batch_size = 4;
  for (const std::uint32_t instances : {1U, 2U}) {
    room.instances = instances;
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{7 * 4096}, std::uint64_t{1} << 24}) {
      CAPTURE(instances, bytes);
      room.generator.prefix_bytes = bytes;
      TestServer server(models.settings, {}, models.Kernels());
      std::mt19937 drawn(8);
      std::vector<Tokens> systems;
      for (const std::size_t size : {20U, 40U, 90U}) systems.push_back(DrawTokens(&drawn, size));
      std::atomic<int> wrong{0};
      std::vector<std::thread> clients;
      for (unsigned i = 0; i < 8; ++i) {
        clients.emplace_back([&, i] {
          std::mt19937 random(i);
          TestClient client(server.port());
          for (int turn = 0; turn < 8; ++turn) {
            // Some answers cross 64 and 128 positions, where caches grow.
            const Tokens prompt = Joined(systems[random() % 3], DrawTokens(&random, 1 + random() % 40));
            const std::size_t most = 1 + random() % 60;
            const TestClient::Response response = client.Post("/v1/completions", Body("room", prompt, most));
            const bool right =
                response.status == 200 &&
                json::parse(response.body)["choices"][0]["token_ids"] == CacheTokensBehind(prompt, most);
            wrong += right ? 0 : 1;
          }
        });
      }
      for (std::thread& client : clients) client.join();
      CHECK(wrong == 0);
      const ModelStatistics statistics = StatisticsOf(&server, "room");
      CHECK(statistics.prefixes.bytes <= bytes);
      CHECK((statistics.prefixes.reused_tokens > 0) == (bytes != 0));
      CHECK(std::any_of(statistics.batches.begin(), statistics.batches.end(),
                        [](const BatchStatistics& batch) { return batch.batch_size > 1; }));
    }
  }
}

TEST_CASE("caches: a state has room for its positions and not for all that the model may have") {
  CacheModels models;
  models.settings.models["room"].sequence.sizes = {{"C", 500}};  // of sequences of clients
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  const auto most_room = [&](std::size_t prompt, std::size_t most) {
    Ask(&client, "room", Tokens(prompt, 3), most);
    return models.most_room();
  };
  CHECK(most_room(1, 60) == 64);
  CHECK(most_room(64, 1) == 64);
  CHECK(most_room(60, 6) == 128);
  CHECK(most_room(1, 200) == 256);
  CHECK(most_room(300, 150) == 500);  // the context
}

TEST_CASE("caches: settings that do not fit the model are refused by name") {
  struct Row {
    std::string model;
    std::function<void(ModelSettings*)> change;
    std::string words;
  };
  const std::vector<Row> rows = {
      {"room", [](ModelSettings* s) { s->generator.cache_dimension = "D"; },
       "generator.cache_dimension: the model has no dimension 'D'"},
      {"room", [](ModelSettings* s) { s->generator.cache_dimension = "S"; },
       "'S' is 1 times a dimension of input 'tokens'; it is expected once in each input of sequence.state"},
      {"room", [](ModelSettings* s) { s->generator.cache_dimension = "N"; },
       "'N' is 1 times a dimension of input 'tokens'"},
  };
  for (const Row& row : rows) {
    CacheModels models;
    row.change(&models.settings.models[row.model]);
    const Result<std::unique_ptr<Service>> service = MakeService(models.settings, {{}, models.Kernels()});
    REQUIRE_FALSE(service);
    CHECK_THAT(service.error().message(), Contains(row.words));
  }
}

}  // namespace
}  // namespace rewire::serve::test
