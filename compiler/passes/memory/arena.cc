// SPDX-License-Identifier: Apache-2.0
//
// Places all tensors of known or limited size that stay inside the function in one piece of memory, laid out
// when compiling. Those on the device lie in a piece of that device. Along an outermost axis, inputs of a
// concatenation are parts of its output, and outputs of a split or slice are parts of its input. Only on the
// host: a device's kernel must not be given memory that it reads and writes.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/dim_limits.h"
#include "rewire/compiler/passes/memory/arena_layout.h"
#include "rewire/compiler/passes/memory/lives.h"
#include "rewire/compiler/passes/memory/parts.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/vm/memory/block_pool.h"

namespace rewire::compiler {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};
// Tensors that lie in one another are compared pair by pair.
constexpr std::size_t kMostInOne = 2000;

// Bytes of an item that a node changes.
struct Write {
  std::size_t place;
  std::uint64_t begin, end;
};

// An allocation. All values that are views of it, or written over it, are one item.
struct Item {
  const Value* value;
  std::uint64_t bytes;     // at most
  std::size_t begin, end;  // places from when to when it is needed
  std::vector<Write> writes;
  // The block that it lies in, and where in that.
  std::size_t outer = kNone;
  std::uint64_t offset = 0;
  std::vector<std::size_t> inner;
};

class ArenaPlanner {
 public:
  ArenaPlanner(Graph* graph, bool device)
      : graph_(*graph), lives_(*graph), limits_(*graph), device_(device) {}

  void Run() {
    Collect(graph_.main);
    if (items_.empty()) return;
    const std::vector<ArenaBlock> apart = Blocks();
    std::vector<ArenaBlock> blocks = apart;
    std::uint64_t bytes = LayOut(&blocks, ArenaAlignment(device_));
    for (const Node* node : joins_) Nest(*node);
    std::vector<ArenaBlock> nested = Blocks();
    // A tensor that lies in another one may hold all of it for longer.
    if (const std::uint64_t nested_bytes = LayOut(&nested, ArenaAlignment(device_)); nested_bytes <= bytes) {
      bytes = nested_bytes;
      blocks = std::move(nested);
    } else {
      for (Item& item : items_) {
        item.outer = kNone;
        item.inner.clear();
      }
    }
    // Results that no caller takes come from the pool, where they may find what is not needed any more.
    std::vector<ArenaBlock> with_arena = kept_, without = kept_;
    with_arena.push_back({bytes, 0, lives_.last_place(), 0});
    without.insert(without.end(), apart.begin(), apart.end());
    const std::uint64_t separate = Pooled(apart);
    const bool takes_less = Pooled({with_arena.back()}) <= separate && Pooled(with_arena) <= Pooled(without);
    // Blocks for sizes that only have a limit need not be of one class in a run.
    if (!takes_less && all_known_) return;
    graph_.ArenaOn(device_).bytes = bytes;
    graph_.ArenaOn(device_).separate_bytes = separate;
    Store(blocks);
  }

 private:
  std::uint64_t Pooled(const std::vector<ArenaBlock>& blocks) const { return PooledBytes(blocks, device_); }

  void Collect(const Block& block) {
    for (const Node* node : block.nodes) {
      for (const Block& inner : node->blocks) Collect(inner);
      if (node->kind == NodeKind::kReshape) Alias(node->inputs[0], node->outputs[0]);
      if (node->kind == NodeKind::kDeviceCopy) AddCopy(*node);
      if (node->kind != NodeKind::kKernel || node->returns) continue;
      if (node->in_place) {
        Alias(node->inputs[*node->in_place], node->outputs[0]);
        const auto item = items_of_.find(node->outputs[0]);
        if (item != items_of_.end()) {
          items_[item->second].writes.push_back({lives_.PlaceOf(node), 0, items_[item->second].bytes});
        }
        continue;
      }
      for (std::size_t i = 0; i < node->outputs.size(); ++i) Allocate(*node, i);
      if (!PartsOf(*node).empty()) joins_.push_back(node);
    }
  }

  void Alias(const Value* of, const Value* value) {
    const auto item = items_of_.find(of);
    if (item != items_of_.end()) items_of_[value] = item->second;
  }

  // The VM allocates what a copy between devices gives.
  void AddCopy(const Node& node) {
    const Value* value = node.outputs[0];
    if (value->on_device != device_ || !value->type.ranked) return;
    const std::optional<std::vector<std::int64_t>> dims = limits_.MostOf(value->type.dims);
    const std::uint64_t bytes = dims ? TensorBytes(value->type.dtype, *dims).value_or(0) : 0;
    if (bytes == 0 || bytes > BlockPool::kMaxBlock / 4) return;
    kept_.push_back({bytes, lives_.PlaceOf(&node), lives_.EndOf(value), 0});
  }

  void Allocate(const Node& node, std::size_t index) {
    const Node::Extent& extent = node.extents[index];
    const Value* value = node.outputs[index];
    const std::optional<std::vector<std::int64_t>> dims =
        extent.shape == nullptr && value->type.ranked ? limits_.MostOf(extent.dims) : std::nullopt;
    const std::uint64_t bytes = dims ? TensorBytes(value->type.dtype, *dims).value_or(0) : 0;
    // Emission says what is wrong with a tensor that is too large.
    if (bytes == 0 || bytes > BlockPool::kMaxBlock / 4) return;
    const std::size_t begin = lives_.PlaceOf(&node);
    if (value->on_device != device_) return;
    if (lives_.IsKept(value)) {
      kept_.push_back({bytes, begin, lives_.EndOf(value), 0});
      return;
    }
    all_known_ = all_known_ && ConstantDims(extent.dims).has_value();
    items_of_[value] = items_.size();
    items_.push_back({value, bytes, begin, lives_.EndOf(value), {{begin, 0, bytes}}, kNone, 0, {}});
  }

  std::size_t ItemOf(const Value* value) const {
    const auto found = items_of_.find(value);
    return found == items_of_.end() ? kNone : found->second;
  }

  // Puts the tensors that the node copies where it copies them to or from, unless what is written to one
  // would show in another.
  void Nest(const Node& node) {
    const std::vector<Part> parts = PartsOf(node);
    const std::size_t outer = ItemOf(parts[0].outer);
    if (outer == kNone) return;
    const bool joins = node.outputs[0] == parts[0].outer;
    const std::size_t place = lives_.PlaceOf(&node);
    std::vector<std::pair<std::size_t, Item>> before = {{outer, items_[outer]}};
    for (const Part& part : parts) {
      const std::size_t index = ItemOf(part.inner);
      if (index == kNone || index == RootOf(outer)) continue;
      Item& inner = items_[index];
      if (inner.outer != kNone || part.offset % kArenaAlignment != 0) continue;
      before.emplace_back(index, inner);
      inner.outer = outer;
      inner.offset = part.offset;
      items_[outer].inner.push_back(index);
      // The copy changes nothing any more.
      if (joins) {
        LeaveOut(place, part.offset, part.offset + inner.bytes, &items_[outer].writes);
      } else {
        LeaveOut(place, 0, inner.bytes, &inner.writes);
      }
    }
    if (!WritesShow(RootOf(outer)) && CopiesStay(node)) return;
    for (auto& [index, item] : before) items_[index] = std::move(item);
  }

  // Takes a range out of what is written at a place.
  static void LeaveOut(std::size_t place, std::uint64_t begin, std::uint64_t end,
                       std::vector<Write>* writes) {
    std::vector<Write> left;
    for (const Write& write : *writes) {
      if (write.place != place || write.end <= begin || end <= write.begin) {
        left.push_back(write);
        continue;
      }
      if (write.begin < begin) left.push_back({place, write.begin, begin});
      if (end < write.end) left.push_back({place, end, write.end});
    }
    *writes = std::move(left);
  }

  std::size_t RootOf(std::size_t item) const {
    while (items_[item].outer != kNone) item = items_[item].outer;
    return item;
  }

  // All items in one, with their offsets in it; itself first.
  std::vector<std::pair<std::size_t, std::uint64_t>> Inside(std::size_t root) const {
    std::vector<std::pair<std::size_t, std::uint64_t>> all = {{root, 0}};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [item, offset] = all[i];
      for (const std::size_t inner : items_[item].inner) {
        all.emplace_back(inner, offset + items_[inner].offset);
      }
    }
    return all;
  }

  // Whether anything is written over bytes that another item in the same one needs at that time.
  bool WritesShow(std::size_t root) const {
    const auto inside = Inside(root);
    if (inside.size() > kMostInOne) return true;
    for (const auto& [writer, to] : inside) {
      for (const Write& write : items_[writer].writes) {
        for (const auto& [reader, from] : inside) {
          const Item& item = items_[reader];
          if (reader != writer && item.begin <= write.place && write.place <= item.end &&
              to + write.begin < from + item.bytes && from < to + write.end) {
            return true;
          }
        }
      }
    }
    return false;
  }

  std::uint64_t OffsetOf(std::size_t item) const {
    std::uint64_t offset = 0;
    for (; items_[item].outer != kNone; item = items_[item].outer) offset += items_[item].offset;
    return offset;
  }

  // Whether what the node copies lies where it is copied to, or apart: kernels refuse anything else. A tensor
  // that is joined twice, or beside a part of itself, does not.
  bool CopiesStay(const Node& node) const {
    for (const Part& part : PartsOf(node)) {
      const std::size_t inner = ItemOf(part.inner), outer = ItemOf(part.outer);
      if (inner == kNone || RootOf(inner) != RootOf(outer)) continue;
      const std::uint64_t begin = OffsetOf(outer), from = OffsetOf(inner);
      const bool apart = from + items_[inner].bytes <= begin || begin + items_[outer].bytes <= from;
      if (!apart && from != begin + part.offset) return false;
    }
    return true;
  }

  std::vector<ArenaBlock> Blocks() const {
    std::vector<ArenaBlock> blocks;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].outer != kNone) continue;
      ArenaBlock block{items_[i].bytes, items_[i].begin, items_[i].end, 0};
      for (const auto& [item, offset] : Inside(i)) {
        block.begin = std::min(block.begin, items_[item].begin);
        block.end = std::max(block.end, items_[item].end);
      }
      blocks.push_back(block);
    }
    return blocks;
  }

  // `blocks` are those of Blocks.
  void Store(const std::vector<ArenaBlock>& blocks) {
    auto block = blocks.begin();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].outer != kNone) continue;
      for (const auto& [item, offset] : Inside(i)) {
        graph_.ArenaOn(device_).offsets[items_[item].value] = block->offset + offset;
      }
      ++block;
    }
  }

  Graph& graph_;
  const Lives lives_;
  const DimLimits limits_;
  const bool device_;
  std::vector<Item> items_;
  bool all_known_ = true;  // their sizes
  std::vector<ArenaBlock> kept_;
  std::unordered_map<const Value*, std::size_t> items_of_;
  std::vector<const Node*> joins_;
};

}  // namespace

void PlanArena(Graph* graph) {
  ArenaPlanner(graph, false).Run();
  if (graph->device) ArenaPlanner(graph, true).Run();
}

}  // namespace rewire::compiler
