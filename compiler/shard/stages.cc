// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/shard/costs.h"
#include "rewire/compiler/shard/node_list.h"
#include "rewire/kernels/contract/collective.h"

namespace rewire::compiler {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostPlaces = 2000;  // that are looked at for cuts
constexpr double kCheapSeconds = 1e-4;     // what each stage may compute for itself

bool IsTensor(const Value* value) { return value->type.IsTensor() && value->type.ranked; }

// Calls `visit` with all that a node and the blocks in it read.
template <typename Visit>
void ForEachRead(const Node& node, const Visit& visit) {
  for (const Value* input : node.inputs) {
    if (input != nullptr) visit(input);
  }
  for (const Node::Extent& extent : node.extents) {
    if (extent.shape != nullptr) visit(extent.shape);
  }
  for (const Block& inner : node.blocks) {
    for (const Node* child : inner.nodes) ForEachRead(*child, visit);
    for (const Value* result : inner.results) {
      if (result != nullptr) visit(result);
    }
  }
}

// The symbols in the sizes that a node and the blocks in it allocate.
void CollectSymbols(const Node& node, std::set<std::string>* names) {
  for (const Node::Extent& extent : node.extents) {
    for (const DimExpr& dim : extent.dims) dim.CollectSymbols(names);
  }
  for (const Block& inner : node.blocks) {
    for (const Node* child : inner.nodes) CollectSymbols(*child, names);
  }
}

class Pipeline {
 public:
  Pipeline(Graph* graph, std::int64_t stages) : graph_(*graph), stages_(static_cast<std::size_t>(stages)) {}

  Status Cut(std::size_t stage, ShardReport* report) {
    Measure();
    if (Status found = FindCuts(); !found) return found;
    Keep(stage);
    report->stage_seconds = seconds_behind_[cuts_[stage + 1]] - seconds_behind_[cuts_[stage]];
    report->pipeline_seconds = seconds_behind_.back();
    return {};
  }

 private:
  std::size_t count() const { return graph_.main.nodes.size(); }

  // All that a node reads, and the values at which the sizes that it allocates are read.
  template <typename Visit>
  void ForEachNeed(const Node& node, const Visit& visit) const {
    ForEachRead(node, visit);
    std::set<std::string> symbols;
    CollectSymbols(node, &symbols);
    for (const std::string& name : symbols) {
      const auto source = graph_.symbols().find(name);
      if (source != graph_.symbols().end()) visit(source->second.value);
    }
  }

  void Measure() {
    const std::vector<Node*>& nodes = graph_.main.nodes;
    seconds_behind_.assign(1, 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      std::uint64_t weights = 0;
      ForEachRead(*nodes[i], [&](const Value* value) {
        // Packed weights come from nodes that run once.
        const bool given = !made_.contains(value) && (value->IsConstant() || value->producer != nullptr);
        if (given && IsTensor(value)) weights += static_cast<std::uint64_t>(CountedBytes(graph_, *value));
      });
      const double seconds = SecondsOf(graph_, *nodes[i], weights);
      seconds_behind_.push_back(seconds_behind_.back() + seconds);
      bool cheap =
          seconds < kCheapSeconds && weights < 4096 && nodes[i]->blocks.empty() && !nodes[i]->returns;
      ForEachNeed(*nodes[i],
                  [&](const Value* value) { cheap = cheap && (IsGiven(value) || IsCheap(value)); });
      for (const Value* output : nodes[i]->outputs) {
        made_.emplace(output, i);
        if (cheap) cheap_.insert(output);
      }
    }
    // A value crosses all places from its producer to its last reader.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ForEachNeed(*nodes[i], [&](const Value* value) {
        if (made_.contains(value)) last_read_[value] = i;
      });
    }
    crossing_.assign(nodes.size() + 1, 0);
    for (const auto& [value, reader] : last_read_) {
      if (IsCheap(value)) continue;
      const double bytes = IsTensor(value) ? CountedBytes(graph_, *value) : kNever;
      for (std::size_t place = made_.at(value) + 1; place <= reader; ++place) crossing_[place] += bytes;
    }
  }

  // An input or a constant, also one that nodes make once.
  bool IsGiven(const Value* value) const { return !made_.contains(value); }
  bool IsCheap(const Value* value) const { return cheap_.contains(value); }

  // The cuts with which the slowest stage is fastest: for each place and number of stages in front of it, the
  // best place of the cut before.
  Status FindCuts() {
    std::vector<std::size_t> places;
    for (std::size_t place = 1; place < count(); ++place) {
      if (crossing_[place] < kNever) places.push_back(place);
    }
    if (places.size() > kMostPlaces) {
      std::nth_element(places.begin(), places.begin() + kMostPlaces, places.end(),
                       [&](std::size_t a, std::size_t b) {
                         return crossing_[a] != crossing_[b] ? crossing_[a] < crossing_[b] : a < b;
                       });
      places.resize(kMostPlaces);
      std::sort(places.begin(), places.end());
    }
    if (places.size() + 1 < stages_) {
      return Fail(
          StatusCode::kUnsupported,
          fmt::format("{} stages need {} cuts, and the program has {} places for one: a stage passes on "
                      "tensors of known rank alone; ask for fewer stages",
                      stages_, stages_ - 1, places.size()));
    }
    places.insert(places.begin(), 0);
    places.push_back(count());
    const std::size_t n = places.size();
    std::vector<std::vector<double>> best(stages_ + 1, std::vector<double>(n, kNever));
    std::vector<std::vector<std::size_t>> from(stages_ + 1, std::vector<std::size_t>(n, 0));
    best[0][0] = 0;
    for (std::size_t stage = 1; stage <= stages_; ++stage) {
      for (std::size_t end = stage; end < n; ++end) {
        for (std::size_t begin = stage - 1; begin < end; ++begin) {
          const double exchanged = begin == 0 ? 0 : SecondsOfGather(crossing_[places[begin]], 2);
          const double own = seconds_behind_[places[end]] - seconds_behind_[places[begin]] + exchanged;
          const double slowest = std::max(best[stage - 1][begin], own);
          if (slowest < best[stage][end]) {
            best[stage][end] = slowest;
            from[stage][end] = begin;
          }
        }
      }
    }
    cuts_.assign(stages_ + 1, 0);
    std::size_t at = n - 1;
    for (std::size_t stage = stages_; stage > 0; --stage) {
      cuts_[stage] = places[at];
      at = from[stage][at];
    }
    return {};
  }

  std::size_t StageOf(const Value* value) const {
    const std::size_t place = made_.at(value);
    std::size_t stage = 0;
    while (cuts_[stage + 1] <= place) ++stage;
    return stage;
  }

  // The values of earlier stages that a stage reads, in the order in which they are made.
  std::vector<Value*> Received(std::size_t stage) const {
    std::set<std::size_t> places;
    std::unordered_set<const Value*> read;
    for (std::size_t i = cuts_[stage]; i < cuts_[stage + 1]; ++i) {
      ForEachNeed(*graph_.main.nodes[i], [&](const Value* value) {
        const auto made = made_.find(value);
        if (made == made_.end() || IsCheap(value) || made->second >= cuts_[stage]) return;
        read.insert(value);
        places.insert(made->second);
      });
    }
    std::vector<Value*> received;
    for (const std::size_t place : places) {
      for (Value* output : graph_.main.nodes[place]->outputs) {
        if (read.contains(output)) received.push_back(output);
      }
    }
    return received;
  }

  static std::vector<Attribute> Peer(std::size_t peer, std::size_t tag) {
    return {{"peer", static_cast<std::int64_t>(peer)}, {"tag", static_cast<std::int64_t>(tag)}};
  }

  // Two ranks exchange in the order of the graph, so one tag for shapes and one for tensors suffice.
  static constexpr std::size_t kShapeTag = 0, kTensorTag = 1;

  void Receive(NodeList* list, Value* value, std::unordered_map<const Value*, Value*>* here) {
    const std::size_t peer = StageOf(value);
    Value* shape = nullptr;
    if (!ConstantDims(value->type.dims)) {
      const auto rank = static_cast<std::int64_t>(value->type.dims.size());
      shape = list->Call(names::kReceive, {}, Peer(peer, kShapeTag), value->name + ".shape",
                         TensorOf(kInt64, {rank}));
    }
    Value* received = list->Call(names::kReceive, {}, Peer(peer, kTensorTag), value->name, value->type);
    received->producer->source = value->producer->source;
    received->producer->extents[0].shape = shape;
    received->model_name = value->model_name;
    here->emplace(value, received);
  }

  void Send(NodeList* list, Value* value, std::size_t peer) {
    if (!ConstantDims(value->type.dims)) {
      Node* sizes = graph_.NewNode(NodeKind::kDims);
      const auto rank = static_cast<std::int64_t>(value->type.dims.size());
      Value* shape = graph_.NewValue(value->name + ".shape", TensorOf(kInt64, {rank}));
      shape->producer = sizes;
      sizes->outputs = {shape};
      sizes->extents = {{value->type.dims, nullptr}};
      sizes->source = value->producer->source;
      list->nodes().push_back(sizes);
      list->Call(names::kSend, {shape}, Peer(peer, kShapeTag), "sent", TensorOf(kInt64, {}));
    }
    list->Call(names::kSend, {value}, Peer(peer, kTensorTag), "sent", TensorOf(kInt64, {}));
  }

  void Keep(std::size_t stage) {
    NodeList list(&graph_);
    std::unordered_map<const Value*, Value*> here;
    for (Value* value : Received(stage)) Receive(&list, value, &here);
    // Who reads what this stage makes.
    std::unordered_map<const Value*, std::vector<std::size_t>> readers;
    for (std::size_t later = stage + 1; later < stages_; ++later) {
      for (const Value* value : Received(later)) {
        if (StageOf(value) == stage) readers[value].push_back(later);
      }
    }
    for (std::size_t i = 0; i < count(); ++i) {
      Node* node = graph_.main.nodes[i];
      const bool own = i >= cuts_[stage] && i < cuts_[stage + 1];
      const bool cheap = !node->outputs.empty() && IsCheap(node->outputs[0]);
      if (!own && !cheap) continue;
      list.nodes().push_back(node);
      for (Value* output : node->outputs) {
        if (!own) break;
        for (const std::size_t peer : readers[output]) Send(&list, output, peer);
      }
    }
    KeepResults(stage);
    graph_.main.nodes = std::move(list.nodes());
    Replace(&graph_.main, here);
    graph_.MoveSymbols(here);
    RemoveDeadCode(&graph_);
    FindSymbols();
    KeepInputs();
  }

  // A result that is an input or cheap is that of the last stage.
  void KeepResults(std::size_t stage) {
    std::vector<Value*> results;
    std::vector<std::string> result_names;
    for (std::size_t i = 0; i < graph_.main.results.size(); ++i) {
      Value* result = graph_.main.results[i];
      const bool made = made_.contains(result) && !IsCheap(result);
      if ((made ? StageOf(result) : stages_ - 1) != stage) continue;
      results.push_back(result);
      result_names.push_back(graph_.output_names[i]);
    }
    graph_.main.results = std::move(results);
    graph_.output_names = std::move(result_names);
  }

  void Replace(Block* block, const std::unordered_map<const Value*, Value*>& here) {
    const auto replace = [&](Value*& value) {
      if (const auto found = here.find(value); found != here.end()) value = found->second;
    };
    for (Node* node : block->nodes) {
      for (Value*& input : node->inputs) replace(input);
      for (Node::Extent& extent : node->extents) replace(extent.shape);
      for (Block& inner : node->blocks) Replace(&inner, here);
    }
    for (Value*& result : block->results) replace(result);
  }

  // A size whose source lies in another stage is read from a value that this stage has in front of all
  // others: what it receives, or an input that it reads in any case.
  void FindSymbols() {
    std::unordered_set<const Value*> read;
    std::vector<const Value*> sources;
    std::set<std::string> symbols;
    for (const Node* node : graph_.main.nodes) {
      ForEachRead(*node, [&](const Value* value) { read.insert(value); });
      CollectSymbols(*node, &symbols);
      if (node->kernel == names::kReceive) sources.push_back(node->outputs[0]);
    }
    for (const Value* parameter : graph_.main.parameters) {
      if (read.contains(parameter)) sources.push_back(parameter);
    }
    for (const std::string& name : symbols) {
      const auto source = graph_.symbols().find(name);
      if (source == graph_.symbols().end() || read.contains(source->second.value)) continue;
      for (const Value* value : sources) {
        const auto axis = std::find_if(value->type.dims.begin(), value->type.dims.end(),
                                       [&](const DimExpr& dim) { return dim.symbol() == name; });
        if (axis == value->type.dims.end()) continue;
        graph_.MoveSymbol(name, value, static_cast<std::uint32_t>(axis - value->type.dims.begin()));
        break;
      }
    }
  }

  // Inputs that nothing reads are left out, but for those that say a size.
  void KeepInputs() {
    std::unordered_set<const Value*> used(graph_.main.results.begin(), graph_.main.results.end());
    std::set<std::string> symbols;
    for (const Node* node : graph_.main.nodes) {
      ForEachRead(*node, [&](const Value* value) { used.insert(value); });
      CollectSymbols(*node, &symbols);
    }
    for (const std::string& name : symbols) {
      const auto source = graph_.symbols().find(name);
      if (source != graph_.symbols().end()) used.insert(source->second.value);
    }
    std::vector<Value*> parameters;
    std::vector<std::string> input_names;
    for (std::size_t i = 0; i < graph_.main.parameters.size(); ++i) {
      if (!used.contains(graph_.main.parameters[i])) continue;
      parameters.push_back(graph_.main.parameters[i]);
      input_names.push_back(graph_.input_names[i]);
    }
    graph_.main.parameters = std::move(parameters);
    graph_.input_names = std::move(input_names);
  }

  Graph& graph_;
  const std::size_t stages_;
  std::vector<double> seconds_behind_;  // of all nodes in front of a place
  std::vector<double> crossing_;        // bytes that a cut at a place passes on
  std::vector<std::size_t> cuts_;       // where the stages begin, and the end
  std::unordered_map<const Value*, std::size_t> made_, last_read_;
  std::unordered_set<const Value*> cheap_;
};

}  // namespace

Status CutStage(Graph* graph, std::int64_t stages, std::int64_t stage, ShardReport* report) {
  return Pipeline(graph, stages).Cut(static_cast<std::size_t>(stage), report);
}

}  // namespace rewire::compiler
