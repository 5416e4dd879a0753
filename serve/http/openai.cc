// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/openai.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <utility>

#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/http/server_sent_events.h"
#include "rewire/serve/http/token_exchange.h"

namespace rewire::serve {
namespace {

std::int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Different in each process, so that ids of several servers differ.
std::string NextId(bool is_chat) {
  static const std::uint64_t process = std::random_device()();
  static std::atomic<std::uint64_t> count{0};
  return (is_chat ? "chatcmpl-" : "cmpl-") + std::to_string(process) + "-" + std::to_string(++count);
}

HttpAnswer OpenAiError(const Status& status) {
  const int code = WireCodeOf(status.code()).http;
  return {code, OpenAiErrorJson(code, status.error().message()), "application/json"};
}

TokenRequest AskedOpenAi(bool is_chat) {
  TokenRequest asked;
  asked.form = is_chat ? TokenForm::kChat : TokenForm::kCompletion;
  return asked;
}

class Completion final : public TokenExchange {
 public:
  Completion(bool is_chat, Service* service)
      : TokenExchange(AskedOpenAi(is_chat), service), is_chat_(is_chat), id_(NextId(is_chat)) {}

 private:
  HttpAnswer Error(const Status& status) const override { return OpenAiError(status); }

  std::string Whole(std::string_view text, Span<const std::int64_t> tokens,
                    const char* reason) const override {
    return Object([&](JsonText* json) { WriteChoice(text, tokens, reason, json); }, true);
  }
  std::string Part(std::string_view text, Span<const std::int64_t> tokens) const override {
    return ServerSentEvent(Object([&](JsonText* json) { WriteChoice(text, tokens, nullptr, json); }, false));
  }
  std::string End(const char* reason) const override {
    std::string events =
        ServerSentEvent(Object([&](JsonText* json) { WriteChoice({}, {}, reason, json); }, false));
    if (asked().include_usage) events += ServerSentEvent(Object([](JsonText*) {}, true));
    return events + ServerSentEvent("[DONE]");
  }

  template <typename Choice>
  std::string Object(const Choice& choice, bool usage) const {
    std::string text;
    JsonText json(&text);
    json.Begin('{').Key("id").String(id_).Key("object");
    json.String(!is_chat_ ? "text_completion" : asked().stream ? "chat.completion.chunk" : "chat.completion");
    json.Key("created").Number(created_).Key("model").String(asked().model).Key("choices").Begin('[');
    choice(&json);
    json.End(']');
    if (usage) {
      const std::uint64_t given = generation().prompt_size(), made = generation().chosen();
      json.Key("usage").Begin('{').Key("prompt_tokens").Number(given).Key("completion_tokens").Number(made);
      json.Key("total_tokens").Number(given + made);
      if (generation().generator().settings.prefix_bytes != 0) {
        const std::uint64_t reused = generation().reused();
        json.Key("prompt_tokens_details").Begin('{').Key("cached_tokens").Number(reused).End('}');
      }
      json.End('}');
    }
    json.End('}');
    return text;
  }

  void WriteChoice(std::string_view text, Span<const std::int64_t> tokens, const char* reason,
                   JsonText* json) const {
    json->Begin('{').Key("index").Number(std::int64_t{0});
    if (is_chat_) {
      WriteMessage(text, reason == nullptr, json);
    } else {
      json->Key("text").String(text);
    }
    json->Key("token_ids").Begin('[');
    for (const std::int64_t token : tokens) json->Number(token);
    json->End(']').Key("logprobs").Raw("null").Key("finish_reason");
    if (reason == nullptr) {
      json->Raw("null");
    } else {
      json->String(reason);
    }
    json->End('}');
  }

  // A stream tells the role in its first event, and its last one adds no text.
  void WriteMessage(std::string_view text, bool is_part, JsonText* json) const {
    json->Key(asked().stream ? "delta" : "message").Begin('{');
    if (!asked().stream || !has_sent()) json->Key("role").String("assistant");
    if (!asked().stream || is_part) json->Key("content").String(text);
    json->End('}');
  }

  const bool is_chat_;
  const std::string id_;
  const std::int64_t created_ = SecondsNow();
};

void WriteModel(std::string_view name, JsonText* json) {
  // The time is not known, and clients expect one.
  json->Begin('{').Key("id").String(name).Key("object").String("model").Key("created").Number(
      std::int64_t{0});
  json->Key("owned_by").String("rewire").End('}');
}

}  // namespace

std::unique_ptr<Exchange> MakeCompletion(bool is_chat, Service* service) {
  return std::make_unique<Completion>(is_chat, service);
}

HttpAnswer AnswerOpenAiModels(std::string_view name, const Service& service) {
  std::string text;
  JsonText json(&text);
  if (!name.empty()) {
    const Result<ModelDescription> model = service.Describe(name, {});
    if (!model) return OpenAiError(Forward(model));
    if (!model->generates) {
      return OpenAiError(Fail(StatusCode::kNotFound, "model '{}' makes no tokens", name));
    }
    WriteModel(name, &json);
    return {200, std::move(text)};
  }
  json.Begin('{').Key("object").String("list").Key("data").Begin('[');
  std::string last;
  for (const ModelIndexEntry& entry : service.Index(true)) {
    // A model has an entry for each version, one behind the other.
    if (std::exchange(last, entry.name) == entry.name) continue;
    const Result<ModelDescription> model = service.Describe(entry.name, {});
    if (model && model->generates) WriteModel(entry.name, &json);
  }
  json.End(']').End('}');
  return {200, std::move(text)};
}

std::string OpenAiErrorJson(int status, std::string_view message) {
  const char* const type = status == 401   ? "authentication_error"
                           : status == 404 ? "not_found_error"
                           : status < 500  ? "invalid_request_error"
                                           : "server_error";
  std::string text;
  JsonText json(&text);
  json.Begin('{').Key("error").Begin('{').Key("message").String(message).Key("type").String(type);
  json.Key("param").Raw("null").Key("code").Raw("null").End('}').End('}');
  return text;
}

}  // namespace rewire::serve
