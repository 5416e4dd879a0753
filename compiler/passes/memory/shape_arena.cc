// SPDX-License-Identifier: Apache-2.0
// One piece of memory for tensors whose sizes are expressions of the inputs' dimensions: laid out when the
// program runs and has those. Tensors on the device have a piece of their own there.
//
// The order of tensors above each other is decided here, for inputs of middling sizes. A block then begins
// where the highest of those ends that it lies on: right for all sizes, and as good where they grow alike.
// And larger blocks never make the whole smaller, so that the most they can be gives the most it can be.
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/symbol_definitions.h"
#include "rewire/compiler/passes/memory/arena_layout.h"
#include "rewire/compiler/passes/memory/lives.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

// The sizes that dimensions of the inputs are taken to have: the outermost, mostly a batch, and others.
constexpr std::int64_t kOutermost = 4, kInner = 256;
// The least that has to be saved at these sizes: the layout costs each run some 50 ns a tensor.
constexpr std::uint64_t kLeastSaved = std::uint64_t{1} << 20;
// The largest are laid out: the kernel has room for these.
constexpr std::size_t kMostBlocks = 512, kMostSymbols = 512;

struct Item {
  const Value* value;
  const Shape* dims;
  ArenaBlock block;  // at the sizes above
};

class ShapeArenaPlanner {
 public:
  ShapeArenaPlanner(Graph* graph, bool device)
      : graph_(*graph), arena_(graph->ShapeArenaOn(device)), lives_(*graph), device_(device) {}

  void Run() {
    FindSymbols();
    Collect(graph_.main);
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.block.bytes > b.block.bytes; });
    if (items_.size() > kMostBlocks) items_.resize(kMostBlocks);
    std::vector<ArenaBlock> blocks;
    for (const Item& item : items_) blocks.push_back(item.block);
    const std::uint64_t separate = PooledBytes(blocks, device_);
    const std::uint64_t bytes = LayOut(&blocks, ArenaAlignment(device_));
    if (PooledBytes({{bytes, 0, lives_.last_place(), 0}}, device_) + kLeastSaved > separate) return;
    if (StoreSymbols()) Store(blocks);
  }

 private:
  // Symbols whose values show when the inputs are there.
  void FindSymbols() {
    for (const Value* parameter : graph_.main.parameters) {
      const Shape& dims = parameter->type.dims;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        const std::optional<std::string> name = dims[i].symbol();
        if (!name) continue;
        const std::int64_t size = i == 0 && dims.size() > 1 ? kOutermost : kInner;
        const auto limit = graph_.max_dims.find(*name);
        symbols_.try_emplace(*name, limit == graph_.max_dims.end() ? size : std::min(size, limit->second));
      }
    }
    for (const auto& [name, dim] : SymbolDefinitions(graph_)) {
      if (symbols_.contains(name)) continue;
      if (const std::optional<std::int64_t> value = Middling(dim)) {
        symbols_[name] = *value;
        definitions_.emplace_back(name, dim);
      }
    }
  }

  // Nothing where a symbol shows later only.
  std::optional<std::int64_t> Middling(const DimExpr& dim) const {
    bool known = true;
    const Interval bounds = dim.Bounds([&](const std::string& name) {
      const auto found = symbols_.find(name);
      known = known && found != symbols_.end();
      return found == symbols_.end() ? Interval::FromZero() : Interval::Of(found->second);
    });
    if (!known) return std::nullopt;
    return std::max<std::int64_t>(bounds.most, 0);
  }

  void Collect(const Block& block) {
    for (const Node* node : block.nodes) {
      for (const Block& inner : node->blocks) Collect(inner);
      if (node->kind != NodeKind::kKernel || node->returns || node->in_place) continue;
      for (std::size_t i = 0; i < node->outputs.size(); ++i) Add(*node, i);
    }
  }

  void Add(const Node& node, std::size_t index) {
    const Node::Extent& extent = node.extents[index];
    const Value* value = node.outputs[index];
    if (value->on_device != device_ || extent.shape != nullptr || !value->type.ranked ||
        ConstantDims(extent.dims) || lives_.IsKept(value) ||
        graph_.ArenaOn(device_).offsets.contains(value)) {
      return;
    }
    std::vector<std::int64_t> dims;
    for (const DimExpr& dim : extent.dims) {
      const std::optional<std::int64_t> size = Middling(dim);
      if (!size) return;
      dims.push_back(*size);
    }
    const std::optional<std::uint64_t> bytes = TensorBytes(value->type.dtype, dims);
    if (!bytes) return;
    items_.push_back({value, &extent.dims, {*bytes, lives_.PlaceOf(&node), lives_.EndOf(value), 0}});
  }

  // Stores the symbols that sizes are computed with; false where the kernel has no room for them.
  bool StoreSymbols() {
    std::set<std::string> used;
    for (const Item& item : items_) {
      for (const DimExpr& dim : *item.dims) dim.CollectSymbols(&used);
    }
    std::vector<std::pair<std::string, DimExpr>> needed;
    for (auto definition = definitions_.rbegin(); definition != definitions_.rend(); ++definition) {
      if (!used.contains(definition->first)) continue;
      definition->second.CollectSymbols(&used);
      needed.push_back(*definition);
    }
    if (needed.size() > kMostSymbols) return false;
    std::reverse(needed.begin(), needed.end());
    arena_.symbols = std::move(needed);
    return true;
  }

  // `blocks` are the items', laid out.
  void Store(const std::vector<ArenaBlock>& blocks) {
    std::vector<std::size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return blocks[a].offset < blocks[b].offset; });
    const auto meet = [&](std::size_t a, std::size_t b) {
      return blocks[a].begin <= blocks[b].end && blocks[b].begin <= blocks[a].end;
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      ShapeArena::Block block{items_[order[i]].value, *items_[order[i]].dims, {}};
      // Keeps the tensors below that are needed at the same time and that no other of them lies on.
      for (std::size_t k = i; k-- > 0;) {
        const bool covered = std::any_of(block.on.begin(), block.on.end(),
                                         [&](std::size_t above) { return meet(order[above], order[k]); });
        if (meet(order[i], order[k]) && !covered) block.on.push_back(k);
      }
      arena_.blocks.push_back(std::move(block));
    }
  }

  Graph& graph_;
  ShapeArena& arena_;
  const Lives lives_;
  const bool device_;
  std::unordered_map<std::string, std::int64_t> symbols_;
  std::vector<std::pair<std::string, DimExpr>> definitions_;
  std::vector<Item> items_;
};

}  // namespace

void PlanShapeArena(Graph* graph) {
  ShapeArenaPlanner(graph, false).Run();
  if (graph->device) ShapeArenaPlanner(graph, true).Run();
}

}  // namespace rewire::compiler
