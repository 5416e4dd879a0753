// SPDX-License-Identifier: Apache-2.0
//
// Triton's extension "generate" for models that make tokens: a request with `text_input`, as its servers of
// language models take it. The response has `text_output` and `token_ids`.
#pragma once

#include <memory>

#include "rewire/serve/http/exchange.h"

namespace rewire::serve {

// `stream`: generate_stream, an event for each token.
std::unique_ptr<Exchange> MakeTokenGenerate(const Route& route, bool stream, Service* service);

}  // namespace rewire::serve
