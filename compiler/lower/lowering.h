// SPDX-License-Identifier: Apache-2.0
// From an ONNX model to a Graph: walks the model's nodes in order, each becoming calls of kernels
// (operators/). What cannot be lowered is collected, and the walk goes on, so that all of it is reported at
// once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "compiler/import/model_file.h"
#include "compiler/ir/graph.h"
#include "compiler/lower/ending.h"

namespace rewire::compiler {

class Op;

struct LoweringOptions {
  std::map<std::string, std::int64_t> dims;  // symbolic dimensions with a fixed size
  // Runs a node whose inputs are constants; nothing when that fails. Empty: nothing is folded.
  std::function<std::optional<std::vector<HostTensor>>(const Node&)> fold;
  // Whether the stock libraries have a kernel; empty: not asked.
  std::function<bool(const std::string&)> has_kernel;
};

// The names that a graph, or the body of a function, can see.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, Value*> names;
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  // In the body of a function: the node that calls it, and that node's scope. Attributes refer to it.
  const onnx::NodeProto* call = nullptr;
  const Scope* call_scope = nullptr;
  const onnx::FunctionProto* function = nullptr;
  int depth = 0;

  // Null where the name is unknown, and for an input that the call of a function leaves out.
  Value* Find(const std::string& name) const;
  bool Has(const std::string& name) const;
};

// A scope inside another one, of the same function.
Scope InnerScope(const Scope& outer);

class Lowering {
 public:
  Lowering(const ModelFile& model, const LoweringOptions& options, Graph* graph)
      : model_(model), options_(options), graph_(*graph), block_(&graph->main) {}

  // Errors are those of the model; what is unsupported stands in unsupported().
  Status Run();
  const std::vector<Unsupported>& unsupported() const { return unsupported_; }
  // How many of the model's nodes were looked at.
  std::size_t node_count() const { return seen_.size(); }

  const ModelFile& model() const { return model_; }
  const LoweringOptions& options() const { return options_; }
  Graph& graph() { return graph_; }

  // Puts a node at the end of the block that is being filled. When its inputs are constants and it can be run
  // now, its outputs become constants in its place.
  void Append(Node* node);
  Value* Constant(const std::string& name, HostTensor tensor);

  // Lowers the nodes of a subgraph into the block that is being filled; `inputs` go by the names of the
  // subgraph's inputs. Where the values of its outputs are.
  Result<Ending> LowerSubgraph(const onnx::GraphProto& body, const Scope& outer,
                               const std::vector<Value*>& inputs);
  // The same with values in one place: what a loop needs.
  Result<std::vector<Value*>> LowerBody(const onnx::GraphProto& body, const Scope& outer,
                                        const std::vector<Value*>& inputs);
  // Gives a node the results of an ending: at once where they have one rank, otherwise what follows the node
  // is lowered for each.
  Status Deliver(Op* op, Ending ending);
  // Types of a graph's declared values.
  Result<Type> DeclaredType(const onnx::TypeProto& proto, const std::string& name);

  // Makes the value's dimensions computable: its symbols' values stand in its shape.
  void Define(Value* value);
  // True for the value that stands for what an unsupported node would have given.
  bool IsPoison(const Value* value) const { return value == poison_; }
  Value* poison();
  const std::string& source() const { return source_; }

  // The block that Append fills; returns the former one.
  Block* SwapBlock(Block* block) { return std::exchange(block_, block); }

 private:
  Status AddInputs(Scope* scope);
  Status AddInitializers(const onnx::GraphProto& proto, Scope* scope);
  using Nodes = std::span<const onnx::NodeProto* const>;
  // What a list of nodes is lowered for: the names of the values that it computes, and what it is the body
  // of.
  struct Wanted {
    std::vector<std::string> names;
    const char* of = "";
  };
  Result<Ending> LowerNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope* scope,
                            const Wanted& wanted);
  Result<Ending> LowerFrom(Nodes nodes, Scope* scope, const Wanted& wanted);
  // Lowers `rest` at every end of the node before it, of which `outputs` are the names.
  Result<Ending> LowerAtEnds(Ending ending, const onnx::NodeProto& node, Nodes rest, Scope* scope,
                             const Wanted& wanted);
  // The values of an ending, with outputs of its Ifs where it is open. kInvalidFile: it fails at every end.
  Result<std::vector<Value*>> Join(Ending* ending);
  Status LowerNode(const onnx::NodeProto& node, Scope* scope);
  Status CallFunction(const onnx::FunctionProto& function, const onnx::NodeProto& node, Scope* scope);
  void Report(const onnx::NodeProto& node, std::int64_t opset, const std::string& reason, Scope* scope);
  void AddUnsupported(Unsupported what);

  const ModelFile& model_;
  const LoweringOptions& options_;
  Graph& graph_;
  Block* block_;
  Value* poison_ = nullptr;
  std::string source_;  // the node that is being lowered
  std::vector<Unsupported> unsupported_;
  std::set<std::string> reported_;
  std::unordered_set<const onnx::NodeProto*> seen_;
  // Set by the node that was lowered last: its results, where they are not in one place, or why it cannot be
  // lowered here, where it may be lowered elsewhere.
  std::optional<Ending> open_;
  std::optional<Unsupported> failure_;
  bool at_ends_ = false;      // what is being lowered is also lowered for values of other ranks
  std::size_t repeated_ = 0;  // nodes lowered at ends
};

}  // namespace rewire::compiler
