// SPDX-License-Identifier: Apache-2.0
//
// Parameters that stand in the JSON of a request.
#pragma once

#include <simdjson.h>

#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// Adds a parameter to the request, and does what it says: "timeout", and those of sequences. Errors:
// kInvalidArgument for a value of another kind.
Status ReadParameter(std::string_view name, simdjson::dom::element value, Request* request);

}  // namespace rewire::serve
