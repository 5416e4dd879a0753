// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/prepare/abstract_heap.h"

#include <algorithm>
#include <iterator>

#include "rewire/base/array.h"

namespace rewire::bounds {
namespace {

constexpr std::uint32_t kMaxNesting = 64;
constexpr std::size_t kBuckets = 4096;
constexpr std::uint64_t kHashFactor = 0x9E3779B97F4A7C15;

Array<BlockClass> Union(const Array<BlockClass>& a, const Array<BlockClass>& b) {
  Array<BlockClass> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

using Fact = std::pair<NodeId, std::uint32_t>;

Array<Fact>::const_iterator FindFact(const Array<Fact>& facts, NodeId node) {
  return std::lower_bound(facts.begin(), facts.end(), Fact(node, 0));
}

}  // namespace

std::uint32_t State::FactOf(NodeId node) const {
  const auto found = FindFact(facts, node);
  return found != facts.end() && found->first == node ? found->second : 0;
}

void State::SetFact(NodeId node, std::uint32_t fact) {
  const auto found = facts.begin() + (FindFact(facts, node) - std::as_const(facts).begin());
  const bool there = found != facts.end() && found->first == node;
  if (fact == 0) {
    if (there) facts.erase(found);
  } else if (there) {
    found->second = fact;
  } else {
    facts.insert(found, {node, fact});
  }
}

AbstractHeap::AbstractHeap(WorkMeter* meter) : meter_(*meter) {
  nodes_.emplace_back();
  mark_.push_back(0);
  in_join_.emplace_back();
  contents_.emplace_back();
  same_hash_.push_back(0);
  buckets_.resize(kBuckets, 0);
}

NodeId AbstractHeap::Add(Node node) {
  nodes_.push_back(std::move(node));
  mark_.push_back(0);
  in_join_.emplace_back();
  return size() - 1;
}

ContentsId AbstractHeap::AddContents(Contents contents) {
  std::uint64_t hash = contents.origin;
  for (const std::int64_t value : contents.values)
    hash = (hash ^ static_cast<std::uint64_t>(value)) * kHashFactor;
  ContentsId& bucket = buckets_[(hash >> 40) % kBuckets];
  for (ContentsId id = bucket; id != 0; id = same_hash_[id]) {
    meter_.Spend(1);
    if (contents_[id] == contents) return id;
  }
  contents_.push_back(std::move(contents));
  same_hash_.push_back(bucket);
  bucket = static_cast<ContentsId>(contents_.size() - 1);
  return bucket;
}

const Contents* AbstractHeap::ContentsOf(const State& state, NodeId node) const {
  ContentsId id = nodes_[node].data.empty() ? state.FactOf(node) : 0;
  if (id == 0) id = nodes_[node].contents;
  return id == 0 ? nullptr : &contents_[id];
}

template <typename Visit>
void AbstractHeap::ForEachReached(const Roots& roots, Visit visit) {
  ++epoch_;
  const auto reach = [this](NodeId id) {
    if (mark_[id] == epoch_) return;
    mark_[id] = epoch_;
    open_.push_back(id);
  };
  for (const Array<NodeId>* ids : roots) {
    for (const NodeId id : *ids) reach(id);
  }
  while (!open_.empty()) {
    const NodeId id = open_.back();
    open_.pop_back();
    meter_.Spend(1 + nodes_[id].children.size());
    visit(id);
    for (const NodeId child : nodes_[id].children) reach(child);
  }
}

void AbstractHeap::Count(const Roots& roots, const State& state, Held* held) {
  const auto add = [held](BlockClass block) {
    if (block >= held->blocks.size()) held->blocks.resize(block + 1, 0);
    ++held->blocks[block];
  };
  ForEachReached(roots, [&](NodeId id) {
    const Node& node = nodes_[id];
    for (const BlockClass block : node.blocks) add(block);
    held->objects += node.header;
    // Without data of its own, a storage has its memory behind its header.
    if (!node.data.empty() && state.FactOf(id) == 0) return;
    for (const BlockClass block : node.data) add(block);
    held->storage += node.raw;
    if (node.on_device) held->device += node.raw;
  });
}

void AbstractHeap::Prune(const Roots& roots, State* state) {
  ForEachReached(roots, [](NodeId) {});
  Array<Fact>& facts = state->facts;
  meter_.Spend(facts.size());
  facts.erase(std::remove_if(facts.begin(), facts.end(),
                             [this](const Fact& fact) { return mark_[fact.first] != epoch_; }),
              facts.end());
}

struct AbstractHeap::Joining {
  State* into;
  const State& other;
  bool* ok;
  struct Pair {
    NodeId a;
    NodeId b;
    NodeId joined;
    std::uint32_t next;  // 1 + index of another with the same a; 0: none
  };
  Array<Pair> pairs;
  Array<Fact> facts;
};

AbstractHeap::InJoin& AbstractHeap::JoinInfo(NodeId id) {
  if (mark_[id] != epoch_) {
    mark_[id] = epoch_;
    in_join_[id] = {};
  }
  return in_join_[id];
}

NodeId AbstractHeap::JoinNodes(Joining* joining, NodeId a, NodeId b, std::uint32_t depth) {
  for (std::uint32_t i = JoinInfo(a).first_pair; i != 0; i = joining->pairs[i - 1].next) {
    meter_.Spend(1);
    if (joining->pairs[i - 1].b == b) return joining->pairs[i - 1].joined;
  }
  if (depth > kMaxNesting) {
    *joining->ok = false;
    return a;
  }
  // Copies: the children's nodes may move the others.
  const Node left = nodes_[a];
  const Node right = nodes_[b];
  meter_.Spend(1 + left.children.size() + right.children.size());
  Node node = left.kind == Node::kNone ? right : left;
  const bool both = left.kind != Node::kNone && right.kind != Node::kNone;
  if (both && a != b) {
    if (left.kind != right.kind) node.kind = Node::kUnknown;
    if (!left.has_dims || !right.has_dims || left.dims != right.dims || left.exact != right.exact) {
      node.has_dims = false;
      node.dims.clear();
    }
    if (!(left.dtype == right.dtype)) node.dtype = {0, 0, 0};
    if (left.rank != right.rank) node.rank = kUnknownRank;
    if (left.contents != right.contents) node.contents = 0;
    if (left.function != right.function) node.function = kNoFunction;
    node.exact = left.exact && right.exact;
    if (left.origin != right.origin) node.origin = 0;
    node.alignment = std::min(left.alignment, right.alignment);
    node.raw = std::max(left.raw, right.raw);
    node.on_device = left.on_device || right.on_device;
    node.header = std::max(left.header, right.header);
    node.blocks = Union(left.blocks, right.blocks);
    node.data = Union(left.data, right.data);
    if (node.children.size() < right.children.size()) node.children.resize(right.children.size(), kNothing);
  }
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const NodeId from_left = i < left.children.size() ? left.children[i] : kNothing;
    const NodeId from_right = i < right.children.size() ? right.children[i] : kNothing;
    node.children[i] = JoinNodes(joining, from_left, from_right, depth + 1);
  }
  const auto same = [&node](const Node& old) {
    return node.kind == old.kind && node.has_dims == old.has_dims && node.exact == old.exact &&
           node.origin == old.origin && node.dtype == old.dtype && node.rank == old.rank &&
           node.dims == old.dims && node.contents == old.contents && node.function == old.function &&
           node.raw == old.raw && node.alignment == old.alignment && node.on_device == old.on_device &&
           node.header == old.header && node.blocks == old.blocks && node.data == old.data &&
           node.children == old.children;
  };
  // A node may go on standing for itself, or for one pair of nodes that nobody else holds.
  NodeId joined = left.kind == Node::kNone ? b : a;
  InJoin& info = JoinInfo(joined);
  const bool itself = !both || a == b;
  const bool free = itself ? !info.merged : !info.merged && !info.as_itself && !info.outer;
  if (free && same(nodes_[joined])) {
    (itself ? info.as_itself : info.merged) = true;
  } else {
    joined = Add(std::move(node));
  }
  joining->pairs.push_back({a, b, joined, JoinInfo(a).first_pair});
  JoinInfo(a).first_pair = static_cast<std::uint32_t>(joining->pairs.size());

  const std::uint32_t fact_a = joining->into->FactOf(a);
  const std::uint32_t fact_b = joining->other.FactOf(b);
  std::uint32_t fact = fact_a == fact_b ? fact_a : 0;
  if (!both) fact = left.kind == Node::kNone ? fact_b : fact_a;
  if (!nodes_[joined].data.empty()) {
    // Two storages that become one: memory taken through it is that of either.
    fact = fact_a != 0 || fact_b != 0 || (both && a != b) ? 1 : 0;
    if (both && a != b) {
      if (!left.data.empty()) joining->facts.emplace_back(a, 1);
      if (!right.data.empty()) joining->facts.emplace_back(b, 1);
    }
  }
  // Also one that is not known: it outweighs what another pair of the node says.
  if (fact_a != 0 || fact_b != 0 || fact != 0) joining->facts.emplace_back(joined, fact);
  return joined;
}

// Facts of nodes that were not met (callers hold them) stay: memory taken on either path is taken.
void AbstractHeap::JoinFacts(Joining* joining) {
  ++epoch_;
  for (const Joining::Pair& pair : joining->pairs) {
    mark_[pair.a] = mark_[pair.b] = mark_[pair.joined] = epoch_;
  }
  const auto keep = [&](const State& from, const State& beside) {
    for (const auto& [id, fact] : from.facts) {
      const bool storage = !nodes_[id].data.empty();
      if (mark_[id] != epoch_ && (storage || beside.FactOf(id) == fact))
        joining->facts.emplace_back(id, fact);
    }
  };
  keep(*joining->into, joining->other);
  keep(joining->other, *joining->into);
  Array<Fact>& facts = joining->facts;
  std::sort(facts.begin(), facts.end());
  facts.erase(std::unique(facts.begin(), facts.end(),
                          [](const Fact& a, const Fact& b) { return a.first == b.first; }),
              facts.end());
  facts.erase(std::remove_if(facts.begin(), facts.end(), [](const Fact& fact) { return fact.second == 0; }),
              facts.end());
}

// NOLINTNEXTLINE(readability-non-const-parameter): joining writes `ok`.
bool AbstractHeap::Join(State* into, const State& other, Roots outer, bool* ok) {
  Joining joining{into, other, ok, {}, {}};
  meter_.Spend(into->registers.size() + into->facts.size() + other.facts.size());
  Array<NodeId> held;
  ForEachReached(outer, [&held](NodeId id) { held.push_back(id); });
  ++epoch_;
  for (const NodeId id : held) JoinInfo(id).outer = true;
  State joined;
  joined.registers.resize(into->registers.size());
  for (std::size_t i = 0; i < joined.registers.size(); ++i) {
    joined.registers[i] = JoinNodes(&joining, into->registers[i], other.registers[i], 0);
  }
  JoinFacts(&joining);
  joined.facts = std::move(joining.facts);
  outer.push_back(&joined.registers);
  Prune(outer, &joined);
  if (joined.registers == into->registers && joined.facts == into->facts) return false;
  *into = std::move(joined);
  return true;
}

}  // namespace rewire::bounds
