// SPDX-License-Identifier: Apache-2.0
//
// Requests of OpenAI's interface, as far as this server answers them. What it does not have is refused by
// name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/generate/generation.h"

namespace rewire::serve {

struct OpenAiRequest {
  std::string model;
  std::vector<std::int64_t> prompt;  // tokens
  GenerationOptions options;
  bool stream = false;
  bool include_usage = false;  // a stream ends with a count of tokens
};

// Reads the body of a request for a completion, which is followed by kJsonPadding readable bytes. Errors:
// kInvalidArgument; kUnsupported, naming the parameter, for what this server does not have.
Status ReadCompletion(std::string_view body, OpenAiRequest* request);

}  // namespace rewire::serve
