// SPDX-License-Identifier: Apache-2.0
//
// Whether outputs have the shapes that their kernels write, as far as the inputs' shapes say it. A dimension
// that only a run knows fits every other.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/check/checks.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"

namespace rewire::compiler {
namespace {

bool IsRanked(const Value* value) { return value->type.IsTensor() && value->type.ranked; }

class ShapesCheck {
 public:
  ShapesCheck(const Graph& graph, bool reshapes) : graph_(graph), reshapes_(reshapes) {}

  Status CheckNode(const Node& node) const {
    if (node.kind != NodeKind::kKernel && node.kind != NodeKind::kReshape) return {};
    const auto ranked = [](const Value* value) { return IsRanked(value); };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), ranked) ||
        !std::all_of(node.outputs.begin(), node.outputs.end(), ranked) || node.returns ||
        node.inputs.empty() || node.outputs.empty()) {
      return {};
    }
    if (node.kind == NodeKind::kReshape) return reshapes_ ? CheckCount(node) : Status();
    if (IsElementwise(graph_, node, node.inputs.size())) return CheckBroadcast(node);
    const auto is = [&](std::string_view kernel) { return names::IsKernel(node.kernel, kernel); };
    if (is(names::kTranspose)) return CheckTranspose(node);
    if (is(names::kConcat)) return CheckParts(node, node.inputs, node.outputs[0]);
    if (is(names::kSplit)) return CheckParts(node, node.outputs, node.inputs[0]);
    if (names::IsReduction(node.kernel)) return CheckReduction(node);
    if (is(names::kMatMul)) return CheckProduct(node);
    if (names::IsPacked(node.kernel)) return CheckPacked(node);
    if (HasLayout(graph_, node)) return CheckImages(node);
    return CheckWrittenOver(node);
  }

 private:
  static Status Wrong(const Node& node, const Value* output, const Shape& expected) {
    return Broken(&node, output, "the shape " + ShapeText(expected), ShapeText(output->type.dims));
  }

  static Status Equal(const Node& node, const Value* output, const Shape& expected) {
    const Shape& given = output->type.dims;
    if (given.size() != expected.size()) return Wrong(node, output, expected);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (Differ(given[i], expected[i])) return Wrong(node, output, expected);
    }
    return {};
  }

  // How the rules of kernels/contract report inputs whose shapes do not fit.
  static auto ErrorOf(const Node& node) {
    return [&node](const auto&... parts) {
      return Broken(&node, node.inputs[0], "inputs whose shapes fit", RuleText(parts...));
    };
  }

  static Status CheckCount(const Node& node) {
    const auto from = ProductOf(node.inputs[0]->type.dims).constant();
    const auto to = ProductOf(node.outputs[0]->type.dims).constant();
    if (!from || !to || *from == *to) return {};
    return Broken(&node, node.outputs[0], fmt::format("{} elements", *from), std::to_string(*to));
  }

  static Status CheckBroadcast(const Node& node) {
    Shape expected = node.inputs[0]->type.dims;
    Status fits;
    for (const Value* input : node.inputs) {
      if (fits) fits = contract::BroadcastSizes(expected, input->type.dims, &expected, ErrorOf(node));
    }
    return fits ? Equal(node, node.outputs[0], expected) : fits;
  }

  static Status CheckTranspose(const Node& node) {
    std::vector<std::int64_t> order;
    Shape expected;
    const auto transpose = AttributesOf<contract::TransposeAttributes>(node);
    const Status fits =
        contract::PermutedSizes(node.inputs[0]->type.dims, transpose.perm, &order, &expected, ErrorOf(node));
    return fits ? Equal(node, node.outputs[0], expected) : fits;
  }

  // `whole` consists of the parts along an axis, and is as they are along all others.
  static Status CheckParts(const Node& node, const std::vector<Value*>& parts, const Value* whole) {
    std::size_t axis = 0;
    Shape sum = parts[0]->type.dims;
    Status fits = contract::NormalizeAxis(IntAttribute(node, "axis", 0), sum.size(), &axis, ErrorOf(node));
    for (std::size_t i = 1; fits && i < parts.size(); ++i)
      fits = contract::ConcatSizes(sum, parts[i]->type.dims, axis, i, &sum, ErrorOf(node));
    return fits ? Equal(node, whole, sum) : fits;
  }

  static Status CheckReduction(const Node& node) {
    if (node.inputs.size() != 1) return {};
    const Shape& in = node.inputs[0]->type.dims;
    const auto reduce = AttributesOf<contract::ReduceAttributes>(node);
    std::vector<bool> reduced(in.size(), reduce.axes.empty() && !reduce.keep_without_axes);
    const Status fits = contract::MarkAxes(reduce.axes, in.size(), &reduced, ErrorOf(node));
    if (!fits) return fits;
    return Equal(node, node.outputs[0], contract::ReducedSizes<Shape>(in, reduced, reduce.keepdims));
  }

  static Status CheckProduct(const Node& node) {
    const auto broadcast = [&](ShapeSpan a, ShapeSpan b, Shape* batch) {
      return contract::BroadcastSizes(a, b, batch, ErrorOf(node));
    };
    Shape expected;
    const ShapeSpan a(node.inputs[0]->type.dims), b(node.inputs[1]->type.dims);
    const Status fits = contract::MatMulSizes(a, b, broadcast, &expected, ErrorOf(node));
    return fits ? Equal(node, node.outputs[0], expected) : fits;
  }

  // Products and convolutions by packed weights have as many columns or channels as an attribute says. The
  // first dimension, of several, is the input's.
  static Status CheckPacked(const Node& node) {
    const std::int64_t channels = IntAttribute(node, "channels", IntAttribute(node, "columns", -1));
    if (channels < 0) return {};
    const Shape& in = node.inputs[0]->type.dims;
    Shape expected = node.outputs[0]->type.dims;
    if (expected.size() != in.size())
      return Broken(&node, node.outputs[0], "the input's rank", std::to_string(expected.size()));
    if (in.size() > 1) expected.front() = in.front();
    if (!expected.empty()) expected.back() = channels;
    return Equal(node, node.outputs[0], expected);
  }

  // Pools and normalizations keep images and channels.
  static Status CheckImages(const Node& node) {
    const Shape& in = node.inputs[0]->type.dims;
    for (const Value* output : node.outputs) {
      Shape expected = output->type.dims;
      if (expected.size() != in.size() || in.size() < 2)
        return Broken(&node, output, "the input's rank", std::to_string(expected.size()));
      const Attribute* layout = FindAttribute(node, "layout");
      const bool last = layout != nullptr && layout->value == AttributeValue(std::string("NHWC"));
      expected[0] = in[0];
      (last ? expected.back() : expected[1]) = last ? in.back() : in[1];
      if (Status ok = Equal(node, output, expected); !ok) return ok;
    }
    return {};
  }

  // An output that may be written over one input alone has its elements.
  Status CheckWrittenOver(const Node& node) const {
    const std::uint32_t inputs = InputsToWriteOver(graph_, node);
    for (std::size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
      if (inputs == std::uint32_t{1} << i) return Equal(node, node.outputs[0], node.inputs[i]->type.dims);
    }
    return {};
  }

  const Graph& graph_;
  const bool reshapes_;
};

}  // namespace

Status CheckShapes(const Graph& graph, bool reshapes) {
  const ShapesCheck check(graph, reshapes);
  const auto visit = [&](const Node& node) { return check.CheckNode(node); };
  if (Status ok = ForEachNode(graph.init, visit); !ok) return ok;
  return ForEachNode(graph.main, visit);
}

}  // namespace rewire::compiler
