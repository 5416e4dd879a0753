// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/tools/inspect/function_graph.h"
#include "rewire/tools/record/value_names.h"
#include "rewire/tools/report/graph_layout.h"
#include "rewire/tools/report/report_data.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kCharacter = 6.4, kPadding = 16, kHeight = 26, kTallHeight = 36;  // pixels
constexpr std::size_t kLongestTitle = 28;

// The function, and those that it may call, in the order in which they are found.
std::vector<std::uint32_t> Reachable(const Module& module, std::uint32_t function) {
  std::vector<std::uint32_t> found = {function};
  std::set<std::uint32_t> seen = {function};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Array<std::uint32_t>& code = module.functions[found[i]].code;
    for (std::uint32_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
      ForEachOperand(code.data() + pc,
                     [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
                       if (operand.kind == OperandKind::kFunction && seen.insert(*words).second)
                         found.push_back(*words);
                     });
    }
  }
  return found;
}

std::string_view KindText(GraphNode::Kind kind) {
  switch (kind) {
    case GraphNode::Kind::kInput:
      return "input";
    case GraphNode::Kind::kParameter:
      return "parameter";
    case GraphNode::Kind::kConstant:
      return "constant";
    case GraphNode::Kind::kKernel:
      return "kernel";
    case GraphNode::Kind::kInstruction:
      return "instruction";
  }
  return "";
}

std::string Shortened(std::string_view text, const std::string& end = "") {
  if (text.size() + end.size() <= kLongestTitle) return std::string(text) + end;
  return std::string(text.substr(0, kLongestTitle - 3 - end.size())) + "..." + end;
}

// The texts in a box: the model's operator and what it is called, or else the kernel.
std::pair<std::string, std::string> TextsOf(const GraphNode& node) {
  const std::vector<std::string_view> nodes = NodesOf(node.source);
  const NoteParts first = SplitNote(nodes.front());
  // A kernel that computes sizes for a node is not that node.
  if (node.kind == GraphNode::Kind::kKernel && !first.kind.empty() && !names::IsShapeFunction(node.title)) {
    std::string kinds(first.kind), name(first.name);
    for (std::size_t i = 1; i < nodes.size(); ++i) (kinds += " + ") += SplitNote(nodes[i]).kind;
    const std::string more = nodes.size() > 1 ? " and " + std::to_string(nodes.size() - 1) + " more" : "";
    return {Shortened(kinds), Shortened(name, more)};
  }
  const std::string_view title = node.title;
  return {Shortened(names::IsStock(title) ? title.substr(names::kStock.size()) : title), ""};
}

double Rounded(double value) { return std::round(value * 10) / 10; }

bool IsConstant(const GraphNode& node) {
  return node.kind == GraphNode::Kind::kConstant || node.kind == GraphNode::Kind::kParameter;
}

// Marks the nodes that are in the picture. Constants stand in the details of the nodes that read them: as
// nodes of their own they would be half of it. What only computes the sizes of memory is left out, too.
std::vector<bool> Drawn(const FunctionGraph& graph) {
  std::vector<std::vector<const GraphEdge*>> uses(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) uses[edge.from].push_back(&edge);
  std::vector<bool> drawn(graph.nodes.size());
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const GraphNode& node = graph.nodes[i];
    // A loop leads to a node before this one, which is not decided yet: then this one stays.
    const bool for_sizes =
        node.kind != GraphNode::Kind::kInput && !uses[i].empty() &&
        std::all_of(uses[i].begin(), uses[i].end(), [&](const GraphEdge* edge) {
          return edge->kind == GraphEdge::Kind::kSize || (edge->to > i && !drawn[edge->to]);
        });
    drawn[i] = !IsConstant(node) && !for_sizes;
  }
  return drawn;
}

// `functions` are those of the page, and `sites` the places in this one by pc.
Json FunctionData(const FunctionGraph& graph, const std::vector<std::uint32_t>& functions,
                  const std::map<std::uint32_t, std::size_t>& sites) {
  std::vector<std::size_t> places(graph.nodes.size());
  GraphPicture picture;
  Json nodes = Json::array();
  const std::vector<bool> drawn_nodes = Drawn(graph);
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (!drawn_nodes[i]) {
      left_out += IsConstant(node) ? 0 : 1;
      continue;
    }
    places[i] = nodes.size();
    const auto [title, small] = TextsOf(node);
    const double width = static_cast<double>(std::max(title.size(), small.size())) * kCharacter + kPadding;
    picture.boxes.push_back({std::max(width, 40.0), small.empty() ? kHeight : kTallHeight, {}});
    Json drawn = {{"kind", KindText(node.kind)}, {"title", title}, {"small", small}, {"lines", node.lines}};
    if (!node.source.empty()) drawn["lines"].push_back(node.source);
    const auto site = sites.find(node.pc);
    if (node.kind == GraphNode::Kind::kKernel && site != sites.end()) drawn["site"] = site->second;
    if (node.callee)
      drawn["calls"] = std::find(functions.begin(), functions.end(), *node.callee) - functions.begin();
    nodes.push_back(std::move(drawn));
  }
  std::map<std::pair<std::size_t, std::size_t>, std::string> lines;
  for (const GraphEdge& edge : graph.edges) {
    if (!drawn_nodes[edge.to] || edge.kind == GraphEdge::Kind::kSize) continue;
    if (!drawn_nodes[edge.from]) {
      nodes[places[edge.to]]["lines"].push_back(
          fmt::format("{} {} {}", KindText(graph.nodes[edge.from].kind), graph.nodes[edge.from].title,
                      edge.label.substr(std::min(edge.label.size(), edge.label.find(' ') + 1))));
      continue;
    }
    std::string& label = lines[{places[edge.from], places[edge.to]}];
    if (!edge.label.empty()) label += (label.empty() ? "" : "\n") + edge.label;
  }
  std::vector<std::string> labels;
  for (auto& [ends, label] : lines) {
    picture.lines.push_back({ends.first, ends.second, {}});
    labels.push_back(std::move(label));
  }
  PlaceGraph(&picture);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GraphBox& box = picture.boxes[i];
    nodes[i]["x"] = Rounded(box.center.x);
    nodes[i]["y"] = Rounded(box.center.y);
    nodes[i]["w"] = Rounded(box.width);
    nodes[i]["h"] = box.height;
  }
  Json edges = Json::array();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    Json points = Json::array();
    for (const GraphPoint& point : picture.lines[i].points) {
      points.push_back(Rounded(point.x));
      points.push_back(Rounded(point.y));
    }
    edges.push_back({{"f", picture.lines[i].from},
                     {"t", picture.lines[i].to},
                     {"label", std::move(labels[i])},
                     {"p", std::move(points)}});
  }
  Json data = {{"name", graph.name}, {"width", Rounded(picture.width)}, {"height", Rounded(picture.height)}};
  std::string note;
  if (left_out > 0) note = fmt::format("{} nodes that only compute sizes are not drawn. ", left_out);
  if (!picture.note.empty()) {
    note += fmt::format(
        "This is a plain layout, because {}. Graphviz, where it is installed, makes a better one.",
        picture.note);
  }
  data["note"] = note;
  data["nodes"] = std::move(nodes);
  data["edges"] = std::move(edges);
  return data;
}

}  // namespace

Json GraphData(const Module& module, std::uint32_t function, const RunFacts& facts) {
  Json graphs = Json::array();
  const std::vector<std::uint32_t> functions = Reachable(module, function);
  for (const std::uint32_t index : functions) {
    std::map<std::uint32_t, std::size_t> sites;  // by pc
    for (std::size_t i = 0; i < facts.sites.size(); ++i) {
      if (facts.sites[i].site->function == index) sites[facts.sites[i].site->pc] = i;
    }
    graphs.push_back(FunctionData(GraphOf(module, index), functions, sites));
  }
  return graphs;
}

}  // namespace rewire::tools
