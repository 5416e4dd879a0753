// SPDX-License-Identifier: Apache-2.0
//
// Reads what clients ask a generator for, in the JSON of OpenAI's interface or of Triton's extension
// "generate". Parameters that would change the answer and are not there are refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/generate/generation.h"

namespace rewire::serve {

enum class TokenForm : std::uint8_t {
  kCompletion,  // v1/completions: `prompt` is continued
  kChat,        // v1/chat/completions: `messages` are answered
  kGenerate,    // v2/models/M/generate: `text_input` is continued
};

struct ChatMessage {
  std::string role;
  std::string text;
};

struct TokenRequest {
  TokenForm form = TokenForm::kCompletion;
  std::string model;                 // kGenerate: that of the path
  std::string id;                    // kGenerate
  std::vector<std::int64_t> prompt;  // tokens
  std::optional<std::string> text;   // in their place
  std::vector<ChatMessage> messages;
  GenerationOptions options;
  std::vector<std::string> stop;
  bool stream = false;         // kGenerate: the path says so
  bool include_usage = false;  // a stream ends with a count of tokens
};

// Reads the body of a request of the form that `request` says. It is followed by kJsonPadding readable bytes.
// Errors: kInvalidArgument; kUnsupported, naming the parameter, for what this server does not have.
Status ReadTokenRequest(std::string_view body, TokenRequest* request);

// Whether a body is an object with `text_input`, so that it is of the form kGenerate.
bool HasTextInput(std::string_view body);

// The tokens of the request's prompt. Errors: kUnsupported for a text or a conversation, if the generator's
// settings have no tokenizer or no roles for it.
Result<std::vector<std::int64_t>> PromptOf(const TokenRequest& request, const Generator& generator);

}  // namespace rewire::serve
