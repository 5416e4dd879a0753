// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/openai_request.h"

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

Status Wrong(std::string_view key, std::string_view expected) {
  return Fail(StatusCode::kInvalidArgument, "'{}' must be {}", key, expected);
}

// Parameters that this server does not have, and the values that mean nothing else than their absence.
struct Neutral {
  std::string_view key;
  std::string_view value;
};
constexpr std::array kNeutral = {
    Neutral{"best_of", "1"},     Neutral{"echo", "false"}, Neutral{"frequency_penalty", "0"},
    Neutral{"logit_bias", "{}"}, Neutral{"n", "1"},        Neutral{"presence_penalty", "0"},
    Neutral{"suffix", "\"\""},
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

Status ReadPrompt(element value, OpenAiRequest* request) {
  array list;
  if (value.type() == simdjson::dom::element_type::STRING) {
    return Fail(StatusCode::kUnsupported,
                "the prompt is a text, and this server has no tokenizer: give a list of "
                "tokens");
  }
  if (value.get(list) != simdjson::SUCCESS) return Wrong("prompt", "a list of tokens");
  for (const element one : list) {
    std::int64_t token = 0;
    array inner;
    if (one.get(inner) == simdjson::SUCCESS) {
      return Fail(StatusCode::kUnsupported,
                  "several prompts in one request are not supported: send a request for "
                  "each");
    }
    if (one.get(token) != simdjson::SUCCESS) return Wrong("prompt", "a list of tokens");
    request->prompt.push_back(token);
  }
  return {};
}

Status ReadStreamOptions(element value, OpenAiRequest* request) {
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

Status ReadField(std::string_view key, element value, OpenAiRequest* request) {
  GenerationOptions& options = request->options;
  if (key == "model") {
    std::string_view name;
    if (value.get(name) != simdjson::SUCCESS) return Wrong(key, "the name of a model");
    request->model = std::string(name);
    return {};
  }
  if (key == "prompt") return ReadPrompt(value, request);
  if (key == "stream_options") return ReadStreamOptions(value, request);
  if (key == "temperature") return ReadNumber(key, value, 2, &options.temperature);
  if (key == "top_p") return ReadNumber(key, value, 1, &options.top_p);
  if (key == "stream" && !value.is_null()) {
    return value.get(request->stream) == simdjson::SUCCESS ? Status() : Wrong(key, "true or false");
  }
  if (key == "max_tokens" && !value.is_null()) {
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
  if (key == "stream" || key == "max_tokens" || key == "seed") return {};
  return CheckAbsent(key, value);
}

}  // namespace

Status ReadCompletion(std::string_view body, OpenAiRequest* request) {
  simdjson::dom::parser parser;
  element document;
  if (const auto error = parser.parse(body.data(), body.size(), false).get(document)) {
    return Fail(StatusCode::kInvalidArgument, "the request is no JSON: {}", simdjson::error_message(error));
  }
  object root;
  if (document.get(root) != simdjson::SUCCESS) {
    return Fail(StatusCode::kInvalidArgument, "the request must be an object");
  }
  request->options.seed = std::random_device()();  // of requests that give none
  bool has_prompt = false;
  for (const auto& [key, value] : root) {
    if (Status read = ReadField(key, value, request); !read) return read;
    has_prompt = has_prompt || key == "prompt";
  }
  if (request->model.empty()) return Wrong("model", "the name of a model");
  if (!has_prompt) return Wrong("prompt", "a list of tokens");
  return {};
}

}  // namespace rewire::serve
