// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/token_generate.h"

#include <string>
#include <string_view>

#include "rewire/serve/core/json_text.h"
#include "rewire/serve/http/server_sent_events.h"
#include "rewire/serve/http/token_exchange.h"

namespace rewire::serve {
namespace {

TokenRequest AskedGenerate(const Route& route, bool stream) {
  TokenRequest asked;
  asked.form = TokenForm::kGenerate;
  asked.model = std::string(route.name);
  asked.stream = stream;
  return asked;
}

class TokenGenerate final : public TokenExchange {
 public:
  TokenGenerate(const Route& route, bool stream, Service* service)
      : TokenExchange(AskedGenerate(route, stream), service) {}

 private:
  HttpAnswer Error(const Status& status) const override { return ErrorAnswer(status); }
  std::string Whole(std::string_view text, Span<const std::int64_t> tokens,
                    const char* reason) const override {
    return Object(text, tokens, reason);
  }
  std::string Part(std::string_view text, Span<const std::int64_t> tokens) const override {
    return ServerSentEvent(Object(text, tokens, nullptr));
  }
  std::string End(const char* reason) const override { return ServerSentEvent(Object({}, {}, reason)); }

  std::string Object(std::string_view text, Span<const std::int64_t> tokens, const char* reason) const {
    std::string object;
    JsonText json(&object);
    json.Begin('{').Key("model_name").String(asked().model);
    json.Key("model_version").String(generation().generator().version);
    if (!asked().id.empty()) json.Key("id").String(asked().id);
    json.Key("text_output").String(text).Key("token_ids").Begin('[');
    for (const std::int64_t token : tokens) json.Number(token);
    json.End(']');
    if (reason != nullptr) json.Key("finish_reason").String(reason);
    json.End('}');
    return object;
  }
};

}  // namespace

std::unique_ptr<Exchange> MakeTokenGenerate(const Route& route, bool stream, Service* service) {
  return std::make_unique<TokenGenerate>(route, stream, service);
}

}  // namespace rewire::serve
