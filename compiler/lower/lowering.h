// SPDX-License-Identifier: Apache-2.0
//
// Lowers an ONNX model to a Graph. It goes through the model's nodes in order; each becomes calls of kernels
// (operators/). Nodes that cannot be lowered are collected, so that all of them are reported at once.
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

#include "rewire/base/status.h"
#include "rewire/base/work_meter.h"
#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/limits.h"
#include "rewire/compiler/lower/continuation.h"
#include "rewire/compiler/lower/string_tables.h"

namespace rewire::compiler {

class Op;
class OwnOperators;

struct LoweringOptions {
  std::map<std::string, std::int64_t> dims;  // symbolic dimensions with a fixed size
  // Runs a node whose inputs are constants. Returns nullopt if that fails or costs too much. Empty: nothing
  // is folded.
  std::function<std::optional<std::vector<HostTensor>>(const Node&)> fold;
  std::uint64_t work = CompileLimits().work;
  std::uint64_t sparse_bytes = CompileLimits().fold_bytes;  // of sparse weights, with their zeros
  // Checks whether a kernel accepts a call, as far as this is known before it runs. Empty: not checked.
  std::function<Status(const Node&)> check;
  // Tells whether the stock libraries have a kernel. Empty: not checked.
  std::function<bool(const std::string&)> has_kernel;
  // Nodes behind a Squeeze whose rank only the run knows are lowered for each rank. Otherwise its result has
  // no rank, which is smaller but which few operators take.
  bool for_each_rank = false;
  // Tells whether a constant of the model becomes a parameter of the executable. Empty: none does.
  std::function<bool(const std::string& name, const HostTensor& tensor)> is_parameter;
  // Elements of initializers of the model's graph, in place of the model's, of its types. Null: none.
  const std::map<std::string, HostTensor>* given = nullptr;
  // Initializers of the model's graph that are inputs of the program. Null: none.
  const std::set<std::string>* overridden = nullptr;
  // Operators of the host. Null: it has none.
  const OwnOperators* own_operators = nullptr;
};

// The names that a graph, or the body of a function, can see.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, Value*> names;
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  // In the body of a function: the node that calls it, and that node's scope. Attributes may refer to it.
  const onnx::NodeProto* call = nullptr;
  const Scope* call_scope = nullptr;
  const onnx::FunctionProto* function = nullptr;
  int depth = 0;
  bool of_model = true;  // its names are those of values of the model, and not of a function or a rewriting

  // Null if the name is unknown, and for an input that the call of a function leaves out.
  Value* Find(const std::string& name) const;
  bool Has(const std::string& name) const;
};

// Makes a scope inside another one, in the same function.
Scope InnerScope(const Scope& outer);

class Lowering {
 public:
  Lowering(const ModelFile& model, const LoweringOptions& options, Graph* graph)
      : model_(model),
        options_(options),
        graph_(*graph),
        block_(&graph->main),
        sparse_bytes_(options.sparse_bytes),
        work_(WorkBudget(options)) {}

  // Errors are those of the model. Unsupported nodes are listed in unsupported().
  Status Run();
  const std::vector<Unsupported>& unsupported() const { return unsupported_; }
  // How many of the model's nodes were visited. Inputs and initializers that are listed count, too.
  std::size_t node_count() const { return seen_.size() + tensors_; }
  bool lists_tensors() const { return tensors_ > 0; }

  // The names of the dimensions that LoweringOptions::dims may fix.
  const std::set<std::string>& dim_names() const { return dim_names_; }

  const ModelFile& model() const { return model_; }
  const LoweringOptions& options() const { return options_; }
  Graph& graph() { return graph_; }

  // Appends a node to the current block. If its inputs are constants and it can be run now, its outputs
  // become constants instead.
  void Append(Node* node);
  Value* Constant(const std::string& name, HostTensor tensor);
  // A constant that the model has under this name: an initializer, or the output of a node Constant. It is
  // one at load if it becomes a parameter, which only those of the model's graph itself can.
  Value* ModelConstant(const std::string& name, HostTensor tensor, const Scope& scope);
  // A constant under another dtype. It is made once, so that weights which several nodes cast are one
  // constant still. Null: it was not made so far.
  Value* ConstantCast(const Value* constant, DLDataType dtype) const;
  void SetConstantCast(const Value* constant, Value* cast);
  // All elements of a sparse tensor. Fails if those of all sparse tensors take too much memory.
  Result<HostTensor> ReadSparse(const onnx::SparseTensorProto& proto);

  // A constant tensor of strings, or nullopt if the tensor has another type.
  Result<std::optional<Value*>> StringConstant(const onnx::TensorProto& proto, const std::string& name);
  StringTables& strings() { return strings_; }
  // A result without rank may be lowered for each rank (LoweringOptions::for_each_rank).
  void NoteUnknownRank() { unknown_rank_ = true; }
  bool unknown_rank() const { return unknown_rank_; }
  // Two constants that are the list.
  StringList ConstantList(const Strings& strings);
  // The list of a value that is strings, for kernels.
  StringList ListOf(const Value* strings);

  // Lowers the nodes of a subgraph into the current block. `inputs` get the names of the subgraph's inputs.
  // Returns where the values of its outputs are.
  Result<Continuation> LowerSubgraph(const onnx::GraphProto& body, const Scope& outer,
                                     const std::vector<Value*>& inputs);
  // The same, with the values in one place, as a loop needs them.
  Result<std::vector<Value*>> LowerBody(const onnx::GraphProto& body, const Scope& outer,
                                        const std::vector<Value*>& inputs);
  // Gives the results of a continuation to a node. If they have one rank, this is done at once. Otherwise
  // everything behind the node is lowered for each rank.
  Status Deliver(Op* op, Continuation continuation);
  // Counts the work for the dimensions of a new node.
  void ChargeDims(const Shape& dims);

  // Types of a graph's declared values.
  Result<Type> DeclaredType(const onnx::TypeProto& proto, const std::string& name);

  // Makes the dimensions of the value available: its symbols can be read from its shape.
  void Define(Value* value);
  // True for the value that replaces the output of an unsupported node.
  bool IsPoison(const Value* value) const { return value == poison_; }
  Value* poison();
  const std::string& source() const { return source_; }

  // The block that Append fills.
  Block* block() const { return block_; }
  // Sets that block, and returns the former one.
  Block* SwapBlock(Block* block) { return std::exchange(block_, block); }

 private:
  static WorkMeter::Budget WorkBudget(const LoweringOptions& options);
  Status AddInputs(Scope* scope);
  Value* AddInput(const std::string& name, Type type);
  Status AddInitializers(const onnx::GraphProto& proto, Scope* scope);
  // The elements of an initializer: those that the host gives, or else the model's.
  Result<HostTensor> ElementsOf(const onnx::TensorProto& initializer, bool of_model) const;
  // Makes the output of a node whose inputs are constants, some of them at load, a constant at load. Returns
  // false and changes nothing if the node cannot run at load.
  static bool FoldAtLoad(Node* node);
  using Nodes = std::span<const onnx::NodeProto* const>;
  // The purpose for which a list of nodes is lowered: the names of the values that are needed, and what the
  // list is the body of.
  struct Wanted {
    std::vector<std::string> names;
    const char* of = "";
  };
  Result<Continuation> LowerNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                  Scope* scope, const Wanted& wanted);
  Result<Continuation> LowerFrom(Nodes nodes, Scope* scope, const Wanted& wanted);
  // Lowers `rest` at every end of the node before it. `outputs` are the names of that node's outputs.
  Result<Continuation> LowerAtEnds(Continuation continuation, const onnx::NodeProto& node, Nodes rest,
                                   Scope* scope, const Wanted& wanted);
  // Returns the values of a continuation; if it is open, they become outputs of its Ifs. Errors: kInvalidFile
  // if it fails at every end.
  Result<std::vector<Value*>> Join(Continuation* continuation);
  // The same. Results that are strings at all ends are strings.
  Result<std::vector<Value*>> JoinStrings(Continuation* continuation);
  Status LowerNode(const onnx::NodeProto& node, Scope* scope);
  // Checks a node behind an unsupported one, as far as this is possible without its inputs. Does the same for
  // the nodes of its subgraphs, whose nesting protobuf limits.
  void JudgeUnseen(const Op& op, Scope* scope);
  Status CallFunction(const onnx::FunctionProto& function, const onnx::NodeProto& node, Scope& scope);
  void Report(const onnx::NodeProto& node, std::int64_t opset, const std::string& reason, Scope* scope);
  // The same for an input or an initializer of the graph.
  void ReportTensor(const char* what, const std::string& name, const std::string& reason, Scope* scope);
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
  // Set by the node that was lowered last. Either its results, if they are not in one place; or the reason
  // why it cannot be lowered here, if it may be lowered elsewhere.
  std::optional<Continuation> open_;
  std::optional<Unsupported> failure_;
  bool unknown_rank_ = false;
  bool at_ends_ = false;      // the current nodes are also lowered for values of other ranks
  std::size_t repeated_ = 0;  // nodes lowered at ends
  std::set<std::string> dim_names_;
  StringTables strings_;
  std::unordered_map<const Value*, std::vector<Value*>> constant_casts_;
  std::unordered_map<std::string, Value*> parameters_;  // of the executable
  std::size_t tensors_ = 0;                             // inputs and initializers that are listed
  std::uint64_t sparse_bytes_;                          // that are left
  WorkMeter work_;
};

}  // namespace rewire::compiler
