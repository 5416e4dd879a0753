// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>
#include <variant>

#include "rewire/base/array.h"

namespace rewire::compiler {
namespace {

struct ValueText {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{:#}", value); }
  std::string operator()(const std::string& value) const { return "\"" + value + "\""; }
  std::string operator()(const Array<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(const Array<double>& value) const {
    return fmt::format("floats[{}]", fmt::join(value, ", "));
  }
};

class Printer {
 public:
  std::string Text(const Graph& graph) {
    PrintArenas("", graph.arena, graph.shape_arena);
    PrintArenas("device ", graph.device_arena, graph.device_shape_arena);
    for (std::size_t i = 0; i < graph.main.parameters.size(); ++i) {
      Line(0, fmt::format("input {} = {}", Name(graph.main.parameters[i]), graph.input_names[i]));
    }
    if (!graph.init.nodes.empty()) {
      Line(0, "once:");
      PrintBlock(graph.init, 1);
    }
    PrintBlock(graph.main, 0);
    for (std::size_t i = 0; i < graph.main.results.size(); ++i) {
      Line(0, fmt::format("output {} = {}", graph.output_names[i], Name(graph.main.results[i])));
    }
    return std::move(text_);
  }

 private:
  void Line(int depth, const std::string& text) {
    text_.append(2 * static_cast<std::size_t>(depth), ' ').append(text).append("\n");
  }

  void PrintArenas(const char* where, const Arena& arena, const ShapeArena& by_shape) {
    if (arena.bytes > 0) {
      Line(0, fmt::format("{}arena: {} bytes, {} if each tensor is allocated by itself", where, arena.bytes,
                          arena.separate_bytes));
    }
    offsets_.insert(arena.offsets.begin(), arena.offsets.end());
    for (std::size_t i = 0; i < by_shape.blocks.size(); ++i) {
      const ShapeArena::Block& block = by_shape.blocks[i];
      blocks_[block.value] = fmt::format("block {} on [{}]", i, fmt::join(block.on, ", "));
    }
    if (!by_shape.blocks.empty()) {
      Line(0, fmt::format("{}arena by shape: {} blocks", where, by_shape.blocks.size()));
    }
  }

  // A number, as names need not differ; with its type where it first appears.
  std::string Name(const Value* value) {
    if (value == nullptr) return "_";
    const auto [place, added] = numbers_.try_emplace(value, numbers_.size());
    std::string name = fmt::format("{}{}", value->IsConstant() ? "@" : "%", place->second);
    if (!added) return name;
    name += ": " + TypeText(value->type);
    const auto offset = offsets_.find(value);
    if (offset != offsets_.end()) name += fmt::format(" at {}", offset->second);
    const auto block = blocks_.find(value);
    if (block != blocks_.end()) name += " as " + block->second;
    return name;
  }

  std::string Names(const std::vector<Value*>& values) {
    std::string names;
    for (const Value* value : values) names += (names.empty() ? "" : ", ") + Name(value);
    return names;
  }

  void PrintBlock(const Block& block, int depth) {
    for (const Node* node : block.nodes) {
      const std::string inputs = Names(node->inputs);
      const std::string over = node->in_place ? fmt::format(" over input {}", *node->in_place) : "";
      Line(depth, fmt::format("{} = {}({}){}  ; {}", Names(node->outputs), OperationText(*node), inputs, over,
                              node->source));
      for (const Block& inner : node->blocks) {
        Line(depth + 1, fmt::format("({}):", Names(inner.parameters)));
        PrintBlock(inner, depth + 2);
        Line(depth + 1, inner.failure.empty() ? fmt::format("-> {}", Names(inner.results))
                                              : fmt::format("fails: {}", inner.failure));
      }
    }
  }

  std::unordered_map<const Value*, std::uint64_t> offsets_;  // of both arenas
  std::unordered_map<const Value*, std::string> blocks_;     // of both arenas that runs lay out
  std::string text_;
  std::unordered_map<const Value*, std::size_t> numbers_;
};

}  // namespace

std::string OperationText(const Node& node) {
  switch (node.kind) {
    case NodeKind::kKernel: {
      std::string text = node.kernel;
      for (const Attribute& attribute : node.attributes) {
        text += fmt::format("{}{}={}", &attribute == node.attributes.data() ? " {" : ", ", attribute.name,
                            std::visit(ValueText(), attribute.value));
      }
      return node.attributes.empty() ? text : text + "}";
    }
    case NodeKind::kShapeOf:
      return "shape_of";
    case NodeKind::kReshape:
      return "reshape";
    case NodeKind::kDeviceCopy:
      return "copy";
    case NodeKind::kDims:
      return "dims " + ShapeText(node.extents[0].dims);
    case NodeKind::kMakeAdt:
      return "make_adt";
    case NodeKind::kField:
      return fmt::format("field {}", node.field);
    case NodeKind::kIf:
      return "if";
    case NodeKind::kLoop:
      return "loop";
  }
  return "";
}

std::string GraphText(const Graph& graph) { return Printer().Text(graph); }

}  // namespace rewire::compiler
