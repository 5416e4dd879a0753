// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/sequence_state.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "rewire/base/dtype.h"
#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/run/cache_places.h"

namespace rewire::serve {
namespace {

// The size of a dimension when a sequence begins.
std::int64_t FirstSize(const ModelVersion& model, Dim dim, const std::vector<std::int64_t>& sizes,
                       const CacheStep& cache) {
  if (dim >= 0) return dim;
  if (!IsSymbol(dim)) return 0;
  if (cache.total != 0 && SymbolOf(dim) == model.cache->symbol) {
    return model.cache->grows ? static_cast<std::int64_t>(cache.begin.size() * kCacheBlock) : cache.room;
  }
  if (sizes[SymbolOf(dim)] >= 0) return sizes[SymbolOf(dim)];
  const auto& given = model.settings.sequence.sizes;
  const auto found = given.find(model.signature.symbols[SymbolOf(dim)]);
  return found == given.end() ? 0 : found->second;
}

Status MakeZeroes(const ModelVersion& model, const ModelInput& input, const std::vector<std::int64_t>& sizes,
                  const CacheStep& cache, StateTensor* tensor) {
  for (const Dim dim : input.dims) tensor->shape.push_back(FirstSize(model, dim, sizes, cache));
  const std::optional<std::uint64_t> bytes = ShapeProduct(tensor->shape, ElementBytes(input.dtype));
  std::byte* const data =
      bytes ? tensor->memory.Allocate(std::max<std::size_t>(static_cast<std::size_t>(*bytes), 1)) : nullptr;
  if (data == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "input '{}': there is no memory for the state of a new sequence",
                input.name);
  }
  tensor->bytes = *bytes;
  std::memset(data, 0, static_cast<std::size_t>(*bytes));
  tensor->data = data;
  return {};
}

}  // namespace

Status AddStateInputs(const ModelVersion& model, Request* request) {
  const std::size_t given = request->inputs.size();
  for (const StatePair& pair : model.state) {
    const std::string& name = model.signature.inputs[pair.input].name;
    const auto end = request->inputs.begin() + static_cast<std::ptrdiff_t>(given);
    if (std::any_of(request->inputs.begin(), end,
                    [&](const InputTensor& input) { return input.name == name; })) {
      if (request->step.start) continue;
      return Fail(StatusCode::kInvalidArgument,
                  "input '{}' is the state of sequence {}, which the server has: only a step with "
                  "sequence_start may give it",
                  name, SequenceName(request->step));
    }
    InputTensor& input = request->inputs.emplace_back();
    input.name = name;
    input.dtype = model.signature.inputs[pair.input].dtype;
    input.is_state = true;
  }
  return {};
}

Status FillState(const ModelVersion& model, const std::vector<std::int64_t>& sizes, Request* request) {
  Sequence& sequence = *request->sequence;
  const CacheStep& cache = request->cache;
  if (!sequence.begun) {
    sequence.state.clear();
    sequence.state.resize(model.state.size());
  } else if (cache.total != 0 && !model.cache->grows && RoomOf(model, sequence) < cache.room) {
    if (Status grown = GrowState(model, cache.room, &sequence); !grown) return grown;
  }
  for (std::size_t i = 0; i < model.state.size(); ++i) {
    InputTensor& input = request->inputs[model.state[i].input];
    if (!input.is_state) continue;
    StateTensor& tensor = sequence.state[i];
    if (!sequence.begun) {
      Status made = MakeZeroes(model, model.signature.inputs[model.state[i].input], sizes, cache, &tensor);
      if (!made) return made;
    }
    input.shape = tensor.shape;
    input.data = {tensor.data, static_cast<std::size_t>(tensor.bytes)};
  }
  return sequence.begun || cache.begin.empty() ? Status() : WriteBlocks(model, cache.begin, &sequence);
}

}  // namespace rewire::serve
