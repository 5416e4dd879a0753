// SPDX-License-Identifier: Apache-2.0
//
// Whether constants have the bytes of their types, and whether what a node reads and gives has the types that
// its kind of node asks for.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewire/base/max_rank.h"
#include "rewire/compiler/ir/dim_length.h"
#include "rewire/compiler/passes/check/checks.h"

namespace rewire::compiler {
namespace {

// Whether some run may give one value both types.
bool MayBeOne(const Type& a, const Type& b) {
  if (a.kind != b.kind) return false;
  if (!a.IsTensor()) return a.empty || b.empty || MayBeOne(*a.element, *b.element);
  if (a.dtype != b.dtype) return false;
  if (!a.ranked || !b.ranked) return true;
  if (a.rank() != b.rank()) return false;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i].IsConstant() && b.dims[i].IsConstant() && !(a.dims[i] == b.dims[i])) return false;
  }
  return true;
}

bool IsWhole(DLDataType dtype) { return dtype.code != kFloat && dtype.code != kBFloat; }

class TypesCheck {
 public:
  explicit TypesCheck(const Graph& graph) : graph_(graph) {}

  Status Run() {
    const auto visit = [this](const Node& node) { return CheckNode(node); };
    if (Status ok = ForEachNode(graph_.init, visit); !ok) return ok;
    if (Status ok = ForEachNode(graph_.main, visit); !ok) return ok;
    for (const Value* parameter : graph_.main.parameters) {
      if (Status ok = CheckValue(nullptr, parameter); !ok) return ok;
    }
    for (const Value* result : graph_.main.results) {
      if (Status ok = CheckValue(nullptr, result); !ok) return ok;
    }
    return {};
  }

 private:
  Status CheckValue(const Node* node, const Value* value) {
    if (value == nullptr || !seen_.insert(value).second) return {};
    const Type& type = value->type;
    if (!type.IsTensor()) {
      if (type.empty || type.element != nullptr) return {};
      return Broken(node, nullptr, fmt::format("a type of the elements of '{}'", value->name), "none");
    }
    if (type.ranked && type.dims.size() > kMaxRank)
      return Broken(node, value, fmt::format("at most {} dimensions", kMaxRank),
                    std::to_string(type.dims.size()));
    for (const DimExpr& dim : type.dims) {
      if (dim.IsConstant() && *dim.constant() < 0)
        return Broken(node, value, "dimensions of 0 or more", dim.text());
    }
    if (value->channels_last && (!type.ranked || type.rank() < 3))
      return Broken(node, value, "an image where the channels are last", "another tensor");
    return value->IsConstant() ? CheckConstant(node, *value) : Status();
  }

  static Status CheckConstant(const Node* node, const Value& value) {
    const HostTensor& tensor = *value.constant;
    const auto dims = value.type.ranked ? ConstantDims(value.type.dims) : std::nullopt;
    if (!(tensor.dtype == value.type.dtype) || !dims || *dims != tensor.shape)
      return Broken(node, &value, "a constant of the value's type",
                    TensorTypeText(tensor.dtype, {tensor.shape.data(), tensor.shape.size()}));
    const Result<std::uint64_t> bytes =
        CompactBytes(tensor.dtype, {tensor.shape.data(), tensor.shape.size()});
    if (bytes && *bytes == tensor.bytes.view.size()) return {};
    return Broken(node, &value, bytes ? fmt::format("{} bytes", *bytes) : bytes.error().message(),
                  std::to_string(tensor.bytes.view.size()));
  }

  Status CheckNode(const Node& node) {
    for (const std::vector<Value*>* list : {&node.inputs, &node.outputs}) {
      for (const Value* value : *list) {
        if (Status ok = CheckValue(&node, value); !ok) return ok;
      }
    }
    for (const Block& block : node.blocks) {
      for (const std::vector<Value*>* list : {&block.parameters, &block.results}) {
        for (const Value* value : *list) {
          if (Status ok = CheckValue(&node, value); !ok) return ok;
        }
      }
    }
    switch (node.kind) {
      case NodeKind::kKernel:
        if (node.returns) return Expect(node, std::max<std::size_t>(node.outputs.size(), 1), SIZE_MAX, 0, 0);
        return Sized(node);
      case NodeKind::kShapeOf:
        if (Status ok = Expect(node, 1, 1, 0, 0); !ok) return ok;
        return CheckList(
            node, node.outputs[0],
            node.inputs[0]->type.ranked ? std::optional(node.inputs[0]->type.dims.size()) : std::nullopt);
      case NodeKind::kReshape:
        return CheckReshape(node);
      case NodeKind::kDeviceCopy:
        if (Status ok = Expect(node, 1, 1, 0, 0); !ok) return ok;
        return Same(node, *node.inputs[0], *node.outputs[0]);
      case NodeKind::kDims:
        if (Status ok = Expect(node, 1, 0, 1, 0); !ok) return ok;
        return CheckList(node, node.outputs[0], node.extents[0].dims.size());
      case NodeKind::kMakeAdt:
      case NodeKind::kField:
        return CheckFields(node);
      case NodeKind::kIf:
        return CheckIf(node);
      case NodeKind::kLoop:
        return CheckLoop(node);
    }
    return {};
  }

  // Numbers of outputs, inputs (SIZE_MAX: any), extents and blocks.
  static Status Expect(const Node& node, std::size_t outputs, std::size_t inputs, std::size_t extents,
                       std::size_t blocks) {
    const auto check = [&](const char* what, std::size_t expected, std::size_t given) -> Status {
      if (given == expected || expected == SIZE_MAX) return {};
      return Broken(&node, nullptr, fmt::format("{} {}", expected, what), std::to_string(given));
    };
    if (Status ok = check("outputs", outputs, node.outputs.size()); !ok) return ok;
    if (Status ok = check("inputs", inputs, node.inputs.size()); !ok) return ok;
    if (Status ok = check("sizes", extents, node.extents.size()); !ok) return ok;
    return check("blocks", blocks, node.blocks.size());
  }

  // A list of integers, of a length if one is known.
  static Status CheckList(const Node& node, const Value* value, std::optional<std::size_t> length) {
    const Type& type = value->type;
    const bool fits = type.IsTensor() && IsWhole(type.dtype) && (!type.ranked || type.rank() == 1);
    const bool counts = !fits || !length || !type.ranked || !type.dims[0].IsConstant() ||
                        type.dims[0].Is(static_cast<std::int64_t>(*length));
    if (fits && counts) return {};
    return Broken(&node, value,
                  length ? fmt::format("a list of {} integers", *length) : std::string("a list of integers"),
                  TypeText(type));
  }

  // Each output is allocated with its extent.
  Status Sized(const Node& node) {
    if (Status ok = Expect(node, node.outputs.size(), SIZE_MAX, node.outputs.size(), 0); !ok) return ok;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* output = node.outputs[i];
      const Node::Extent& extent = node.extents[i];
      if (!output->type.IsTensor()) return Broken(&node, output, "a tensor to allocate", "another value");
      const auto rank = output->type.ranked ? std::optional(output->type.dims.size()) : std::nullopt;
      if (extent.shape != nullptr) {
        if (Status ok = CheckList(node, extent.shape, rank); !ok) return ok;
        continue;
      }
      if (rank != extent.dims.size())
        return Broken(&node, output, "a size of its rank", ShapeText(extent.dims));
      if (IsTooLong(extent.dims)) return Broken(&node, output, "a size that can be computed", "one too long");
      for (std::size_t axis = 0; axis < extent.dims.size(); ++axis) {
        const DimExpr& dim = output->type.dims[axis];
        if (Differ(extent.dims[axis], dim) && (dim.IsConstant() || !dim.symbol()))
          return Broken(&node, output, "a size of its type", ShapeText(extent.dims));
      }
    }
    return {};
  }

  Status CheckReshape(const Node& node) {
    if (node.inputs.empty() || node.inputs.size() > 2 || node.outputs.size() != 1)
      return Broken(&node, nullptr, "one or two inputs and one output",
                    fmt::format("{} and {}", node.inputs.size(), node.outputs.size()));
    if (Status ok = Sized(node); !ok) return ok;
    const Value* shape = node.inputs.size() == 2 ? node.inputs[1] : nullptr;
    if (node.extents[0].shape != shape)
      return Broken(&node, shape, "the shape to be its second input", "another value");
    const Value &from = *node.inputs[0], &to = *node.outputs[0];
    if (from.type.IsTensor() && from.type.dtype == to.type.dtype) return {};
    return Broken(&node, &to, "the input's elements, " + TypeText(from.type), TypeText(to.type));
  }

  // A value that becomes another one.
  static Status Same(const Node& node, const Value& from, const Value& to) {
    if (MayBeOne(from.type, to.type)) return {};
    return Broken(&node, &to, fmt::format("the type of '{}', {}", from.name, TypeText(from.type)),
                  TypeText(to.type));
  }

  static Status CheckFields(const Node& node) {
    const bool make = node.kind == NodeKind::kMakeAdt;
    if (Status ok = Expect(node, 1, make ? SIZE_MAX : 1, 0, 0); !ok) return ok;
    const Value* whole = make ? node.outputs[0] : node.inputs[0];
    if (whole->type.IsTensor()) return Broken(&node, whole, "a sequence or an optional", "a tensor");
    if (whole->type.empty) return {};
    for (const Value* field : make ? node.inputs : node.outputs) {
      if (!MayBeOne(field->type, *whole->type.element))
        return Broken(&node, field, "an element, " + TypeText(*whole->type.element), TypeText(field->type));
    }
    return {};
  }

  // A single number that an instruction reads.
  static Status CheckNumber(const Node& node, const Value* value) {
    const Type& type = value->type;
    if (type.IsTensor() && IsWhole(type.dtype) && (!type.ranked || type.rank() == 0)) return {};
    return Broken(&node, value, "a single integer or bool", TypeText(type));
  }

  static Status CheckIf(const Node& node) {
    if (Status ok = Expect(node, node.outputs.size(), 1, 0, 2); !ok) return ok;
    if (Status ok = CheckNumber(node, node.inputs[0]); !ok) return ok;
    for (const Block& branch : node.blocks) {
      if (!branch.failure.empty()) continue;
      if (branch.results.size() != node.outputs.size() || !branch.parameters.empty())
        return Broken(
            &node, nullptr, fmt::format("branches with {} results alone", node.outputs.size()),
            fmt::format("{} results and {} parameters", branch.results.size(), branch.parameters.size()));
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (Status ok = Same(node, *branch.results[i], *node.outputs[i]); !ok) return ok;
      }
    }
    return {};
  }

  static Status CheckLoop(const Node& node) {
    const std::size_t carried = node.outputs.size();
    if (Status ok = Expect(node, carried, carried + 2, 0, 1); !ok) return ok;
    const Block& body = node.blocks[0];
    if (body.parameters.size() != carried + 1 || body.results.size() != carried + 1)
      return Broken(&node, nullptr, fmt::format("a body with {} parameters and results", carried + 1),
                    fmt::format("{} and {}", body.parameters.size(), body.results.size()));
    for (const Value* number : {node.inputs[0], node.inputs[1], body.parameters[0], body.results[0]}) {
      if (number == nullptr) continue;
      if (Status ok = CheckNumber(node, number); !ok) return ok;
    }
    for (std::size_t i = 0; i < carried; ++i) {
      const Value& parameter = *body.parameters[i + 1];
      if (Status ok = Same(node, *node.inputs[i + 2], parameter); !ok) return ok;
      if (Status ok = Same(node, *body.results[i + 1], parameter); !ok) return ok;
      if (Status ok = Same(node, parameter, *node.outputs[i]); !ok) return ok;
    }
    return {};
  }

  const Graph& graph_;
  std::unordered_set<const Value*> seen_;
};

}  // namespace

Status CheckTypes(const Graph& graph) { return TypesCheck(graph).Run(); }

}  // namespace rewire::compiler
