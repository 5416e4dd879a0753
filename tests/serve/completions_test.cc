// SPDX-License-Identifier: Apache-2.0
// Models that make tokens, as OpenAI's clients ask them.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/generator_models.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;
using Tokens = std::vector<std::int64_t>;

json Asked(const Tokens& prompt, int most, const std::string& model = "steps") {
  return {{"model", model}, {"prompt", prompt}, {"max_tokens", most}, {"temperature", 0}};
}

// The events of a stream; the last one must be [DONE].
std::vector<json> Events(const TestClient::Response& response) {
  std::vector<json> events;
  std::size_t at = 0;
  while (at < response.body.size()) {
    const std::size_t end = response.body.find("\n\n", at);
    if (end == std::string::npos || response.body.substr(at, 6) != "data: ") return {};
    const std::string data = response.body.substr(at + 6, end - at - 6);
    at = end + 2;
    if (data == "[DONE]") return at == response.body.size() ? events : std::vector<json>();
    events.push_back(json::parse(data));
  }
  return {};
}

// Waits until no sequence is left.
void WaitForEnds(TestServer* server) {
  for (int i = 0; i < 6000 && (*server->service()->Statistics("steps", ""))[0].sequences.active > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK((*server->service()->Statistics("steps", ""))[0].sequences.active == 0);
  CHECK((*server->service()->Statistics("steps", ""))[0].sequences.bytes == 0);
  CHECK(server->service()->in_flight() == 0);
}

TEST_CASE(
    "completions: the likeliest tokens come, whole or one by one, with a state in the server or without") {
  GeneratorModels models;
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  std::mt19937 random(3);
  for (int turn = 0; turn < 60; ++turn) {
    Tokens prompt(1 + random() % 7);
    for (std::int64_t& token : prompt) token = random() % 15;
    const std::size_t most = random() % 12;
    const Tokens expected = TokensBehind(prompt, most);
    const bool stopped = expected.size() < most;
    json asked = Asked(prompt, static_cast<int>(most), turn % 2 == 0 ? "steps" : "whole");
    CAPTURE(asked.dump());
    const TestClient::Response response = client.Post(kCompletions, asked.dump());
    INFO(response.body);
    REQUIRE(response.status == 200);
    const json whole = json::parse(response.body);
    CHECK(whole["object"] == "text_completion");
    CHECK(whole["model"] == asked["model"]);
    REQUIRE(whole["choices"].size() == 1);
    CHECK(whole["choices"][0]["token_ids"] == expected);
    CHECK(whole["choices"][0]["finish_reason"] == (stopped ? "stop" : "length"));
    const std::size_t made = expected.size() + (stopped ? 1 : 0);
    CHECK(whole["usage"] == json{{"prompt_tokens", prompt.size()},
                                 {"completion_tokens", made},
                                 {"total_tokens", prompt.size() + made}});
    asked["stream"] = true;
    const bool usage = turn % 3 == 0;
    if (usage) asked["stream_options"] = {{"include_usage", true}};
    std::vector<json> events = Events(client.Post(kCompletions, asked.dump()));
    REQUIRE(events.size() == expected.size() + (usage ? 2 : 1));
    if (usage) {
      CHECK(events.back()["usage"] == whole["usage"]);
      CHECK(events.back()["choices"].empty());
      events.pop_back();
    }
    CHECK(events.back()["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]);
    events.pop_back();
    for (std::size_t i = 0; i < events.size(); ++i) {
      CHECK(events[i]["choices"][0]["token_ids"] == Tokens{expected[i]});
      CHECK(events[i]["choices"][0]["finish_reason"].is_null());
      CHECK(events[i]["id"] == events[0]["id"]);
    }
  }
  WaitForEnds(&server);
}

TEST_CASE("completions: a seed gives the same tokens again, and a small top_p the likeliest") {
  GeneratorModels models;
  const TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  const auto made = [&](json asked) {
    return json::parse(client.Post(kCompletions, asked.dump()).body)["choices"][0]["token_ids"];
  };
  json asked = Asked({1, 2, 3}, 40);
  const json likeliest = made(asked);
  asked["temperature"] = 2;
  asked["top_p"] = 0.01;
  CHECK(made(asked) == likeliest);
  asked["top_p"] = 1;
  asked["seed"] = 11;
  const json drawn = made(asked);
  CHECK(made(asked) == drawn);
  int others = 0;
  for (int seed = 12; seed < 20; ++seed) {
    asked["seed"] = seed;
    others += made(asked) != drawn ? 1 : 0;
  }
  CHECK(others > 0);
}

TEST_CASE("completions: those of many clients at once are what each gets alone") {
  GeneratorModels models;
  TestServer server(models.settings, {}, models.Kernels());
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      TestClient client(server.port());
      for (int turn = 0; turn < 10; ++turn) {
        const Tokens prompt = {i, turn, 2};
        json asked = Asked(prompt, 30);
        asked["stream"] = turn % 2 == 0;
        const TestClient::Response response = client.Post(kCompletions, asked.dump());
        Tokens made;
        if (turn % 2 != 0) {
          made = json::parse(response.body)["choices"][0]["token_ids"].get<Tokens>();
        } else {
          for (const json& event : Events(response)) {
            for (const json& token : event["choices"][0]["token_ids"]) made.push_back(token);
          }
        }
        wrong += made != TokensBehind(prompt, 30) ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(wrong == 0);
  WaitForEnds(&server);
}

TEST_CASE("completions: a client that closes its connection ends them within one step, and their state") {
  for (const bool stream : {false, true}) {
    GeneratorModels models;
    models.settings.models["steps"].generator.end = {};
    TestServer server(models.settings, {}, models.Kernels());
    models.ShutAt(7);
    TestClient client(server.port());
    json asked = Asked({1, 2}, 1000000);
    asked["stream"] = stream;
    const std::string body = asked.dump();
    client.Send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    models.WaitForRuns(7);
    client.Close();
    // The step waits in its kernel; the server sees the end of the connection meanwhile, or at the next step.
    models.Open();
    WaitForEnds(&server);
    CHECK(models.runs() <= 8);
  }
}

TEST_CASE("completions: a client that does not read stops the steps, and is let go after a time") {
  GeneratorModels models;
  models.settings.models["steps"].generator.end = {};
  models.settings.models["steps"].generator.context = 1 << 30;
  FrontEndLimits limits;
  limits.transfer_time = std::chrono::milliseconds(500);
  TestServer server(models.settings, limits, models.Kernels());
  TestClient slow(server.port(), 4096);
  json asked = Asked({1, 2}, 1 << 30);
  asked["stream"] = true;
  const std::string body = asked.dump();
  slow.Send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n" + body);
  CHECK(slow.ReadHead().status == 200);
  // It never reads again. Without back-pressure, the steps would go on for hours.
  while (server.open_connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  WaitForEnds(&server);
  CHECK(models.runs() < 10000000);
}

TEST_CASE("completions: one that fails behind its first token ends with an event of the error") {
  GeneratorModels models;
  TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  // The token behind this prompt makes the sum 1001.
  json asked = Asked(Tokens(998, 1), 50);
  REQUIRE(998 + NextToken(998) == 1001);
  const TestClient::Response whole = client.Post(kCompletions, asked.dump());
  CHECK(whole.status == 500);
  CHECK_THAT(json::parse(whole.body)["error"]["message"].get<std::string>(), Contains("the sum is 1001"));
  CHECK(json::parse(whole.body)["error"]["type"] == "server_error");
  asked["stream"] = true;
  const TestClient::Response streamed = client.Post(kCompletions, asked.dump());
  CHECK(streamed.status == 200);
  CHECK_THAT(streamed.body, Contains("data: {\"error\":{\"message\":"));
  CHECK_THAT(streamed.body, !Contains("[DONE]"));
  WaitForEnds(&server);
}

TEST_CASE("completions: one goes on with its version while the model is loaded again") {
  GeneratorModels models;
  models.settings.let_clients_load = true;
  TestServer server(models.settings, {}, models.Kernels());
  models.ShutAt(1);  // the first run is not known to be short, so no loop waits for it
  TestClient client(server.port());
  const std::string body = Asked({1, 2}, 12).dump();
  client.Send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  models.WaitForRuns(1);
  TestClient other(server.port());
  CHECK(other.Post("/v2/repository/models/steps/load", "{}").status == 200);
  models.Open();
  const TestClient::Response response = client.Read();
  REQUIRE(response.status == 200);
  CHECK(json::parse(response.body)["choices"][0]["token_ids"] == TokensBehind({1, 2}, 12));
}

TEST_CASE("completions: more at once than a model may have are refused, and none gives its place away") {
  GeneratorModels models;
  models.settings.models["steps"].sequence.max_sequences = 1;
  models.settings.models["steps"].sequence.idle_us = 1;
  TestServer server(models.settings, {}, models.Kernels());
  models.ShutAt(1);
  TestClient client(server.port());
  const std::string body = Asked({1, 2}, 12).dump();
  client.Send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  models.WaitForRuns(1);
  TestClient other(server.port());
  const TestClient::Response refused = other.Post(kCompletions, body);
  CHECK(refused.status == 503);
  CHECK_THAT(refused.body, Contains("model 'steps' has 1 sequences"));
  models.Open();
  CHECK(client.Read().status == 200);
  WaitForEnds(&server);
  CHECK(other.Post(kCompletions, body).status == 200);
}

TEST_CASE("completions: what is wrong or not there is refused by name, in OpenAI's form") {
  GeneratorModels models;
  const TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  struct Row {
    json change;
    int status;
    std::string words;
  };
  const std::vector<Row> rows = {
      {{{"model", nullptr}}, 400, "'model' must be the name of a model"},
      {{{"model", "other"}}, 404, "there is no model 'other'"},
      {{{"model", "double"}}, 501, "model 'double' makes no tokens"},
      {{{"prompt", "a text"}}, 501, "model 'steps' has no tokenizer (generator.tokenizer)"},
      {{{"prompt", json::array()}}, 400, "the prompt has no tokens"},
      {{{"prompt", {1, 16}}}, 400, "the prompt has the token 16, which model 'steps' does not have"},
      {{{"prompt", {1, -1}}}, 400, "the prompt has the token -1"},
      {{{"prompt", {1, "a"}}}, 400, "'prompt' must be a list of tokens, or a text"},
      {{{"prompt", 5}}, 400, "'prompt' must be a list of tokens, or a text"},
      {{{"prompt", {{1, 2}, {3}}}}, 501, "several prompts in one request are not supported"},
      {{{"model", "whole"}, {"prompt", Tokens(24, 1)}},
       400,
       "the prompt has 24 tokens, and model 'whole' takes 24"},
      {{{"max_tokens", -1}}, 400, "'max_tokens' must be a whole number"},
      {{{"temperature", 2.5}}, 400, "'temperature' must be a number from 0 to 2"},
      {{{"temperature", "a"}}, 400, "'temperature' must be a number from 0 to 2"},
      {{{"top_p", 1.5}}, 400, "'top_p' must be a number from 0 to 1"},
      {{{"seed", 0.5}}, 400, "'seed' must be a whole number"},
      {{{"stream", 1}}, 400, "'stream' must be true or false"},
      {{{"stream_options", 1}}, 400, "'stream_options' must be an object"},
      {{{"stream_options", {{"include_usage", 1}}}},
       400,
       "'stream_options' must be an object of true and false"},
      {{{"stream_options", {{"other", true}}}}, 501, "'other' among 'stream_options' is not supported"},
      {{{"n", 2}}, 501, "the parameter 'n' is not supported: leave it out, or give 1"},
      {{{"best_of", 2}}, 501, "the parameter 'best_of' is not supported"},
      {{{"echo", true}}, 501, "the parameter 'echo' is not supported"},
      {{{"logprobs", 1}}, 501, "the parameter 'logprobs' is not supported"},
      {{{"logit_bias", {{"5", 1}}}}, 501, "the parameter 'logit_bias' is not supported"},
      {{{"presence_penalty", 1}}, 501, "the parameter 'presence_penalty' is not supported"},
      {{{"stop", {"a"}}}, 501, "model 'steps' has no tokenizer (generator.tokenizer)"},
      {{{"stop", ""}}, 400, "'stop' must be a text, or a list of at most 4 texts"},
      {{{"stop", {"a", "b", "c", "d", "e"}}}, 400, "'stop' must be a text, or a list of at most 4 texts"},
      {{{"stop", {1}}}, 400, "'stop' must be a text, or a list of at most 4 texts"},
      {{{"messages", json::array()}}, 501, "the parameter 'messages' is not supported"},
      {{{"nonsense", 1}}, 501, "the parameter 'nonsense' is not supported"},
  };
  for (const Row& row : rows) {
    json asked = Asked({1, 2}, 3);
    asked.update(row.change);
    CAPTURE(asked.dump());
    const TestClient::Response response = client.Post(kCompletions, asked.dump());
    INFO(response.body);
    CHECK(response.status == row.status);
    const json error = json::parse(response.body)["error"];
    CHECK_THAT(error["message"].get<std::string>(), Contains(row.words));
    CHECK(error["type"] == (row.status == 404  ? "not_found_error"
                            : row.status < 500 ? "invalid_request_error"
                                               : "server_error"));
  }
  json same = Asked({1, 2}, 3);
  same.update({{"n", 1},
               {"best_of", 1.0},
               {"echo", false},
               {"logprobs", nullptr},
               {"presence_penalty", 0},
               {"user", "me"},
               {"stream", nullptr},
               {"seed", nullptr},
               {"stop", nullptr},
               {"suffix", ""}});
  CHECK(client.Post(kCompletions, same.dump()).status == 200);
  CHECK_THAT(client.Post(kCompletions, "{").body,
             Contains("{\"error\":{\"message\":\"the request is no JSON"));
  CHECK_THAT(client.Post(kCompletions, "[]").body, Contains("the request must be an object"));
  CHECK_THAT(client.Post(kCompletions, R"({"model": "steps"})").body, Contains("'prompt' must be"));
  CHECK_THAT(
      client.Get("/v1/embeddings").body,
      Contains(
          R"({"error":{"message":"there is nothing at the path '/v1/embeddings'","type":"not_found_error")"));
  CHECK(client.Get(kCompletions).status == 405);
}

TEST_CASE("completions: models that make tokens are listed, and no others") {
  GeneratorModels models;
  const TestServer server(models.settings, {}, models.Kernels());
  TestClient client(server.port());
  const json list = json::parse(client.Get("/v1/models").body);
  CHECK(list["object"] == "list");
  REQUIRE(list["data"].size() == 3);
  CHECK(list["data"][0]["id"] == "rows");
  CHECK(list["data"][1]["id"] == "steps");
  CHECK(list["data"][2]["id"] == "whole");
  CHECK(json::parse(client.Get("/v1/models/whole").body) == list["data"][2]);
  CHECK(client.Get("/v1/models/double").status == 404);
  CHECK(client.Get("/v1/models/other").status == 404);
}

TEST_CASE("generator: settings that do not fit the model are refused by name") {
  struct Row {
    std::string model;
    std::function<void(ModelSettings*)> change;
    std::string words;
  };
  const std::vector<Row> rows = {
      {"steps", [](ModelSettings* s) { s->generator.tokens = "token"; },
       "generator.tokens: the model has no input 'token'; did you mean 'tokens'?"},
      {"steps", [](ModelSettings* s) { s->generator.logits = "other"; },
       "generator.logits: the model has no output 'other'"},
      {"steps", [](ModelSettings* s) { s->generator.logits = "present"; },
       "generator.logits: output 'present' is INT64 of 2 dimensions; FP32 of at least 1 is expected"},
      {"steps", [](ModelSettings* s) { s->sequence.state.clear(); }, "nothing gives input 'past'"},
      {"whole", [](ModelSettings* s) { s->generator.mask = ""; }, "nothing gives input 'mask'"},
      {"whole", [](ModelSettings* s) { s->generator.positions = "total"; },
       "generator.positions: input 'total' is INT64 of 0 dimensions; INT64 or INT32 of 1 to 2 is expected"},
      {"double", [](ModelSettings* s) { s->generator.tokens = s->generator.logits = "x"; },
       "generator.tokens: input 'x' is FP32 of 2 dimensions"},
      {"steps",
       [](ModelSettings* s) {
         s->sequence.state = {{"pre*", "post*"}};
       },
       "sequence.state: the model has no input 'postsent'"},
      {"steps",
       [](ModelSettings* s) {
         s->sequence.state = {{"x*", "y*"}};
       },
       "sequence.state: the model has no output 'x*'"},
  };
  for (const Row& row : rows) {
    GeneratorModels models;
    row.change(&models.settings.models[row.model]);
    const Result<std::unique_ptr<Service>> service = MakeService(models.settings, {{}, models.Kernels()});
    REQUIRE_FALSE(service);
    CHECK_THAT(service.error().message(), Contains(row.words));
  }
}

}  // namespace
}  // namespace rewire::serve::test
