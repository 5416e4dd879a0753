// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/models/signature.h"

namespace rewire::serve {

// Compares a request with a model, before it waits for anything, and puts its inputs in the model's order.
// `sizes` gets the size of each symbolic dimension, and `rows` of the request that of the batch dimension.
// Errors: kInvalidArgument, naming input or output, expected and given. `has_state`: false if inputs of state
// have no shape and elements yet, and are passed over.
Status CheckRequest(const ModelSignature& signature, Request* request, std::vector<std::int64_t>* sizes,
                    bool has_state = true);

// The size of a dimension that is static or among `sizes`.
inline std::int64_t SizeOf(Dim dim, const std::vector<std::int64_t>& sizes) {
  return IsSymbol(dim) ? sizes[SymbolOf(dim)] : dim;
}

// Whether requests may be rows of one batch: all dimensions but the first are equal. Inputs of state have
// none yet. Steps of sequences do not mix with other requests.
bool FitTogether(const Request& a, const Request& b);

// Whether a step of a sequence, of one row, may run together with those of others: the server has all of its
// state.
bool MayShareRun(const ModelVersion& model, const Request& request);

}  // namespace rewire::serve
