// SPDX-License-Identifier: Apache-2.0
// Generators with a tokenizer: prompts as texts, conversations, and texts that end an answer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/serve/generate/tokenizer.h"
#include "rewire/tests/serve/generator_models.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/serve/word_tokenizer.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;
using Tokens = std::vector<std::int64_t>;

// A server whose model `steps` has a tokenizer. Tests end at once where SentencePiece is missing.
class TextServer {
 public:
  TextServer() {
    GeneratorSettings& steps = models_.settings.models["steps"].generator;
    steps.tokenizer = WriteTokenizer(folder_);
    steps.begin = {1};
    steps.roles = {{"system", "k"}, {"user", "f"}, {"assistant", "g"}};
    steps.message_end = "h";
    Result<std::shared_ptr<const Tokenizer>> tokenizer = OpenTokenizer(steps.tokenizer);
    if (!tokenizer && tokenizer.error().code() == StatusCode::kUnsupported) {
      WARN("skipped: " << tokenizer.error().message());
      return;
    }
    REQUIRE(tokenizer);
    tokenizer_ = *std::move(tokenizer);
    server_.emplace(models_.settings, FrontEndLimits(), models_.Kernels());
    client_.emplace(server_->port());
  }
  bool is_there() const { return tokenizer_ != nullptr; }
  json Ask(const std::string& path, const json& asked, int status = 200) {
    const TestClient::Response response = client_->Post(path, asked.dump());
    INFO(asked.dump() << "\n" << response.body);
    REQUIRE(response.status == status);
    return json::parse(response.body);
  }
  std::string Text(const std::string& path, const json& asked) {
    return client_->Post(path, asked.dump()).body;
  }
  Tokens Prompt(const std::string& text) const {
    Tokens tokens = *tokenizer_->Encode(text);
    tokens.insert(tokens.begin(), 1);
    return tokens;
  }
  // The text that an answer adds to a prompt.
  std::string AddedBy(Tokens tokens, const Tokens& made) const {
    const std::string before = *tokenizer_->Decode({tokens.data(), tokens.size()});
    tokens.insert(tokens.end(), made.begin(), made.end());
    return tokenizer_->Decode({tokens.data(), tokens.size()})->substr(before.size());
  }

 private:
  const rewire::test::TempFolder folder_;
  GeneratorModels models_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<TestServer> server_;
  std::optional<TestClient> client_;
};

json Asked(const char* key, const json& prompt, int most) {
  return {{"model", "steps"}, {key, prompt}, {"max_tokens", most}, {"temperature", 0}};
}

// The objects of the events of a stream, but [DONE].
std::vector<json> EventsOf(const std::string& body) {
  std::vector<json> events;
  for (std::size_t at = body.find("data: "); at != std::string::npos; at = body.find("data: ", at + 1)) {
    const std::string data = body.substr(at + 6, body.find("\n\n", at) - at - 6);
    if (data != "[DONE]") events.push_back(json::parse(data));
  }
  return events;
}

std::string DrawText(std::mt19937* random) {
  std::string text;
  for (std::size_t i = 1 + (*random)() % 6; i > 0; --i) text += "abc "[(*random)() % 4];
  return text;
}

TEST_CASE(
    "texts: a prompt that is a text is continued by a text, whole or in parts, up to one that ends it") {
  TextServer server;
  if (!server.is_there()) return;
  std::mt19937 random(5);
  int stopped = 0;
  for (int turn = 0; turn < 40; ++turn) {
    const std::string prompt = DrawText(&random);
    const Tokens tokens = server.Prompt(prompt);
    json asked = {{"model", "steps"}, {"prompt", prompt}, {"max_tokens", 12}, {"seed", turn}};
    const json whole = server.Ask("/v1/completions", asked);
    const Tokens made = whole["choices"][0]["token_ids"];
    const std::string expected = server.AddedBy(tokens, made);
    CAPTURE(prompt, expected);
    CHECK(whole["choices"][0]["text"] == expected);
    CHECK(whole["usage"]["prompt_tokens"] == tokens.size());
    // The same for the prompt's tokens.
    json by_tokens = asked;
    by_tokens["prompt"] = tokens;
    CHECK(server.Ask("/v1/completions", by_tokens)["choices"] == whole["choices"]);
    asked["stream"] = true;
    std::string parts;
    for (const json& event : EventsOf(server.Text("/v1/completions", asked))) {
      parts += event["choices"][0]["text"];
    }
    CHECK(parts == expected);
    // Two characters of ASCII, so that none is cut.
    const auto other = std::find_if(expected.begin(), expected.end(), [](char c) { return (c & 0x80) != 0; });
    const auto ascii = static_cast<std::size_t>(other - expected.begin());
    if (ascii < 3) continue;
    const std::string stop = expected.substr(ascii / 2, 2);
    asked["stop"] = {stop, "nowhere"};
    parts.clear();
    const std::vector<json> events = EventsOf(server.Text("/v1/completions", asked));
    for (const json& event : events) parts += event["choices"][0]["text"];
    CHECK(parts == expected.substr(0, expected.find(stop)));
    CHECK(events.back()["choices"][0]["finish_reason"] == "stop");
    ++stopped;
  }
  CHECK(stopped > 10);
}

TEST_CASE("texts: a conversation is the texts of its roles, and what the assistant says next is the answer") {
  TextServer server;
  if (!server.is_there()) return;
  constexpr char kChat[] = "/v1/chat/completions";
  const json part = {{"type", "text"}, {"text", "b"}};
  const json messages = json::array(
      {{{"role", "system"}, {"content", "a"}}, {{"role", "user"}, {"content", json::array({part})}}});
  const Tokens tokens = server.Prompt("kahfbhg"), made = TokensBehind(tokens, 9);
  json asked = Asked("messages", messages, 9);
  const json whole = server.Ask(kChat, asked);
  CHECK(whole["object"] == "chat.completion");
  CHECK(whole["choices"][0]["message"] ==
        json{{"role", "assistant"}, {"content", server.AddedBy(tokens, made)}});
  CHECK(whole["usage"]["prompt_tokens"] == tokens.size());
  asked["stream"] = true;
  const std::vector<json> events = EventsOf(server.Text(kChat, asked));
  REQUIRE(events.size() == made.size() + 1);
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const json& delta = events[i]["choices"][0]["delta"];
    CHECK(events[i]["object"] == "chat.completion.chunk");
    CHECK(delta.contains("role") == (i == 0));
    text += delta.value("content", "");
  }
  CHECK(text == server.AddedBy(tokens, made));
  asked.erase("stream");
  asked.erase("max_tokens");
  asked["max_completion_tokens"] = 2;
  CHECK(server.Ask(kChat, asked)["usage"]["completion_tokens"] == std::min<std::size_t>(2, made.size() + 1));
}

TEST_CASE("texts: generate and generate_stream take text_input, as Triton's servers of language models do") {
  TextServer server;
  if (!server.is_there()) return;
  const Tokens tokens = server.Prompt("ab"), made = TokensBehind(tokens, 8);
  const std::string expected = server.AddedBy(tokens, made);
  const json asked = {
      {"text_input", "ab"}, {"id", "7"}, {"parameters", {{"max_tokens", 8}, {"temperature", 0}}}};
  const json whole = server.Ask("/v2/models/steps/generate", asked);
  CHECK(whole["model_name"] == "steps");
  CHECK(whole["model_version"] == "1");
  CHECK(whole["id"] == "7");
  CHECK(whole["text_output"] == expected);
  CHECK(whole["token_ids"] == made);
  const std::vector<json> events = EventsOf(server.Text("/v2/models/steps/generate_stream", asked));
  REQUIRE(events.size() == made.size() + 1);
  std::string text;
  for (const json& event : events) text += event["text_output"];
  CHECK(text == expected);
  CHECK(events[0]["token_ids"] == Tokens{made[0]});
  CHECK(events.back()["finish_reason"] == (made.size() < 8 ? "stop" : "length"));
  // Without a tokenizer, tokens do.
  const Tokens others = {1, 2};
  const json by_tokens = {{"text_input", others}, {"max_tokens", 5}, {"temperature", 0}};
  CHECK(server.Ask("/v2/models/whole/generate", by_tokens)["token_ids"] == TokensBehind(others, 5));
  const auto refusal = [&](const std::string& path, const json& body, int status) {
    return server.Ask(path, body, status)["error"].get<std::string>();
  };
  CHECK_THAT(refusal("/v2/models/whole/generate", asked, 501), Contains("model 'whole' has no tokenizer"));
  CHECK_THAT(refusal("/v2/models/double/generate", asked, 400), Contains("no input 'text_input'"));
  CHECK_THAT(refusal("/v2/models/steps/versions/1/generate", asked, 501), Contains("leave the version out"));
  CHECK_THAT(refusal("/v2/models/steps/generate", {{"text_input", "a"}, {"other", 1}}, 501),
             Contains("the parameter 'other' is not supported"));
  CHECK_THAT(refusal("/v2/models/steps/generate", {{"text_input", "a"}, {"id", 1}}, 400),
             Contains("'id' must be a text"));
}

TEST_CASE("texts: what is wrong with a conversation or a text is refused by name") {
  TextServer server;
  if (!server.is_there()) return;
  struct Row {
    json messages;
    int status;
    const char* words;
  };
  const json user = {{"role", "user"}, {"content", "a"}};
  json picture = user, tool = user, number = user, critic = user;
  picture["content"] = json::array({json::object({{"type", "image_url"}})});
  tool["tool_call_id"] = "1";
  number["content"] = 5;
  critic["role"] = "critic";
  for (const Row& row :
       {Row{json::array(), 400, "'messages' must be a list of messages"},
        Row{"a", 400, "'messages' must be a list of messages"},
        Row{json::array({5}), 400, "'messages' must be a list"},
        Row{json::array({json::object({{"content", "a"}})}), 400, "'role' must be a text"},
        Row{json::array({number}), 400, "'content' must be a text, or a list of parts"},
        Row{json::array({picture}), 501, "a part of the type 'image_url' in 'content' is not supported"},
        Row{json::array({tool}), 501, "'tool_call_id' of a message is not supported"},
        Row{json::array({critic}), 501, "model 'steps' has no role 'critic'"}}) {
    const json error = server.Ask("/v1/chat/completions", Asked("messages", row.messages, 1), row.status);
    CHECK_THAT(error["error"]["message"].get<std::string>(), Contains(row.words));
  }
  json other = Asked("messages", json::array({user}), 1);
  other["model"] = "whole";
  CHECK_THAT(server.Text("/v1/chat/completions", other), Contains("model 'whole' has no tokenizer"));
  const json large = server.Ask("/v1/completions", Asked("prompt", std::string(2048 * 128 + 1, 'a'), 1), 400);
  CHECK_THAT(large["error"]["message"].get<std::string>(),
             Contains("the prompt has 262145 bytes, and model 'steps' takes 262144 for 2048 tokens"));
}

}  // namespace
}  // namespace rewire::serve::test
