// SPDX-License-Identifier: Apache-2.0
//
// Requests for inference in JSON, with the tensors in it or as bytes behind it.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/shared_regions.h"
#include "rewire/serve/http/infer_response.h"

namespace rewire::serve {

// Texts that are parsed need so many readable bytes behind them.
inline constexpr std::size_t kJsonPadding = 64;

// Parses requests; keeps its memory from one to the next. One thread at a time.
class InferReader {
 public:
  InferReader();
  ~InferReader();

  // Fills a request, which is empty but for model and version. `json` is followed by kJsonPadding bytes that
  // can be read. `tensors` is what stands behind the JSON: inputs with a binary_data_size, in order. Nothing
  // of the request refers to `json` or to this object afterwards, but inputs refer to `tensors`. Errors:
  // kInvalidArgument, kUnsupported, kNotFound for a region.
  Status Read(std::string_view json, Span<const std::byte> tensors, const SharedRegions& regions,
              Request* request, ResponseForm* form);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace rewire::serve
