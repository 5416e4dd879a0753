// SPDX-License-Identifier: Apache-2.0
//
// The memory of outputs, for runs of one request and of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/models/signature.h"
#include "rewire/serve/run/request_check.h"

namespace rewire::serve {

inline Status NoMemoryFor(const std::string& output, std::uint64_t bytes) {
  return Fail(StatusCode::kOutOfMemory, "output '{}': there is no memory for {} bytes", output, bytes);
}

inline Status PlaceTooSmall(const std::string& output, std::uint64_t bytes, std::size_t place) {
  return Fail(StatusCode::kInvalidArgument, "output '{}' has {} bytes, and its place in shared memory {}",
              output, bytes, place);
}

// Makes the result a tensor of the output, with the sizes of symbolic dimensions.
inline void SetShape(const ModelOutput& output, const std::vector<std::int64_t>& sizes,
                     OutputTensor* result) {
  result->name = output.name;
  result->dtype = output.dtype;
  result->shape.clear();
  for (const Dim dim : output.dims) result->shape.push_back(SizeOf(dim, sizes));
}

// Sets the bytes that its shape takes. False if there are more bytes than there can be.
inline bool SetBytes(OutputTensor* result) {
  const std::optional<std::uint64_t> bytes = ShapeProduct(result->shape, ElementBytes(result->dtype));
  result->bytes = bytes.value_or(std::numeric_limits<std::uint64_t>::max());
  return bytes.has_value();
}

}  // namespace rewire::serve
