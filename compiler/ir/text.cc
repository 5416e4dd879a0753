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
    arena_ = &graph.arena;
    if (arena_->bytes > 0) {
      Line(0, fmt::format("arena: {} bytes, {} if each tensor is allocated by itself", arena_->bytes,
                          arena_->separate_bytes));
    }
    for (const ShapeArena::Block& block : graph.shape_arena.blocks) {
      blocks_[block.value] = fmt::format("block {} on [{}]", blocks_.size(), fmt::join(block.on, ", "));
    }
    if (!blocks_.empty()) Line(0, fmt::format("arena by shape: {} blocks", blocks_.size()));
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

  // A number, as names need not differ; with its type where it first appears.
  std::string Name(const Value* value) {
    if (value == nullptr) return "_";
    const auto [place, added] = numbers_.try_emplace(value, numbers_.size());
    std::string name = fmt::format("{}{}", value->IsConstant() ? "@" : "%", place->second);
    if (!added) return name;
    name += ": " + TypeText(value->type);
    const auto offset = arena_->offsets.find(value);
    if (offset != arena_->offsets.end()) name += fmt::format(" at {}", offset->second);
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

  const Arena* arena_ = nullptr;
  std::unordered_map<const Value*, std::string> blocks_;  // of Graph::shape_arena
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
