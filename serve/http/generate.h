// SPDX-License-Identifier: Apache-2.0
//
// Triton's extension "generate": the inputs of a model are fields of a JSON object by their names, and so are
// its outputs.
#pragma once

#include <memory>

#include "rewire/serve/http/exchange.h"

namespace rewire::serve {

// `stream`: each response is an event (server-sent events) in place of a body.
std::unique_ptr<Exchange> MakeGenerate(const Route& route, bool stream, Service* service);

}  // namespace rewire::serve
