// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors that stand in the JSON of a request.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// A copy that lives as long as the request. Empty if there is no memory.
std::string_view KeptText(std::string_view text, Request* request);

// Reads `data`, a list whose lists inside stand for rows, or one element, into memory of the request that
// `input`, with dtype and shape, then refers to. `most_elements` bounds what is allocated before it is read.
// `where` begins the errors: kInvalidArgument, kOutOfMemory, and kUnsupported for a dtype that JSON has no
// form of.
Status ReadJsonElements(const std::string& where, simdjson::dom::element data, std::size_t most_elements,
                        Request* request, InputTensor* input);

}  // namespace rewire::serve
