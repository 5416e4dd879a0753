// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/cache_layout.h"

#include <algorithm>

#include "rewire/base/near_names.h"

namespace rewire::serve {
namespace {

std::ptrdiff_t CountOf(Dim dim, const std::vector<Dim>& dims) {
  return std::count(dims.begin(), dims.end(), dim);
}

}  // namespace

Result<CacheLayout> ReadCacheLayout(const std::string& dimension, const ModelSignature& signature,
                                    const std::vector<StatePair>& state) {
  if (state.empty()) {
    return Fail(StatusCode::kInvalidArgument,
                "generator.cache_dimension: the model keeps no state; name it in sequence.state");
  }
  const std::vector<std::string>& symbols = signature.symbols;
  const auto symbol = std::find(symbols.begin(), symbols.end(), dimension);
  if (symbol == symbols.end()) {
    return Fail(StatusCode::kInvalidArgument, "generator.cache_dimension: the model has no dimension '{}'{}",
                dimension, KnownNames("dimensions", dimension, symbols));
  }
  CacheLayout layout;
  layout.symbol = static_cast<std::uint32_t>(symbol - symbols.begin());
  const Dim dim = SymbolDim(layout.symbol);
  for (std::uint32_t i = 0; i < signature.inputs.size(); ++i) {
    const ModelInput& input = signature.inputs[i];
    const bool is_state =
        std::any_of(state.begin(), state.end(), [&](const StatePair& pair) { return pair.input == i; });
    if (CountOf(dim, input.dims) == (is_state ? 1 : 0)) continue;
    return Fail(
        StatusCode::kInvalidArgument,
        "generator.cache_dimension: '{}' is {} times a dimension of input '{}'; it is expected once in "
        "each input of sequence.state, and in no other",
        dimension, CountOf(dim, input.dims), input.name);
  }
  for (const StatePair& pair : state) {
    const std::vector<Dim>&before = signature.inputs[pair.input].dims,
          &after = signature.outputs[pair.output].dims;
    const auto axis = static_cast<std::size_t>(std::find(before.begin(), before.end(), dim) - before.begin());
    const bool grows = after[axis] != dim;
    layout.axes.push_back(axis);
    if (layout.axes.size() > 1 && grows != layout.grows) {
      return Fail(StatusCode::kInvalidArgument,
                  "generator.cache_dimension: output '{}' keeps the size of '{}', and others of the state do "
                  "not, or the other way around",
                  signature.outputs[pair.output].name, dimension);
    }
    layout.grows = grows;
  }
  return layout;
}

}  // namespace rewire::serve
