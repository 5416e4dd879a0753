// SPDX-License-Identifier: Apache-2.0
//
// Turns elementwise nodes that feed each other into one call of rewire.fused, so that the results in between
// stay in the first cache. A node joins the one behind it if nothing else reads its result and both results
// have the same dimensions: then no element is computed twice. Casts between f16 and f32 around such a call
// become its own, since it reads and writes both. So do conversions from bytes in front of it and to bytes
// behind it. Conversions that join no call take casts of their floats likewise.
#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/elementwise_program.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

class ElementwiseFusion {
 public:
  explicit ElementwiseFusion(Graph* graph) : graph_(*graph), edit_(graph) {
    for (const auto& [name, source] : graph->symbols()) sources_.insert(source.value);
  }

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      places_.clear();
      for (std::size_t i = 0; i < block->nodes.size(); ++i) places_[block->nodes[i]] = i;
      // From the end, so that a chain is found from its last node.
      for (std::size_t i = block->nodes.size(); i-- > 0;) {
        Node* node = block->nodes[i];
        if (!edit_.IsErased(node) && CanEnd(*node)) Fuse(node);
      }
      for (Node* node : block->nodes) {
        if (!edit_.IsErased(node)) TakeCastOfFloats(node);
      }
    });
    edit_.Finish();
    if (took_casts_) RemoveDeadCode(&graph_);
  }

 private:
  bool IsCandidate(const Node& node) const {
    return IsFusible(node, graph_.strict, !graph_.strict) || ConvertsBytes(node);
  }

  bool CanEnd(const Node& node) const {
    return IsCandidate(node) && !(node.outputs[0]->type.dtype == kBool8);
  }

  // The nodes that can be computed together with `last`, at most so many, in the block's order.
  std::vector<Node*> Gather(Node* last, std::size_t most) const {
    std::unordered_map<const Value*, std::size_t> reads;  // by the gathered nodes
    std::vector<Node*> nodes;
    const auto add = [&](Node* node) {
      nodes.push_back(node);
      for (const Value* input : OperandsOf(*node)) ++reads[input];
    };
    add(last);
    // A node can join as soon as the last of those that read it has joined.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const Value* input : OperandsOf(*nodes[i])) {
        Node* node = input->producer;
        const bool gathered = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
        if (node != nullptr && !gathered && nodes.size() < most && Joins(*node, *last, reads) &&
            FewInputs(nodes, *node)) {
          add(node);
        }
      }
    }
    std::sort(nodes.begin(), nodes.end(),
              [&](const Node* a, const Node* b) { return places_.at(a) < places_.at(b); });
    return nodes;
  }

  bool Joins(const Node& node, const Node& last,
             const std::unordered_map<const Value*, std::size_t>& reads) const {
    if (!IsCandidate(node) || edit_.IsErased(&node) || !places_.contains(&node)) return false;
    const Value* value = node.outputs[0];
    if (IsByte(value)) return false;  // in between all are floats
    // A model rounds each result to f16. What is joined computes in f32, and rounds its last result alone.
    if (value->type.dtype == kFloat16 || (graph_.strict && value->type.dtype == kBFloat16)) return false;
    const auto found = reads.find(value);
    // Dimensions that are read from the value would not be known before the last node.
    // A program makes floats of bytes where it reads them, so that these may be repeated, too.
    return found != reads.end() && found->second == edit_.UseCount(value) && !sources_.contains(value) &&
           (node.kernel == names::kDequantizeLinear ||
            ShapeText(value->type.dims) == ShapeText(last.outputs[0]->type.dims));
  }

  // Whether the nodes together with one more read few enough tensors.
  static bool FewInputs(const std::vector<Node*>& nodes, const Node& one_more) {
    const std::span<Value* const> more = OperandsOf(one_more);
    std::unordered_set<const Value*> read(more.begin(), more.end());
    for (const Node* node : nodes) {
      const std::span<Value* const> operands = OperandsOf(*node);
      read.insert(operands.begin(), operands.end());
    }
    for (const Node* node : nodes) read.erase(node->outputs[0]);
    read.erase(one_more.outputs[0]);
    return std::count_if(read.begin(), read.end(), [](const Value* value) { return !ScalarOf(value); }) <=
           kMostInputs;
  }

  // The kernel limits programs, by how many results are needed at a time: what is too much for one program
  // gets shorter ones. One node always has a program, which bf16 beside f32 relies on.
  void Fuse(Node* last) {
    for (std::size_t most = kMostNodes; most > 0; most /= 2) {
      const std::vector<Node*> nodes = Gather(last, most);
      if (nodes.size() == 1 && !IsSlowAlone(*last)) return;
      if (!FuseAll(nodes, last)) continue;
      return TakeCasts(last);
    }
  }

  bool FuseAll(const std::vector<Node*>& nodes, Node* last) {
    const ElementwiseProgram program(edit_, nodes);
    Node call = *last;
    call.kernel = names::kFused;
    call.attributes = {{"program", program.text()}};
    call.inputs = program.inputs();
    if (graph_.kernels == nullptr || !graph_.kernels->Check(call)) return false;
    std::string note;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      // A node without a source was made for the one that ends the chain.
      const std::string& source = nodes[i]->source.empty() ? last->source : nodes[i]->source;
      AddSteps(source, program.steps_of_nodes()[i], &note);
    }
    last->kernel = std::move(call.kernel);
    last->attributes = std::move(call.attributes);
    last->inputs = std::move(call.inputs);
    for (Node* node : nodes) {
      if (node != last) edit_.Absorb(node, last);
    }
    last->source = std::move(note);
    return true;
  }

  static bool IsCast(const Node& node, DLDataType from, DLDataType to) {
    return node.kind == NodeKind::kKernel && node.kernel == names::kCast && !node.in_place &&
           node.inputs[0]->type.dtype == from && node.outputs[0]->type.dtype == to;
  }
  void TakeCasts(Node* call) {
    for (Value*& input : call->inputs) TakeCastBefore(&input);
    TakeCastBehind(call);
  }
  // A quantization reads floats that were cast, and a dequantization writes such.
  void TakeCastOfFloats(Node* node) {
    if (node->kind != NodeKind::kKernel || node->returns) return;
    if (node->kernel == names::kQuantizeLinear) TakeCastBefore(&node->inputs[0]);
    if (node->kernel == names::kDequantizeLinear) TakeCastBehind(node);
  }
  void TakeCastBefore(Value** input) {
    const Node* cast = (*input)->producer;
    if (cast == nullptr || !IsCast(*cast, kFloat16, kFloat32)) return;
    graph_.MoveSymbols({{cast->outputs[0], cast->inputs[0]}});
    *input = cast->inputs[0];
    took_casts_ = true;
  }
  void TakeCastBehind(Node* call) {
    Node* user = edit_.OnlyUser(call->outputs[0]);
    if (user != nullptr && IsCast(*user, kFloat32, kFloat16)) edit_.TakeOver(call, user);
  }

  static constexpr std::size_t kMostNodes = 24;
  static constexpr std::ptrdiff_t kMostInputs = 8;

  Graph& graph_;
  Edit edit_;
  bool took_casts_ = false;
  std::unordered_set<const Value*> sources_;             // of symbols
  std::unordered_map<const Node*, std::size_t> places_;  // of the nodes of the block
};

}  // namespace

void FuseElementwise(Graph* graph) { ElementwiseFusion(graph).Run(); }

}  // namespace rewire::compiler
