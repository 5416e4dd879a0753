// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/cache_places.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/serve/core/shape_product.h"

namespace rewire::serve {
namespace {

constexpr std::int64_t kLeastRoom = 64;

// A tensor as `runs` runs of `room` places, each of so many bytes.
struct Places {
  std::size_t runs = 1;
  std::size_t room = 0;
  std::size_t bytes = 1;

  std::size_t total_bytes() const { return runs * room * bytes; }
};

Places PlacesOf(const ModelVersion& model, const Sequence& sequence, std::size_t tensor) {
  const std::vector<std::int64_t>& shape = sequence.state[tensor].shape;
  const std::size_t axis = model.cache->axes[tensor];
  Places places;
  places.room = static_cast<std::size_t>(shape[axis]);
  places.bytes =
      static_cast<std::size_t>(ElementBytes(model.signature.inputs[model.state[tensor].input].dtype));
  for (std::size_t i = 0; i < axis; ++i) places.runs *= static_cast<std::size_t>(shape[i]);
  for (std::size_t i = axis + 1; i < shape.size(); ++i) places.bytes *= static_cast<std::size_t>(shape[i]);
  return places;
}

Places BlockOf(Places places) {
  places.room = kCacheBlock;
  return places;
}

void CopyPlaces(const std::byte* from, const Places& of_from, std::size_t from_place, std::byte* to,
                const Places& of_to, std::size_t to_place, std::size_t count) {
  const std::size_t bytes = count * of_to.bytes;
  for (std::size_t run = 0; run < of_to.runs && bytes > 0; ++run) {
    std::memcpy(to + (run * of_to.room + to_place) * of_to.bytes,
                from + (run * of_from.room + from_place) * of_from.bytes, bytes);
  }
}

// The sequence's own memory.
std::byte* DataOf(const StateTensor& tensor) { return const_cast<std::byte*>(tensor.data); }

}  // namespace

std::int64_t RoomFor(const ModelVersion& model, std::int64_t total) {
  std::int64_t room = kLeastRoom;
  while (room < total) room *= 2;
  return std::max(total, std::min(room, model.settings.generator.context));
}

std::int64_t RoomOf(const ModelVersion& model, const Sequence& sequence) {
  return sequence.state.front().shape[model.cache->axes.front()];
}

Status GrowState(const ModelVersion& model, std::int64_t room, Sequence* sequence) {
  std::vector<StateTensor> grown(sequence->state.size());
  for (std::size_t i = 0; i < grown.size(); ++i) {
    StateTensor& to = grown[i];
    const StateTensor& from = sequence->state[i];
    to.shape = from.shape;
    to.shape[model.cache->axes[i]] = room;
    const ModelInput& input = model.signature.inputs[model.state[i].input];
    const std::optional<std::uint64_t> bytes = ShapeProduct(to.shape, ElementBytes(input.dtype));
    std::byte* const data =
        bytes ? to.memory.Allocate(std::max<std::size_t>(static_cast<std::size_t>(*bytes), 1)) : nullptr;
    if (data == nullptr) {
      return Fail(StatusCode::kOutOfMemory, "input '{}': there is no memory for a state of {} positions",
                  input.name, room);
    }
    to.bytes = *bytes;
    to.data = data;
    const Places before = PlacesOf(model, *sequence, i);
    Places after = before;
    after.room = static_cast<std::size_t>(room);
    std::memset(data, 0, after.total_bytes());
    CopyPlaces(from.data, before, 0, data, after, 0, before.room);
  }
  sequence->state = std::move(grown);
  return {};
}

Status WriteBlocks(const ModelVersion& model, const CacheBlocks& blocks, Sequence* sequence) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < model.state.size(); ++i)
    bytes += BlockOf(PlacesOf(model, *sequence, i)).total_bytes();
  for (const std::shared_ptr<const CacheBlock>& block : blocks) {
    if (block->bytes == bytes) continue;
    return Fail(StatusCode::kInvalidArgument,
                "generator.cache_dimension: the state has {} bytes for {} positions, and had {} behind "
                "another prompt; expected is a state in which that dimension alone changes",
                bytes, kCacheBlock, block->bytes);
  }
  std::size_t offset = 0;
  for (std::size_t i = 0; i < model.state.size(); ++i) {
    const Places places = PlacesOf(model, *sequence, i), block = BlockOf(places);
    for (std::size_t number = 0; number < blocks.size(); ++number) {
      CopyPlaces(blocks[number]->data + offset, block, 0, DataOf(sequence->state[i]), places,
                 number * kCacheBlock, kCacheBlock);
    }
    offset += block.total_bytes();
  }
  return {};
}

void KeepBlocks(const ModelVersion& model, const std::vector<const std::byte*>& data, Request* request) {
  CacheStep& step = request->cache;
  const Sequence& sequence = *request->sequence;
  step.kept.clear();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < model.state.size(); ++i) {
    const Places places = PlacesOf(model, sequence, i);
    if (places.room < step.keep_to * kCacheBlock) return;  // the model says another size than it gives
    bytes += BlockOf(places).total_bytes();
  }
  for (std::size_t number = step.keep_from; number < step.keep_to; ++number) {
    const auto block = std::make_shared<CacheBlock>();
    std::byte* to = block->memory.Allocate(std::max<std::size_t>(bytes, 1));
    if (to == nullptr) {
      step.kept.clear();
      return;
    }
    block->data = to;
    block->bytes = bytes;
    for (std::size_t i = 0; i < model.state.size(); ++i) {
      const Places places = PlacesOf(model, sequence, i), of_block = BlockOf(places);
      CopyPlaces(data[i], places, number * kCacheBlock, to, of_block, 0, kCacheBlock);
      to += of_block.total_bytes();
    }
    step.kept.push_back(block);
  }
}

}  // namespace rewire::serve
