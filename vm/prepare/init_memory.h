// SPDX-License-Identifier: Apache-2.0
//
// The memory of what `__init` computes. Kernels read these weights in every run, and with pages of 4 KiB much
// of their time goes into finding pages. So the results of one Program lie in one block, which the default
// allocator gives huge pages.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/executable_format/types.h"
#include "rewire/vm/link/init_sharing.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/huge_page.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

// Gives tensors their places in one block.
class InitBlock {
 public:
  explicit InitBlock(const ProgramRep& rep)
      : allocator_(rep.allocator),
        alignment_(std::max<std::uint64_t>(rep.output_alignment, kLeastAlignment)) {}

  // Returns the place of the next tensor. Nothing if the block would be larger than any memory.
  std::optional<std::uint64_t> Add(std::uint64_t bytes) {
    if (bytes > kMostBytes - size_) return std::nullopt;
    const std::uint64_t place = size_;
    size_ = (size_ + bytes + alignment_ - 1) / alignment_ * alignment_;
    return place;
  }
  std::uint64_t size() const { return size_; }

  // Called once all have places. Returns null if there is no memory.
  std::shared_ptr<std::byte> Allocate() const {
    const Allocator from = allocator_;
    const std::uint64_t size = size_;
    void* const block = from.allocate(from.context, size, kHugePage);
    if (block == nullptr) return nullptr;
    return {static_cast<std::byte*>(block),
            [from, size](std::byte* freed) { from.deallocate(from.context, freed, size, kHugePage); }};
  }

 private:
  static constexpr std::uint64_t kLeastAlignment = 64;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

  const Allocator& allocator_;
  std::uint64_t alignment_;
  std::uint64_t size_ = 0;
};

// InitSharing::memory.
inline InitMemory MemoryForInit(const ProgramRep& rep, std::uint32_t init, std::uint64_t most) {
  const Function& function = rep.module().functions[init];
  const Array<std::uint32_t>& nodes = rep.functions[init].leaf_nodes;
  const Array<LeafPlan>& plans = rep.plans[init].leaves;
  InitBlock block(rep);
  Array<std::optional<std::uint64_t>> places;
  for (std::size_t i = 0; i < nodes.size() && i < plans.size(); ++i) {
    const TypeNode& type = function.result.nodes[nodes[i]];
    const bool is_here = type.kind == TypeKind::kTensor && type.device == kHostDevice && plans[i].rewired &&
                         type.rank == static_cast<std::int32_t>(type.dims.size());
    const std::optional<std::uint64_t> bytes = is_here ? TensorBytes(type.dtype, type.dims) : std::nullopt;
    places.push_back(bytes ? block.Add(*bytes) : std::nullopt);
  }
  InitMemory memory;
  if (block.size() < kHugePage || block.size() > most) return memory;
  const std::shared_ptr<std::byte> begin = block.Allocate();
  if (begin == nullptr) return memory;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Tensor tensor;
    if (places[i]) {
      const TypeNode& type = function.result.nodes[nodes[i]];
      const Array<std::int64_t> shape(type.dims.begin(), type.dims.end());
      if (Result<Tensor> wrapped = Tensor::Wrap({begin.get() + *places[i], type.dtype, shape}, begin))
        tensor = *std::move(wrapped);
    }
    memory.results.push_back(std::move(tensor));
  }
  memory.bytes = block.size();
  return memory;
}

// InitSharing::move.
inline bool MoveInitResults(const ProgramRep& rep, InitMemory* memory, Array<Tensor>* results) {
  const auto lies_there = [&](std::size_t i) {
    return i < memory->results.size() && memory->results[i] && (*results)[i] &&
           (*results)[i].dl().data == memory->results[i].dl().data;
  };
  InitBlock block(rep);
  Array<std::uint64_t> places;
  for (std::size_t i = 0; i < results->size(); ++i)
    places.push_back(lies_there(i) ? *block.Add((*results)[i].view().bytes()) : 0);
  if (block.size() >= memory->bytes) return false;
  const std::shared_ptr<std::byte> begin = block.size() > 0 ? block.Allocate() : nullptr;
  if (begin == nullptr) return false;
  for (std::size_t i = 0; i < results->size(); ++i) {
    if (!lies_there(i)) continue;
    TensorView view = (*results)[i].view();
    std::memcpy(begin.get() + places[i], view.data(), view.bytes());
    view.MoveTo(begin.get() + places[i]);
    if (Result<Tensor> moved = Tensor::Wrap(view, begin)) (*results)[i] = *std::move(moved);
  }
  return true;
}

}  // namespace rewire
