// SPDX-License-Identifier: Apache-2.0
// The compiler's program: blocks of nodes over typed values, each value written once. ONNX operators have
// become calls of kernels; control flow is nodes with blocks inside.
//
// A node in a block may use values of the blocks around it. Values and nodes belong to the Graph and keep
// their addresses; passes take nodes out of blocks, nothing frees a value.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "compiler/ir/dim_expr.h"
#include "executable_format/module.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

enum class TypeKind : std::uint8_t {
  kTensor,
  kSequence,  // an ADT with one field an element
  kOptional,  // an ADT with one field, or none
};

// What an executable takes (executable_format/limits.h).
inline constexpr std::size_t kMaxRank = 32;

struct Type {
  TypeKind kind = TypeKind::kTensor;
  // kTensor
  DLDataType dtype = kFloat32;
  bool ranked = true;
  Shape dims;
  // kSequence, kOptional: what is in it
  std::shared_ptr<const Type> element;
  // kSequence: nothing is in it, so that it may become a sequence of anything of the element's dtype.
  bool empty = false;

  bool IsTensor() const { return kind == TypeKind::kTensor; }
  int rank() const { return static_cast<int>(dims.size()); }  // when ranked
};

Type TensorOf(DLDataType dtype, Shape dims);
Type UnrankedTensorOf(DLDataType dtype);
Type SequenceOf(Type element);
Type OptionalOf(Type element);
// The type of values of which some are `a` and some `b`; a dimension in which they differ becomes a symbol
// made by `fresh`. Inside sequences and optionals it becomes kAnyDim. Nothing when they have nothing in
// common.
std::optional<Type> CommonType(const Type& a, const Type& b, const std::function<std::string()>& fresh);
// Stands for dimensions of elements that differ; a value that is taken out gets symbols of its own.
inline constexpr const char kAnyDim[] = "$any";
// "f32[N, 4]", "f32[*]", "sequence(i64[])"
std::string TypeText(const Type& type);
bool SameType(const Type& a, const Type& b);

struct Node;

struct Value {
  std::string name;  // the model's, or one made from it
  Type type;
  Node* producer = nullptr;  // null: a constant, or a parameter of a block
  // A constant's elements.
  std::optional<HostTensor> constant;
  // Of a constant that was computed from others while the model was lowered: the node that was run.
  const Node* folded = nullptr;
  // What an integer tensor of rank 0 or 1 holds, as far as it is known when compiling: dimensions that are
  // computed with. One expression an element.
  std::optional<std::vector<DimExpr>> elements;

  bool IsConstant() const { return constant.has_value(); }
};

struct Block {
  std::vector<Value*> parameters;
  std::vector<Node*> nodes;
  std::vector<Value*> results;
  // Not empty: a branch that the program cannot get through, and why; it has no results.
  std::string failure;
};

enum class NodeKind : std::uint8_t {
  kKernel,   // calls a kernel that writes its outputs, or returns its one output
  kShapeOf,  // the shape of its input as i64[rank]
  kReshape,  // its first input's elements under the shape of its output; the second input, if any, holds the
             // shape
  kDims,     // i64[n] with the values of the n expressions in its extent
  kMakeAdt,  // an ADT of its inputs
  kField,    // field `field` of its input
  kIf,       // input: a condition; blocks: then, else; outputs: their results
  kLoop,     // inputs: trip count or null, condition or null, carried values.
             // block: parameters (i64[] iteration, carried...), results (condition or null, carried...)
};

struct Node {
  NodeKind kind = NodeKind::kKernel;
  std::string kernel;
  std::vector<Attribute> attributes;
  std::uint32_t flags = 0;                // KernelFlags
  bool returns = false;                   // the kernel returns its output in place of writing it
  std::optional<std::uint32_t> in_place;  // the input whose memory its one output takes over
  std::uint32_t field = 0;
  std::vector<Value*> inputs;
  std::vector<Value*> outputs;
  // For each output that is allocated, the dimensions to allocate, or a value that holds them.
  struct Extent {
    Shape dims;
    Value* shape = nullptr;
  };
  std::vector<Extent> extents;
  std::vector<Block> blocks;
  std::string source;  // the model's node: "Conv 'conv1'"
};

// Where a symbol's value stands when the program runs.
struct SymbolSource {
  const Value* value = nullptr;
  std::uint32_t axis = 0;
};

// Memory that tensors of `main` share, one after the other. Of those whose size shows only when the program
// runs, the room is for the largest.
struct Arena {
  std::uint64_t bytes = 0;           // 0: there is none
  std::uint64_t separate_bytes = 0;  // what the same tensors take when each is allocated by itself
  // Of values that kernels write, where they lie.
  std::unordered_map<const Value*, std::uint64_t> offsets;
};

// The same for tensors whose sizes are expressions of the dimensions of `main`'s inputs: they are laid out
// when the program runs.
struct ShapeArena {
  struct Block {
    const Value* value = nullptr;
    Shape dims;
    std::vector<std::size_t> on;  // blocks before it: it begins where the last of them ends
  };
  std::vector<Block> blocks;  // none: there is no arena
  // What symbols in sizes stand for that are no dimensions of inputs, each by those and by symbols before it.
  std::vector<std::pair<std::string, DimExpr>> symbols;
};

class Graph {
 public:
  Block main;
  Arena arena;
  ShapeArena shape_arena;
  // Nodes that run once, when a Program is linked: weights are packed here. What `main` uses of their outputs
  // become computed constants. They use constants and one another; the block has no parameters or results.
  Block init;
  std::vector<std::string> input_names, output_names;
  // The most that dimensions of the inputs can be: the executable refuses larger ones.
  std::map<std::string, std::int64_t> max_dims;

  Value* NewValue(std::string name, Type type);
  Node* NewNode(NodeKind kind);
  // A symbol that nothing else is called.
  std::string FreshSymbol(const std::string& hint);
  // Declares `name` as dimension `axis` of `value`; the first declaration holds.
  void DefineSymbol(const std::string& name, const Value* value, std::uint32_t axis);
  const std::map<std::string, SymbolSource>& symbols() const { return symbols_; }

  // Where a symbol stands in the shape of a merged value, it stands in that of the value it became.
  void MoveSymbols(const std::unordered_map<const Value*, Value*>& merged);

  // The same when one value became another with its axes in another order: axis i of `to` is axis perm[i] of
  // `from`.
  void MoveSymbols(const Value* from, Value* to, const std::vector<std::int64_t>& perm);

  // In place of each dimension, a symbol of this value's own where the expression is not simple: keeps
  // expressions from growing along a chain of nodes.
  Shape OwnDims(Value* value, const Shape& dims);
  // The type with a new symbol for each dimension that is not a constant.
  Type WithFreshDims(Type type);
  // Symbols for the dimensions of a value of which only the rank is known.
  void DefineDims(Value* value, int rank);

 private:
  std::deque<Value> values_;
  std::deque<Node> nodes_;
  std::map<std::string, SymbolSource> symbols_;
  std::uint64_t next_symbol_ = 0;
};

// The graph as text, one line a node: what --dump writes.
std::string GraphText(const Graph& graph);

}  // namespace rewire::compiler
