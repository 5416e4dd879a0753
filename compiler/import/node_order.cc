// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/node_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

namespace rewire::compiler {
namespace {

// The names that a node reads: its inputs, and what its subgraphs take from around them. The nesting of
// subgraphs is bounded by protobuf, which parses at most 100 levels of messages.
void CollectReads(const onnx::NodeProto& node, std::set<std::string>* reads) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) reads->insert(input);
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    std::vector<const onnx::GraphProto*> graphs;
    if (attribute.has_g()) graphs.push_back(&attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) graphs.push_back(&graph);
    for (const onnx::GraphProto* graph : graphs) {
      std::set<std::string> inner;
      std::set<std::string> own;
      for (const onnx::NodeProto& child : graph->node()) {
        CollectReads(child, &inner);
        own.insert(child.output().begin(), child.output().end());
      }
      for (const onnx::ValueInfoProto& output : graph->output()) inner.insert(output.name());
      for (const onnx::ValueInfoProto& input : graph->input()) own.insert(input.name());
      for (const onnx::TensorProto& tensor : graph->initializer()) own.insert(tensor.name());
      for (const std::string& name : inner) {
        if (!name.empty() && !own.contains(name)) reads->insert(name);
      }
    }
  }
}

}  // namespace

std::string NodeName(const onnx::NodeProto& node) {
  return node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
}

std::string NodeText(const onnx::NodeProto& node) {
  return fmt::format("{} '{}'", node.op_type(), NodeName(node));
}

Result<std::vector<const onnx::NodeProto*>> OrderNodes(
    const NodeList& nodes, const std::function<bool(const std::string&)>& defined) {
  std::unordered_map<std::string, int> producers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes.Get(i).output()) {
      if (output.empty()) continue;
      if (!producers.emplace(output, i).second) {
        return Fail(StatusCode::kInvalidFile,
                    fmt::format("value '{}' is written by {} and again by {}", output,
                                NodeText(nodes.Get(producers[output])), NodeText(nodes.Get(i))));
      }
    }
  }
  std::vector<std::vector<int>> users(static_cast<std::size_t>(nodes.size()));
  std::vector<int> waits(static_cast<std::size_t>(nodes.size()), 0);
  for (int i = 0; i < nodes.size(); ++i) {
    std::set<std::string> reads;
    CollectReads(nodes.Get(i), &reads);
    for (const std::string& name : reads) {
      const auto producer = producers.find(name);
      if (producer != producers.end()) {
        users[static_cast<std::size_t>(producer->second)].push_back(i);
        ++waits[static_cast<std::size_t>(i)];
      } else if (!defined(name)) {
        return Fail(StatusCode::kInvalidFile,
                    fmt::format("{} reads '{}', which nothing defines", NodeText(nodes.Get(i)), name));
      }
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (waits[static_cast<std::size_t>(i)] == 0) ready.push(i);
  }
  std::vector<const onnx::NodeProto*> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(&nodes.Get(next));
    for (const int user : users[static_cast<std::size_t>(next)]) {
      if (--waits[static_cast<std::size_t>(user)] == 0) ready.push(user);
    }
  }
  if (order.size() == static_cast<std::size_t>(nodes.size())) return order;
  int stuck = 0;
  while (waits[static_cast<std::size_t>(stuck)] == 0) ++stuck;
  return Fail(StatusCode::kInvalidFile,
              fmt::format("the graph is cyclic: {} reads what depends on its own output",
                          NodeText(nodes.Get(stuck))));
}

std::vector<const onnx::NodeProto*> NodesFor(const std::vector<std::string>& values,
                                             const std::vector<const onnx::NodeProto*>& order) {
  std::set<std::string> needed(values.begin(), values.end());
  std::vector<const onnx::NodeProto*> found;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto& outputs = order[i]->output();
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const std::string& output) { return needed.contains(output); }))
      continue;
    CollectReads(*order[i], &needed);
    found.push_back(order[i]);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace rewire::compiler
