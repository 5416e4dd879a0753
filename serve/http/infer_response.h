// SPDX-License-Identifier: Apache-2.0
//
// Responses to requests for inference in JSON, with the tensors in it or as bytes behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// How a client wants one output, beside its name.
struct OutputForm {
  bool binary = false;
  std::string_view region;  // empty: in the response
  std::uint64_t offset = 0;
};

struct ResponseForm {
  bool binary = false;             // of outputs that the request does not name
  std::vector<OutputForm> wanted;  // of Request::wanted
};

// Writes the response's JSON, and lists the tensors that follow it. Errors: those of JsonText::Elements.
Status WriteInferResponse(const Request& request, const ResponseForm& form, std::string* json,
                          std::vector<Span<const std::byte>>* tensors);

}  // namespace rewire::serve
