// SPDX-License-Identifier: Apache-2.0
//
// Leaves constants out of the file that would take much more of it than what they are made of: weights of one
// column that are packed as 16, and matrices that the model has as formulas. They are made when a program is
// loaded. Those that save most come first, until all constants are at
// most a sixteenth larger than they can be. Most models are below that from the start, and load without work.
// Floats of 16 bits that become larger ones are made at load in any case.
//
// A constant is made by nodes of `init`, which pack, or by nodes that were run while the model was lowered
// (Value::folded). Each is either held by the file or made again from what makes it, whichever takes less of
// the file.
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/half.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/parallel/node_time.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

// Constants may be so many bytes larger in any case, so that small programs load without work.
constexpr std::int64_t kFewBytes = 256;
// Constants of a file are mapped, and all processes share them. So a large one that was folded stays in the
// file unless it has so many times the bytes of what it is made of. This does not hold for floats of 16 bits
// that become larger ones: a file of such weights is about as large as the model.
constexpr std::int64_t kLarge = 65536;
constexpr std::int64_t kTimes = 4;
// About what the file takes for a node that was folded.
constexpr std::int64_t kNodeBytes = 128;
// The most that the nodes before a constant may take for each of its bytes. Those that move elements or
// compute each for itself take less, large products take more.
constexpr double kNanosecondsOfByte = 1;
// The most that folded nodes may write when a program is loaded, besides four times the constants' bytes.
// Linking has a limit of twice as much (LinkLimits::bytes).
constexpr std::int64_t kMostWritten = std::int64_t{256} << 20;
// The most nodes on the way to a constant.
constexpr int kMostDepth = 256;

class ComputingAtLoad {
 public:
  explicit ComputingAtLoad(Graph* graph) : graph_(*graph) {
    for (Node* node : graph_.init.nodes) {
      made_.insert(node->outputs.begin(), node->outputs.end());
      if (node->at_load || node->returns) at_load_.insert(node);
    }
    FollowAtLoad();
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (const Node* node : block->nodes) Read(*node);
      for (const Value* result : block->results) Read(result);
    });
    for (const Node* node : graph_.init.nodes) {
      if (at_load_.contains(node)) Read(*node);
    }
  }

  void Run() {
    std::vector<const Value*> candidates;
    for (const Value* value : read_) {
      if (WayTo(value, 0).makes) candidates.push_back(value);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const Value* a, const Value* b) { return SavingOf(a) > SavingOf(b); });
    const std::int64_t least = LeastBytes(candidates);
    const std::int64_t most = least + std::max(least / 16, kFewBytes);
    std::int64_t bytes = BytesInFile(), written = 0;
    bool small = false;
    for (const Value* value : candidates) {
      const Way& way = ways_.at(value);
      small = small || (bytes <= most && (bytes = BytesInFile()) <= most);
      if (small && !(way.halves && SavingOf(value) > kNodeBytes)) continue;
      if (written + way.written > kMostWritten + 4 * least) continue;
      written += way.written;
      bytes -= SavingOf(value);
      Take(value);
    }
    FollowAtLoad();
    Finish();
  }

 private:
  // The costs of having a value when a program is loaded.
  struct Way {
    bool makes = false;      // by the node that makes it; otherwise the file holds it
    std::int64_t bytes = 0;  // of the file
    // The time of folded nodes. What several nodes on the way read counts for each of them.
    double time = 0;
    std::int64_t written = 0;
    int depth = 0;
    bool halves = false;  // floats of 16 bits become larger ones on it
  };

  void Read(const Value* value) {
    if (value == nullptr || !seen_.insert(value).second) return;
    std::size_t next = read_.size();
    read_.push_back(value);
    // The nodes that compute from parameters run at load, and read constants then.
    for (; next < read_.size(); ++next) {
      const Node* maker = read_[next]->at_load ? read_[next]->folded : nullptr;
      for (std::size_t i = 0; maker != nullptr && i < maker->inputs.size(); ++i) {
        const Value* input = maker->inputs[i];
        if (input != nullptr && seen_.insert(input).second) read_.push_back(input);
      }
    }
  }
  void Read(const Node& node) {
    for (const Value* input : node.inputs) Read(input);
    for (const Node::Extent& extent : node.extents) Read(extent.shape);
  }

  static std::int64_t BytesOf(const Value* value) {
    if (value->at_load) return 0;  // a parameter, or made of one: the file does not hold it
    const auto dims = value->type.IsTensor() ? ConstantDims(value->type.dims) : std::nullopt;
    return dims ? static_cast<std::int64_t>(TensorBytes(value->type.dtype, *dims).value_or(0)) : 0;
  }

  // The node that makes a constant; null if the model has it so, or if no node may make it when a program is
  // loaded.
  Node* MakerOf(const Value* value) const {
    if (made_.contains(value)) return value->producer;
    Node* node = value->IsConstant() && !value->at_load ? value->folded : nullptr;
    const bool plain = node != nullptr && node->outputs.size() == 1 && !node->returns && node->flags == 0;
    return plain ? node : nullptr;
  }

  const Way& WayTo(const Value* value, int depth) {
    const auto [place, added] = ways_.try_emplace(value);
    Way& held = place->second;  // stays where it is
    if (!added) return held;
    const Node* maker = MakerOf(value);
    held.bytes = BytesOf(value);
    if (maker == nullptr || depth == kMostDepth) return held;
    Way way;
    way.makes = true;
    const bool folded = value->folded == maker;
    if (folded) {
      const bool view = maker->kind == NodeKind::kReshape;
      const std::optional<double> time = view ? 0 : TimeOf(graph_, *maker);
      if (!time) return held;
      way.bytes = kNodeBytes;
      way.time = *time;
      way.written = view ? 0 : held.bytes;
    }
    for (const Value* input : maker->inputs) {
      if (input == nullptr) continue;
      const Way& to_input = WayTo(input, depth + 1);
      way.halves = way.halves || (to_input.halves && value->type.dtype.bits > 16);
      // A constant that the file holds for runs takes nothing more.
      const bool shared = !to_input.makes && seen_.contains(input);
      way.bytes += shared ? 0 : to_input.bytes;
      way.time += to_input.time;
      way.written += to_input.written;
      way.depth = std::max(way.depth, to_input.depth + 1);
    }
    const bool fast = way.time <= static_cast<double>(held.bytes) * kNanosecondsOfByte;
    way.halves = way.halves || WidensHalves(*maker);
    const std::int64_t times = folded && held.bytes > kLarge && !WidensHalves(*maker) ? kTimes : 1;
    const bool better = way.bytes < held.bytes / times && fast && way.depth <= kMostDepth;
    if (better || at_load_.contains(maker)) held = way;
    return held;
  }

  static bool WidensHalves(const Node& node) {
    return node.kernel == names::kCast && IsHalf(node.inputs[0]->type.dtype) &&
           node.outputs[0]->type.dtype.bits > 16;
  }

  std::int64_t SavingOf(const Value* value) const { return BytesOf(value) - ways_.at(value).bytes; }

  // The value is made at load.
  void Take(const Value* value) {
    if (!WayTo(value, 0).makes) return;
    Node* maker = MakerOf(value);
    if (!at_load_.insert(maker).second) return;
    for (const Value* input : maker->inputs) {
      if (input != nullptr) Take(input);
    }
    if (value->folded == maker) unfolded_.push_back(maker);
  }

  // A node of `init` that reads what is made at load runs behind that.
  void FollowAtLoad() {
    for (const Node* node : graph_.init.nodes) {
      const bool follows = std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* input) {
        return input != nullptr && (input->at_load || at_load_.contains(MakerOf(input)));
      });
      if (follows) at_load_.insert(node);
    }
  }

  std::int64_t LeastBytes(const std::vector<const Value*>& candidates) {
    const std::unordered_set<const Node*> before = at_load_;
    for (const Value* value : candidates) Take(value);
    const std::int64_t bytes = BytesInFile();
    at_load_ = before;
    unfolded_.clear();
    return bytes;
  }

  // The bytes of the constants that runs and nodes at load read.
  std::int64_t BytesInFile() const {
    std::int64_t bytes = 0;
    std::vector<const Value*> left = read_;
    std::unordered_set<const Value*> seen(left.begin(), left.end());
    while (!left.empty()) {
      const Value* value = left.back();
      left.pop_back();
      const Node* maker = MakerOf(value);
      if (maker == nullptr && !value->IsConstant()) continue;  // a run makes it
      if (maker == nullptr || !at_load_.contains(maker)) {
        bytes += BytesOf(value);
        continue;
      }
      for (const Value* input : maker->inputs) {
        if (input != nullptr && seen.insert(input).second) left.push_back(input);
      }
    }
    return bytes;
  }

  void Finish() {
    for (Node* node : graph_.init.nodes) node->at_load = at_load_.contains(node);
    for (auto at = unfolded_.rbegin(); at != unfolded_.rend(); ++at) {
      Node* node = *at;
      node->at_load = true;
      Value* output = node->outputs[0];
      output->constant.reset();
      output->producer = node;
      // The weights that the model has keep the name, by which a user may replace them.
      if (output->name == node->inputs[0]->name) output->name += ".computed";
    }
    // Each in front of its first reader, so that few of them live at once.
    std::vector<Node*> nodes;
    for (Node* node : graph_.init.nodes) {
      for (const Value* input : node->inputs) Place(input, &nodes);
      nodes.push_back(node);
    }
    for (const Node* node : unfolded_) Place(node->outputs[0], &nodes);
    graph_.init.nodes = std::move(nodes);
    // Formulas often stand in a model several times.
    if (!unfolded_.empty()) ShareConstants(&graph_);
  }

  // Appends what makes the value, if that was folded and does not stand there.
  void Place(const Value* value, std::vector<Node*>* nodes) {
    if (value == nullptr || value->producer == nullptr || value->folded != value->producer) return;
    if (!placed_.insert(value->producer).second) return;
    for (const Value* input : value->producer->inputs) Place(input, nodes);
    nodes->push_back(value->producer);
  }

  Graph& graph_;
  std::vector<const Value*> read_;  // by runs, or by nodes that run at load in any case
  std::unordered_set<const Value*> seen_;
  std::unordered_set<const Value*> made_;  // by the nodes of `init`
  std::unordered_map<const Value*, Way> ways_;
  std::unordered_set<const Node*> at_load_;
  std::unordered_set<const Node*> placed_;
  std::vector<Node*> unfolded_;  // those at load that were folded, each behind what it reads
};

}  // namespace

void ComputeAtLoad(Graph* graph) { ComputingAtLoad(graph).Run(); }

}  // namespace rewire::compiler
