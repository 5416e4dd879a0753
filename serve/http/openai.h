// SPDX-License-Identifier: Apache-2.0
//
// The interface that OpenAI's clients speak: models, and completions as a whole or token by token.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rewire/serve/http/exchange.h"

namespace rewire::serve {

// POST v1/completions, and with `is_chat` v1/chat/completions.
std::unique_ptr<Exchange> MakeCompletion(bool is_chat, Service* service);

// The models that make tokens, or the one of this name: GET v1/models[/M].
HttpAnswer AnswerOpenAiModels(std::string_view name, const Service& service);

// {"error": {"message": ..., "type": ..., "param": null, "code": null}}
std::string OpenAiErrorJson(int status, std::string_view message);

}  // namespace rewire::serve
