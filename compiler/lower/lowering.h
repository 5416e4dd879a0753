// SPDX-License-Identifier: Apache-2.0
// From an ONNX model to a Graph: walks the model's nodes in order, each becoming calls of kernels
// (operators/). What cannot be lowered is collected, and the walk goes on, so that all of it is reported at
// once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "compiler/import/model_file.h"
#include "compiler/ir/graph.h"

namespace rewire::compiler {

struct LoweringOptions {
  std::map<std::string, std::int64_t> dims;  // symbolic dimensions with a fixed size
  // Runs a node whose inputs are constants; nothing when that fails. Empty: nothing is folded.
  std::function<std::optional<std::vector<HostTensor>>(const Node&)> fold;
  // Whether the stock libraries have a kernel; empty: not asked.
  std::function<bool(const std::string&)> has_kernel;
};

// A node of the model that the compiler has no code for.
struct Unsupported {
  std::string node;  // its name, or its first output
  std::string op_type;
  std::string domain;
  std::int64_t opset = 0;
  std::string reason;
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

  Value* Find(const std::string& name) const;
};

class Lowering {
 public:
  Lowering(const ModelFile& model, const LoweringOptions& options, Graph* graph)
      : model_(model), options_(options), graph_(*graph), block_(&graph->main) {}

  // Errors are those of the model; what is unsupported stands in unsupported().
  Status Run();
  const std::vector<Unsupported>& unsupported() const { return unsupported_; }
  std::size_t node_count() const { return node_count_; }

  const ModelFile& model() const { return model_; }
  const LoweringOptions& options() const { return options_; }
  Graph& graph() { return graph_; }

  // Puts a node at the end of the block that is being filled. When its inputs are constants and it can be run
  // now, its outputs become constants in its place.
  void Append(Node* node);
  Value* Constant(const std::string& name, HostTensor tensor);

  // Lowers the nodes of a subgraph into the block that is being filled; `inputs` go by the names of the
  // subgraph's inputs. The values of its outputs.
  Result<std::vector<Value*>> LowerBody(const onnx::GraphProto& body, const Scope& outer,
                                        const std::vector<Value*>& inputs);
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
  Status LowerNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope* scope);
  Status LowerNode(const onnx::NodeProto& node, Scope* scope);
  Status CallFunction(const onnx::FunctionProto& function, const onnx::NodeProto& node, Scope* scope);
  void Report(const onnx::NodeProto& node, std::int64_t opset, const std::string& reason, Scope* scope);

  const ModelFile& model_;
  const LoweringOptions& options_;
  Graph& graph_;
  Block* block_;
  Value* poison_ = nullptr;
  std::string source_;  // the node that is being lowered
  std::vector<Unsupported> unsupported_;
  std::map<std::string, bool> reported_;
  std::size_t node_count_ = 0;
};

}  // namespace rewire::compiler
