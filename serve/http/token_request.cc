// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/token_request.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <random>

namespace rewire::serve {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;
constexpr std::int64_t kMostTokenBytes = 128;
constexpr const char* kPrompt = "a list of tokens, or a text";

// Returns the field that has the prompt.
constexpr std::string_view PromptKey(TokenForm form) {
  switch (form) {
    case TokenForm::kCompletion:
      return "prompt";
    case TokenForm::kChat:
      return "messages";
    case TokenForm::kGenerate:
      return "text_input";
  }
  return {};
}

Status Wrong(std::string_view key, std::string_view expected) {
  return Fail(StatusCode::kInvalidArgument, "'{}' must be {}", key, expected);
}

// Parameters that this server does not have, and the values that mean nothing else than their absence.
struct Neutral {
  std::string_view key;
  std::string_view value;
};
constexpr std::array kNeutral = {
    Neutral{"best_of", "1"},
    Neutral{"echo", "false"},
    Neutral{"frequency_penalty", "0"},
    Neutral{"logit_bias", "{}"},
    Neutral{"logprobs", "false"},
    Neutral{"n", "1"},
    Neutral{"parallel_tool_calls", "true"},
    Neutral{"presence_penalty", "0"},
    Neutral{"response_format", "{\"type\":\"text\"}"},
    Neutral{"service_tier", "\"auto\""},
    Neutral{"store", "false"},
    Neutral{"suffix", "\"\""},
    Neutral{"tools", "[]"},
    Neutral{"top_logprobs", "0"},
};
// They say who asks, and change no answer.
constexpr std::array kIgnored = {std::string_view("user"), std::string_view("safety_identifier"),
                                 std::string_view("prompt_cache_key")};

Status CheckAbsent(std::string_view key, element value) {
  if (value.is_null() || std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end()) return {};
  const std::string text = simdjson::minify(value);
  double number = 0;
  for (const Neutral& one : kNeutral) {
    if (one.key != key) continue;
    if (text == one.value) return {};
    // 1.0 is 1.
    if (value.get(number) == simdjson::SUCCESS && number == (one.value == "1" ? 1 : 0) &&
        one.value.size() == 1)
      return {};
    return Fail(StatusCode::kUnsupported, "the parameter '{}' is not supported: leave it out, or give {}",
                key, one.value);
  }
  return Fail(StatusCode::kUnsupported, "the parameter '{}' is not supported: leave it out", key);
}

Status ReadNumber(std::string_view key, element value, std::int64_t most, double* number) {
  if (value.is_null()) return {};
  if (value.get(*number) != simdjson::SUCCESS || !(*number >= 0 && *number <= static_cast<double>(most))) {
    return Fail(StatusCode::kInvalidArgument, "'{}' must be a number from 0 to {}", key, most);
  }
  return {};
}

Status ReadPrompt(std::string_view key, element value, TokenRequest* request) {
  array list;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    request->text = std::string(text);
    return {};
  }
  if (value.get(list) != simdjson::SUCCESS) return Wrong(key, kPrompt);
  for (const element one : list) {
    std::int64_t token = 0;
    array inner;
    if (one.get(inner) == simdjson::SUCCESS) {
      return Fail(StatusCode::kUnsupported,
                  "several prompts in one request are not supported: send a request for "
                  "each");
    }
    if (one.get(token) != simdjson::SUCCESS) return Wrong(key, kPrompt);
    request->prompt.push_back(token);
  }
  return {};
}

// A text, or a list of parts of the type "text".
Status ReadContent(element value, std::string* content) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    *content = std::string(text);
    return {};
  }
  array parts;
  if (value.get(parts) != simdjson::SUCCESS) return Wrong("content", "a text, or a list of parts");
  for (const element part : parts) {
    std::string_view type;
    if (part["type"].get(type) != simdjson::SUCCESS) return Wrong("content", "a text, or a list of parts");
    if (type != "text") {
      return Fail(StatusCode::kUnsupported, "a part of the type '{}' in 'content' is not supported: text is",
                  type);
    }
    if (part["text"].get(text) != simdjson::SUCCESS) return Wrong("text", "a text");
    *content += text;
  }
  return {};
}

Status ReadMessages(element value, TokenRequest* request) {
  array list;
  if (value.get(list) != simdjson::SUCCESS || list.size() == 0)
    return Wrong("messages", "a list of messages");
  for (const element one : list) {
    object message;
    if (one.get(message) != simdjson::SUCCESS) return Wrong("messages", "a list of messages");
    ChatMessage& read = request->messages.emplace_back();
    for (const auto& [key, field] : message) {
      std::string_view role;
      if (key == "role" && field.get(role) == simdjson::SUCCESS) {
        read.role = std::string(role);
      } else if (key == "content") {
        if (Status done = ReadContent(field, &read.text); !done) return done;
      } else if (key == "role" || !field.is_null()) {
        return Fail(StatusCode::kUnsupported, "'{}' of a message is not supported: leave it out", key);
      }
    }
    if (read.role.empty()) return Wrong("role", "a text");
  }
  return {};
}

Status ReadStop(element value, TokenRequest* request) {
  if (value.is_null()) return {};
  constexpr std::size_t kMostStops = 4;
  constexpr const char* kExpected = "a text, or a list of at most 4 texts, none of them empty";
  array list;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    request->stop.emplace_back(text);
  } else if (value.get(list) == simdjson::SUCCESS) {
    for (const element one : list) {
      if (one.get(text) != simdjson::SUCCESS) return Wrong("stop", kExpected);
      request->stop.emplace_back(text);
    }
  } else {
    return Wrong("stop", kExpected);
  }
  const bool good =
      request->stop.size() <= kMostStops && std::none_of(request->stop.begin(), request->stop.end(),
                                                         [](const std::string& one) { return one.empty(); });
  return good ? Status() : Wrong("stop", kExpected);
}

Status ReadStreamOptions(element value, TokenRequest* request) {
  if (value.is_null()) return {};
  object options;
  if (value.get(options) != simdjson::SUCCESS) return Wrong("stream_options", "an object");
  for (const auto& [key, one] : options) {
    // Padding against those who count bytes is left out, as a client may ask.
    bool flag = false;
    if (one.get(flag) != simdjson::SUCCESS) return Wrong("stream_options", "an object of true and false");
    if (key == "include_usage") {
      request->include_usage = flag;
    } else if (key != "include_obfuscation" || flag) {
      return Fail(StatusCode::kUnsupported, "'{}' among 'stream_options' is not supported: leave it out",
                  key);
    }
  }
  return {};
}

Status ReadField(std::string_view key, element value, TokenRequest* request) {
  GenerationOptions& options = request->options;
  const bool of_generate = request->form == TokenForm::kGenerate;
  if (key == (of_generate ? "id" : "model")) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS)
      return Wrong(key, of_generate ? "a text" : "the name of a model");
    (of_generate ? request->id : request->model) = std::string(text);
    return {};
  }
  if (key == PromptKey(request->form)) {
    return request->form == TokenForm::kChat ? ReadMessages(value, request) : ReadPrompt(key, value, request);
  }
  if (key == "stop") return ReadStop(value, request);
  if (key == "stream_options") return ReadStreamOptions(value, request);
  if (key == "temperature") return ReadNumber(key, value, 2, &options.temperature);
  if (key == "top_p") return ReadNumber(key, value, 1, &options.top_p);
  if (key == "stream" && !value.is_null()) {
    return value.get(request->stream) == simdjson::SUCCESS ? Status() : Wrong(key, "true or false");
  }
  const bool is_most =
      key == "max_tokens" || (request->form == TokenForm::kChat && key == "max_completion_tokens");
  if (is_most && !value.is_null()) {
    std::int64_t& most = options.max_tokens;
    return value.get(most) == simdjson::SUCCESS && most >= 0 && most < kMostTokens
               ? Status()
               : Wrong(key, "a whole number, not below 0");
  }
  if (key == "seed" && !value.is_null()) {
    std::int64_t seed = 0;
    if (value.get(seed) != simdjson::SUCCESS) return Wrong(key, "a whole number");
    options.seed = static_cast<std::uint64_t>(seed);
    return {};
  }
  if (key == "stream" || is_most || key == "seed") return {};
  return CheckAbsent(key, value);
}

Status ReadFields(const object& root, TokenRequest* request, bool* has_prompt) {
  for (const auto& [key, value] : root) {
    object inner;
    const bool of_generate = request->form == TokenForm::kGenerate;
    if (of_generate && key == "parameters" && value.get(inner) == simdjson::SUCCESS) {
      for (const auto& [name, one] : inner) {
        if (Status read = ReadField(name, one, request); !read) return read;
      }
    } else if (Status read = ReadField(key, value, request); !read) {
      return read;
    }
    *has_prompt = *has_prompt || key == PromptKey(request->form);
  }
  return {};
}

}  // namespace

Status ReadTokenRequest(std::string_view body, TokenRequest* request) {
  simdjson::dom::parser parser;
  element document;
  if (const auto error = parser.parse(body.data(), body.size(), false).get(document)) {
    return Fail(StatusCode::kInvalidArgument, "the request is no JSON: {}", simdjson::error_message(error));
  }
  object root;
  if (document.get(root) != simdjson::SUCCESS) {
    return Fail(StatusCode::kInvalidArgument, "the request must be an object");
  }
  const bool is_chat = request->form == TokenForm::kChat;
  request->options.seed = std::random_device()();  // of requests that give none
  // A message goes on until its end.
  if (is_chat) request->options.max_tokens = kMostTokens;
  bool has_prompt = false;
  if (Status read = ReadFields(root, request, &has_prompt); !read) return read;
  if (request->model.empty()) return Wrong("model", "the name of a model");
  if (!has_prompt) return Wrong(PromptKey(request->form), is_chat ? "a list of messages" : kPrompt);
  return {};
}

bool HasTextInput(std::string_view body) {
  simdjson::dom::parser parser;
  element document, text;
  return parser.parse(body.data(), body.size(), false).get(document) == simdjson::SUCCESS &&
         document[PromptKey(TokenForm::kGenerate)].get(text) == simdjson::SUCCESS;
}

Result<std::vector<std::int64_t>> PromptOf(const TokenRequest& request, const Generator& generator) {
  const GeneratorSettings& settings = generator.settings;
  const bool is_chat = request.form == TokenForm::kChat;
  const bool is_text = is_chat || request.text || !request.stop.empty();
  if (is_text && generator.tokenizer == nullptr) {
    return Fail(
        StatusCode::kUnsupported,
        "model '{}' has no tokenizer (generator.tokenizer): give the prompt as a list of tokens, without "
        "'stop'",
        generator.model);
  }
  if (!is_chat && !request.text) return request.prompt;
  std::string text = request.text.value_or("");
  if (is_chat) {
    if (settings.roles.empty()) {
      return Fail(StatusCode::kUnsupported,
                  "model '{}' takes no conversations: its settings have no generator.roles", generator.model);
    }
    for (const ChatMessage& message : request.messages) {
      const auto role = settings.roles.find(message.role);
      if (role == settings.roles.end()) {
        return Fail(StatusCode::kUnsupported, "model '{}' has no role '{}' (generator.roles)",
                    generator.model, message.role);
      }
      text += role->second + message.text + settings.message_end;
    }
    text += settings.roles.at("assistant");
  }
  // The loop's other connections wait while a text is encoded.
  const std::int64_t most = settings.context * kMostTokenBytes;
  if (static_cast<std::int64_t>(text.size()) > most) {
    return Fail(StatusCode::kInvalidArgument,
                "the prompt has {} bytes, and model '{}' takes {} for {} tokens", text.size(),
                generator.model, most, settings.context);
  }
  Result<std::vector<std::int64_t>> tokens = generator.tokenizer->Encode(text);
  if (!tokens) return tokens;
  tokens->insert(tokens->begin(), settings.begin.begin(), settings.begin.end());
  return tokens;
}

}  // namespace rewire::serve
