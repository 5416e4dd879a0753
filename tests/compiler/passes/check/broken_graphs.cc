// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/passes/check/broken_graphs.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"

namespace rewire::test {
namespace {

using compiler::Block;
using compiler::DimExpr;
using compiler::Graph;
using compiler::Node;
using compiler::NodeKind;
using DimShape = compiler::Shape;
using compiler::Value;
using NodeTest = std::function<bool(const Node&)>;

Node* FindIn(const Block& block, const NodeTest& test) {
  for (Node* node : block.nodes) {
    if (test(*node)) return node;
    for (const Block& inner : node->blocks) {
      if (Node* found = FindIn(inner, test)) return found;
    }
  }
  return nullptr;
}

// The first node, in blocks too, that passes the test.
Node* Find(const Graph& graph, const NodeTest& test) { return FindIn(graph.main, test); }

bool Reads(const Node& node, const Value* value) {
  const bool here = std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  return here || std::any_of(node.blocks.begin(), node.blocks.end(), [&](const Block& block) {
           const bool result =
               std::find(block.results.begin(), block.results.end(), value) != block.results.end();
           return result || std::any_of(block.nodes.begin(), block.nodes.end(),
                                        [&](const Node* inner) { return Reads(*inner, value); });
         });
}

// A kernel that writes tensors of known rank, none of them without axes.
bool IsSized(const Node& node) {
  return node.kind == NodeKind::kKernel && !node.returns && !node.in_place && !node.outputs.empty() &&
         node.extents.size() == node.outputs.size() && node.extents[0].shape == nullptr &&
         node.outputs[0]->type.ranked && node.outputs[0]->type.rank() > 0;
}

bool IsElementwiseOfTwo(const Graph& graph, const Node& node) {
  return IsSized(node) && IsElementwise(graph, node, 2);
}

// A node of `main` and a later one that reads its output.
struct Pair {
  std::size_t maker = 0, reader = 0;
};
bool FindPair(const Graph& graph, Pair* pair) {
  const std::vector<Node*>& nodes = graph.main.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t k = i + 1; k < nodes.size(); ++k) {
      if (nodes[i]->outputs.empty() || !Reads(*nodes[k], nodes[i]->outputs[0])) continue;
      *pair = {i, k};
      return true;
    }
  }
  return false;
}

bool Erase(Graph* graph) {
  Pair pair;
  if (!FindPair(*graph, &pair)) return false;
  graph->main.nodes.erase(graph->main.nodes.begin() + static_cast<std::ptrdiff_t>(pair.maker));
  return true;
}

bool MoveBehind(Graph* graph) {
  Pair pair;
  if (!FindPair(*graph, &pair)) return false;
  const auto first = graph->main.nodes.begin();
  std::rotate(first + static_cast<std::ptrdiff_t>(pair.maker),
              first + static_cast<std::ptrdiff_t>(pair.maker) + 1,
              first + static_cast<std::ptrdiff_t>(pair.reader) + 1);
  return true;
}

bool StandsTwice(Graph* graph) {
  if (graph->main.nodes.empty()) return false;
  graph->main.nodes.push_back(graph->main.nodes.front());
  return true;
}

bool MadeTwice(Graph* graph) {
  if (graph->main.nodes.empty()) return false;
  Node* copy = graph->NewNode(NodeKind::kKernel);
  *copy = *graph->main.nodes.front();
  graph->main.nodes.push_back(copy);
  return true;
}

bool Producer(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->outputs[0]->producer = nullptr;
  return true;
}

bool DType(Graph* graph) {
  Node* node = Find(*graph, [&](const Node& each) {
    return IsSized(each) && each.outputs[0]->type.dtype == kFloat32 && each.kernel != "rewire.cast";
  });
  if (node == nullptr) return false;
  node->outputs[0]->type.dtype = kInt64;
  return true;
}

// Adds one to the last dimension that is known.
bool Enlarge(DimShape* dims) {
  for (std::size_t i = dims->size(); i-- > 0;) {
    if (!(*dims)[i].IsConstant()) continue;
    (*dims)[i] = (*dims)[i] + DimExpr(1);
    return true;
  }
  return false;
}

bool HasKnownDim(const Node& node) {
  DimShape dims = node.outputs[0]->type.dims;
  return Enlarge(&dims);
}

bool TypeAlone(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return IsSized(each) && HasKnownDim(each); });
  return node != nullptr && Enlarge(&node->outputs[0]->type.dims);
}

// The size and the type of an output.
bool EnlargeBoth(Node* node) {
  return node != nullptr && Enlarge(&node->outputs[0]->type.dims) && Enlarge(&node->extents[0].dims);
}

bool ElementwiseSize(Graph* graph) {
  return EnlargeBoth(Find(*graph, [&](const Node& node) {
    return IsSized(node) && HasKnownDim(node) && IsElementwise(*graph, node, node.inputs.size());
  }));
}

// No other node reads what it gives, and says more of its size.
bool IsResult(const Graph& graph, const Node& node) {
  const std::vector<Value*>& results = graph.main.results;
  return std::find(results.begin(), results.end(), node.outputs[0]) != results.end();
}

bool ProductSize(Graph* graph) {
  return EnlargeBoth(Find(*graph, [&](const Node& node) {
    const bool product = node.kernel == "rewire.matmul" || node.kernel == "rewire.packed.matmul";
    return product && IsSized(node) && HasKnownDim(node) && IsResult(*graph, node);
  }));
}

bool ViewSize(Graph* graph) {
  return EnlargeBoth(Find(*graph, [&](const Node& node) {
    return node.kind == NodeKind::kReshape && node.extents[0].shape == nullptr &&
           ConstantDims(node.outputs[0]->type.dims) && ConstantDims(node.inputs[0]->type.dims) &&
           !node.outputs[0]->type.dims.empty() && IsResult(*graph, node);
  }));
}

Value* ConstantOf(Graph* graph) {
  Value* constant = nullptr;
  Find(*graph, [&](const Node& node) {
    for (Value* input : node.inputs) {
      const bool fits = input != nullptr && input->IsConstant() && input->constant->bytes.view.size() > 8 &&
                        !input->constant->shape.empty();
      if (fits) constant = input;
    }
    return constant != nullptr;
  });
  return constant;
}

bool Bytes(Graph* graph) {
  Value* constant = ConstantOf(graph);
  if (constant == nullptr) return false;
  const Span<const std::byte> view = constant->constant->bytes.view;
  constant->constant->bytes.view = {view.data(), view.size() - 1};
  return true;
}

bool ConstantShape(Graph* graph) {
  Value* constant = ConstantOf(graph);
  if (constant == nullptr) return false;
  ++constant->constant->shape[0];
  return true;
}

bool SymbolSource(Graph* graph) {
  Value* gone = nullptr;
  Find(*graph, [&](const Node& node) {
    for (const compiler::Node::Extent& extent : node.extents) {
      for (const DimExpr& dim : extent.dims) {
        const auto name = extent.shape == nullptr ? dim.symbol() : std::nullopt;
        const auto found = name ? graph->symbols().find(*name) : graph->symbols().end();
        if (found != graph->symbols().end()) gone = const_cast<Value*>(found->second.value);
      }
    }
    return gone != nullptr;
  });
  if (gone == nullptr) return false;
  graph->MoveSymbols({{gone, graph->NewValue("nothing", gone->type)}});
  return true;
}

bool UnknownSymbol(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->outputs[0]->type.dims[0] = node->extents[0].dims[0] = DimExpr::Symbol("nobody");
  return true;
}

bool NoSize(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->extents.clear();
  return true;
}

bool ResultOfNothing(Graph* graph) {
  Value*& result = graph->main.results[0];
  result = graph->NewValue("nothing", result->type);
  return true;
}

bool ResultOfBlock(Graph* graph) {
  const Node* node = Find(*graph, [](const Node& each) { return !each.blocks.empty(); });
  if (node == nullptr) return false;
  for (const Node* inner : node->blocks[0].nodes) {
    if (inner->outputs.empty()) continue;
    graph->main.results[0] = inner->outputs[0];
    return true;
  }
  return false;
}

bool BranchResults(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return each.kind == NodeKind::kIf; });
  if (node == nullptr) return false;
  node->blocks[1].results.pop_back();
  return true;
}

bool CarriedType(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) {
    return each.kind == NodeKind::kLoop && each.outputs[0]->type.IsTensor();
  });
  if (node == nullptr) return false;
  node->outputs[0]->type.dtype = kInt8;
  return true;
}

bool Field(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) {
    return each.kind == NodeKind::kLoop && !each.outputs.back()->type.IsTensor();
  });
  if (node == nullptr) return false;
  compiler::Type element = *node->outputs.back()->type.element;
  element.dtype = kInt8;
  node->outputs.back()->type = SequenceOf(element);
  return true;
}

bool UnknownAttribute(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->attributes.push_back({"nobody", std::int64_t{1}});
  return true;
}

bool UnknownKernel(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->kernel += "_of_nobody";
  return true;
}

bool InPlace(Graph* graph) {
  Node* node = Find(*graph, [&](const Node& each) {
    if (!IsElementwiseOfTwo(*graph, each) || each.inputs[0]->IsConstant()) return false;
    // A node that another one reads later.
    const Node* reader = graph->main.nodes.empty() ? nullptr : Find(*graph, [&](const Node& other) {
      return &other != &each && other.kind == NodeKind::kKernel && Reads(other, each.inputs[0]);
    });
    return reader != nullptr || each.inputs[0]->producer == nullptr;
  });
  if (node == nullptr) return false;
  node->in_place = 0;
  // A copy behind it reads what it wrote over.
  Node* later = graph->NewNode(NodeKind::kKernel);
  later->kernel = "rewire.neg";
  later->inputs = {node->inputs[0]};
  later->outputs = {graph->NewValue("later", node->inputs[0]->type)};
  later->outputs[0]->producer = later;
  later->extents = {node->extents[0]};
  later->extents[0].dims = node->inputs[0]->type.dims;
  const auto place = std::find(graph->main.nodes.begin(), graph->main.nodes.end(), node);
  if (place != graph->main.nodes.end()) graph->main.nodes.insert(place + 1, later);
  return true;
}

bool Side(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->outputs[0]->on_device = true;
  return true;
}

bool Returns(Graph* graph) {
  Node* node = Find(*graph, IsSized);
  if (node == nullptr) return false;
  node->returns = true;
  return true;
}

bool OnceReadsRun(Graph* graph) {
  if (graph->init.nodes.empty()) return false;
  graph->init.nodes[0]->inputs[0] = graph->main.parameters[0];
  return true;
}

bool NoInput(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return IsSized(each) && !each.inputs.empty(); });
  if (node == nullptr) return false;
  node->inputs[0] = nullptr;
  return true;
}

bool ArenaOverlap(Graph* graph) {
  if (graph->arena.offsets.size() < 4) return false;
  for (auto& [value, offset] : graph->arena.offsets) offset = 0;
  return true;
}

bool ArenaEnd(Graph* graph) {
  if (graph->arena.offsets.empty()) return false;
  graph->arena.offsets.begin()->second = graph->arena.bytes;
  return true;
}

bool ShapeArenaSize(Graph* graph) {
  if (graph->shape_arena.blocks.empty()) return false;
  graph->shape_arena.blocks[0].dims.front() = DimExpr(1);
  return true;
}

bool ShapeArenaOrder(Graph* graph) {
  if (graph->shape_arena.blocks.empty()) return false;
  graph->shape_arena.blocks[0].on.push_back(1);
  return true;
}

bool Order(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return each.kernel == "rewire.transpose"; });
  if (node == nullptr) return false;
  std::vector<std::int64_t> perm = *compiler::IntsAttribute(*node, "perm");
  perm[0] = perm[1];
  compiler::SetAttribute(node, "perm", perm);
  return true;
}

bool Axis(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return each.kernel == "rewire.concat"; });
  if (node == nullptr) return false;
  compiler::SetAttribute(node, "axis", std::int64_t{0});
  return true;
}

bool Parts(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return each.kernel == "rewire.concat"; });
  if (node == nullptr || node->inputs.size() < 2) return false;
  node->inputs.pop_back();
  return true;
}

bool Layout(Graph* graph) {
  Node* node = Find(*graph, [](const Node& each) { return each.kernel == "rewire.max_pool"; });
  if (node == nullptr) return false;
  const Attribute* layout = compiler::FindAttribute(*node, "layout");
  const bool last = layout != nullptr && layout->value == AttributeValue(std::string("NHWC"));
  compiler::SetAttribute(node, "layout", std::string(last ? "NCHW" : "NHWC"));
  return true;
}

bool Names(Graph* graph) {
  graph->output_names.pop_back();
  return true;
}

}  // namespace

const std::vector<Breaking>& Breakings() {
  static const std::vector<Breaking> kBreakings = {
      {"a node is gone", Erase, "given one that no node before it makes"},
      {"a node stands behind its reader", MoveBehind, "given one that no node before it makes"},
      {"a node stands twice", StandsTwice, "expected one place in the graph, given a second one"},
      {"a value is made twice", MadeTwice, "expected one producer, given a second one"},
      {"a value does not know its producer", Producer, "expected this node as its producer, given none"},
      {"a dtype that the kernel does not have", DType, "expected"},
      {"a type that is larger than its size", TypeAlone, "expected a size of its type"},
      {"an elementwise output that is too large", ElementwiseSize, "expected"},
      {"a product that is too large", ProductSize, "expected the shape"},
      {"a view of more elements", ViewSize, "elements"},
      {"a constant with a byte too few", Bytes, "bytes"},
      {"a constant of another shape", ConstantShape, "expected a constant of the value's type"},
      {"a symbol of a value that is gone", SymbolSource, "whose shape has the symbol"},
      {"a size by an unknown symbol", UnknownSymbol, "whose shape has the symbol nobody, given none"},
      {"an output without a size", NoSize, "sizes, given 0"},
      {"a result that nothing makes", ResultOfNothing, "given one that nothing makes"},
      {"a result that a block made", ResultOfBlock, "given one of a block that has ended"},
      {"a branch with too few results", BranchResults, "results alone"},
      {"a carried value of another dtype", CarriedType, "expected the type of"},
      {"a sequence of another dtype", Field, "expected the type of"},
      {"an attribute that the kernel does not have", UnknownAttribute, "nobody"},
      {"a kernel that is not there", UnknownKernel, "expected a kernel of the stock libraries"},
      {"an input that is written over and read", InPlace, "written over"},
      {"a value on a device that is not there", Side, "one on a device, which the program has none of"},
      {"an output that is returned", Returns, "given 1"},
      {"what is made once reads a run's value", OnceReadsRun, "expected a constant, or a value"},
      {"an input that is missing", NoInput, "expected a value as input 0, given none"},
      {"tensors at one place of the arena", ArenaOverlap, "expected bytes apart from"},
      {"a tensor behind the arena", ArenaEnd, "bytes of the arena"},
      {"a block of another size", ShapeArenaSize, "expected a block of its size"},
      {"a block on a later one", ShapeArenaOrder, "expected a block on earlier ones, given 0 on 1"},
      {"an order that has an axis twice", Order, "expected each axis from 0 to"},
      {"parts along another axis", Axis, "expected"},
      {"a whole without one of its parts", Parts, "expected the shape"},
      {"the other layout", Layout, "expected the shape"},
      {"an output without a name", Names, "a value for each of the"},
  };
  return kBreakings;
}

}  // namespace rewire::test
