// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/dot_text.h"

#include <fmt/format.h>

namespace rewire::tools {
namespace {

std::string DotQuoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

const char* LookOf(GraphNode::Kind kind) {
  switch (kind) {
    case GraphNode::Kind::kInput:
      return "shape=ellipse";
    case GraphNode::Kind::kParameter:
      return "shape=house";
    case GraphNode::Kind::kConstant:
      return "shape=note";
    case GraphNode::Kind::kKernel:
      return "shape=box, style=filled, fillcolor=lightgrey";
    case GraphNode::Kind::kInstruction:
      return "shape=box";
  }
  return "shape=box";
}

const char* LookOf(GraphEdge::Kind kind) {
  switch (kind) {
    case GraphEdge::Kind::kValue:
      return "style=solid";
    case GraphEdge::Kind::kSize:
      return "style=dotted";
    case GraphEdge::Kind::kControl:
      return "style=dashed";
  }
  return "style=solid";
}

}  // namespace

std::string DotText(Span<const FunctionGraph> graphs) {
  std::string text =
      "digraph model {\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n";
  for (const FunctionGraph& graph : graphs) {
    const auto id = [&graph](std::size_t node) { return fmt::format("f{}_{}", graph.function, node); };
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", graph.function, DotQuoted(graph.name));
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const GraphNode& node = graph.nodes[i];
      std::string label = node.title;
      for (const std::string& line : node.lines) label += "\n" + line;
      if (!node.source.empty()) label += "\n" + node.source;
      text += fmt::format("    {} [label={}, {}];\n", id(i), DotQuoted(label), LookOf(node.kind));
    }
    for (const GraphEdge& edge : graph.edges) {
      text += fmt::format("    {} -> {} [label={}, {}];\n", id(edge.from), id(edge.to), DotQuoted(edge.label),
                          LookOf(edge.kind));
    }
    text += "  }\n";
  }
  return text + "}\n";
}

}  // namespace rewire::tools
