// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/openai.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <utility>

#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/generate/generation.h"
#include "rewire/serve/http/openai_request.h"
#include "rewire/serve/http/server_sent_events.h"

namespace rewire::serve {
namespace {

std::int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Different in each process, so that ids of several servers differ.
std::string NextId() {
  static const std::uint64_t process = std::random_device()();
  static std::atomic<std::uint64_t> count{0};
  return "cmpl-" + std::to_string(process) + "-" + std::to_string(++count);
}

HttpAnswer OpenAiError(const Status& status) {
  const int code = WireCodeOf(status.code()).http;
  return {code, OpenAiErrorJson(code, status.error().message()), "application/json"};
}

class Completion : public Exchange {
 public:
  explicit Completion(Service* service) : service_(service) {}

  Piece Begin(std::string_view body, Request* request) override {
    if (Status read = ReadCompletion(body, &asked_); !read) return {OpenAiError(read)};
    Result<std::unique_ptr<Generation>> begun =
        Generation::Begin(service_, asked_.model, std::move(asked_.prompt), asked_.options);
    if (!begun) return {OpenAiError(Forward(begun))};
    generation_ = *std::move(begun);
    return Next({}, request);
  }

  Piece Continue(Request* request) override {
    if (Status taken = generation_->TakeStep(*request); !taken) return Fails(taken);
    std::string events;
    if (asked_.stream && sent_ < generation_->made().size()) {
      events =
          Event([this](JsonText* json) { WriteChoice(generation_->made().subspan(sent_), nullptr, json); });
      sent_ = generation_->made().size();
    }
    return Next(std::move(events), request);
  }

 private:
  // The piece with these events, and what comes behind it.
  Piece Next(std::string events, Request* request) {
    if (generation_->state() == Generation::State::kRuns) {
      if (Status filled = generation_->FillStep(request); !filled) return Fails(filled);
      return {{200, std::move(events), kEventStream}, asked_.stream, true};
    }
    const char* const reason = generation_->state() == Generation::State::kStopped ? "stop" : "length";
    if (!asked_.stream) {
      std::string text;
      Write([&](JsonText* json) { WriteChoice(generation_->made(), reason, json); }, true, &text);
      return {{200, std::move(text), "application/json"}};
    }
    events += Event([&](JsonText* json) { WriteChoice({}, reason, json); });
    if (asked_.include_usage) {
      std::string text;
      Write([](JsonText*) {}, true, &text);
      events += ServerSentEvent(text);
    }
    return {{200, events + ServerSentEvent("[DONE]"), kEventStream}, true, false};
  }

  // Behind events, an error is an event, too.
  Piece Fails(const Status& status) const {
    HttpAnswer error = OpenAiError(status);
    if (sent_ == 0) return {std::move(error)};
    return {{200, ServerSentEvent(error.body), kEventStream}, true, false};
  }

  template <typename Choice>
  std::string Event(const Choice& choice) const {
    std::string text;
    Write(choice, false, &text);
    return ServerSentEvent(text);
  }

  template <typename Choice>
  void Write(const Choice& choice, bool usage, std::string* text) const {
    JsonText json(text);
    json.Begin('{').Key("id").String(id_).Key("object").String("text_completion");
    json.Key("created").Number(created_).Key("model").String(asked_.model).Key("choices").Begin('[');
    choice(&json);
    json.End(']');
    if (usage) {
      const std::uint64_t given = generation_->prompt_size(), made = generation_->chosen();
      json.Key("usage").Begin('{').Key("prompt_tokens").Number(given).Key("completion_tokens").Number(made);
      json.Key("total_tokens").Number(given + made).End('}');
    }
    json.End('}');
  }

  static void WriteChoice(Span<const std::int64_t> tokens, const char* reason, JsonText* json) {
    json->Begin('{').Key("index").Number(std::int64_t{0}).Key("text").String("").Key("token_ids").Begin('[');
    for (const std::int64_t token : tokens) json->Number(token);
    json->End(']').Key("logprobs").Raw("null").Key("finish_reason");
    if (reason == nullptr) {
      json->Raw("null");
    } else {
      json->String(reason);
    }
    json->End('}');
  }

  Service* const service_;
  const std::string id_ = NextId();
  const std::int64_t created_ = SecondsNow();
  OpenAiRequest asked_;
  std::unique_ptr<Generation> generation_;
  std::size_t sent_ = 0;  // tokens that have been sent as events
};

void WriteModel(std::string_view name, JsonText* json) {
  // The time is not known, and clients expect one.
  json->Begin('{').Key("id").String(name).Key("object").String("model").Key("created").Number(
      std::int64_t{0});
  json->Key("owned_by").String("rewire").End('}');
}

}  // namespace

std::unique_ptr<Exchange> MakeCompletion(Service* service) { return std::make_unique<Completion>(service); }

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
