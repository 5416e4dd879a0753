// SPDX-License-Identifier: Apache-2.0
//
// CacheLayout: where the positions of a text are in a generator's state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/models/signature.h"

namespace rewire::serve {

struct CacheLayout {
  std::uint32_t symbol = 0;       // of the dimension that counts positions
  std::vector<std::size_t> axes;  // the number of that dimension in each tensor, in the order of the state
  // A step gives the state as many further places as it reads tokens, so that the state is never larger than
  // what is written. Otherwise a step keeps the shape, and the server chooses how much room there is.
  bool grows = false;
};

// `state` has the pairs of ModelVersion::state. Errors: kInvalidArgument, naming input or output, if the
// dimension does not exist, if there is no state, or is not once in each tensor of state and in those alone.
Result<CacheLayout> ReadCacheLayout(const std::string& dimension, const ModelSignature& signature,
                                    const std::vector<StatePair>& state);

}  // namespace rewire::serve
