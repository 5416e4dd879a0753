// SPDX-License-Identifier: Apache-2.0
//
// Graph: the program that the compiler works on. It has blocks of nodes over typed values, and each value is
// written once. ONNX operators have become calls of kernels. Control flow is nodes with blocks inside.
//
// A node in a block may use values of the blocks around it. Values and nodes belong to the Graph and keep
// their addresses. Passes remove nodes from blocks, but nothing frees a value.
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

#include "rewire/base/dtype.h"
#include "rewire/base/max_rank.h"
#include "rewire/compiler/ir/dim_expr.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

inline constexpr DLDataType kBFloat16 = MakeDType(kBFloat, 16);

enum class TypeKind : std::uint8_t {
  kTensor,
  kSequence,  // an ADT with one field per element
  kOptional,  // an ADT with one field or none
};

struct Type {
  TypeKind kind = TypeKind::kTensor;
  // kTensor
  DLDataType dtype = kFloat32;
  bool ranked = true;
  Shape dims;
  // kSequence, kOptional: the type of its elements
  std::shared_ptr<const Type> element;
  // kSequence: it is empty, so it may become a sequence of any type with the element's dtype.
  bool empty = false;

  bool IsTensor() const { return kind == TypeKind::kTensor; }
  int rank() const { return static_cast<int>(dims.size()); }  // when ranked
};

Type TensorOf(DLDataType dtype, Shape dims);
Type UnrankedTensorOf(DLDataType dtype);
Type SequenceOf(Type element);
Type OptionalOf(Type element);
// The type of values of which some have type `a` and some `b`. A dimension in which they differ becomes a
// symbol made by `fresh`; inside sequences and optionals it becomes kAnyDim. nullopt if the types are not
// compatible.
std::optional<Type> CommonType(const Type& a, const Type& b, const std::function<std::string()>& fresh);
// Stands for dimensions in which elements differ. A value that is taken out gets its own symbols.
inline constexpr const char kAnyDim[] = "$any";
// "f32[N, 4]", "f32[*]", "sequence(i64[])"
std::string TypeText(const Type& type);
bool SameType(const Type& a, const Type& b);

struct Node;

struct Value {
  std::string name;  // the model's name, or one made from it
  Type type;
  Node* producer = nullptr;  // null: a constant, or a parameter of a block
  // A constant's elements.
  std::optional<HostTensor> constant;
  // A constant whose elements are known when a program is linked, and not while compiling: a parameter of the
  // executable, or what `folded` computes from one. The elements in `constant` mean nothing.
  bool at_load = false;
  // Set by ElementsOf for a constant at load, if the program depends on its elements.
  mutable bool elements_wanted = false;
  // For a constant that was computed from others while compiling: the node that gives it. It is in no block.
  Node* folded = nullptr;
  // The elements of an integer tensor of rank 0 or 1, as far as they are known when compiling. They are used
  // to compute dimensions. One expression per element.
  std::optional<std::vector<DimExpr>> elements;
  bool on_device = false;  // it lies on Graph::device, and not on the host
  // The name of the model's value that this is, so that a run can be compared with the model. Empty if the
  // model has no such value. A pass that computes the same value in another form hands the name on.
  std::string model_name;
  bool channels_last = false;  // it is that value with axis 1 moved to the end

  bool IsConstant() const { return constant.has_value(); }
  bool IsParameter() const { return at_load && folded == nullptr; }
};

// The elements of a constant that is known while compiling; null for any other value. Marks the parameters
// that the elements of a constant at load depend on as wanted.
const HostTensor* ElementsOf(const Value* value);
// The constant becomes one at load, of this type.
void BecomeAtLoad(Value* value, DLDataType dtype, std::vector<std::int64_t> dims);

struct Block {
  std::vector<Value*> parameters;
  std::vector<Node*> nodes;
  std::vector<Value*> results;
  // Not empty: the program fails in this branch, for this reason. The branch has no results.
  std::string failure;
};

enum class NodeKind : std::uint8_t {
  kKernel,   // calls a kernel that writes its outputs, or returns its one output
  kShapeOf,  // the shape of its input as i64[rank]
  kReshape,  // its first input's elements under the shape of its output; the second input, if any, holds the
             // shape
  kDeviceCopy,  // its input, on the other side of the host and Graph::device
  kDims,        // i64[n] with the values of the n expressions in its extent
  kMakeAdt,     // an ADT of its inputs
  kField,       // field `field` of its input
  kIf,          // input: a condition; blocks: then, else; outputs: their results
  kLoop,        // inputs: trip count or null, condition or null, carried values.
                // block: parameters (i64[] iteration, carried...), results (condition or null, carried...)
};

struct Node {
  NodeKind kind = NodeKind::kKernel;
  std::string kernel;
  std::vector<Attribute> attributes;
  std::uint32_t flags = 0;  // KernelFlags
  // A cast around a kernel that does not take the model's dtype. The model does not ask for its rounding.
  bool added = false;
  // Nodes of `init` alone: run when a program is loaded, and not while compiling, since the result is larger
  // than what it is made of.
  bool at_load = false;
  bool returns = false;                   // the kernel returns its output in place of writing it
  std::optional<std::uint32_t> in_place;  // the input whose memory the single output takes over
  std::uint32_t field = 0;
  std::vector<Value*> inputs;
  std::vector<Value*> outputs;
  // For each allocated output: the dimensions, or a value that holds them.
  struct Extent {
    Shape dims;
    Value* shape = nullptr;
  };
  std::vector<Extent> extents;
  std::vector<Block> blocks;
  std::string source;  // the model's node: "Conv 'conv1'"
  // Why it stays on the host, of a model that is compiled for a device. Static storage; null where it is not
  // known.
  const char* why_on_host = nullptr;
};

// The place where the value of a symbol can be read during a run.
struct SymbolSource {
  const Value* value = nullptr;
  std::uint32_t axis = 0;
};

// Memory that tensors of `main` share at different times. A tensor whose size is known only during the run
// gets room for its largest size.
struct Arena {
  std::uint64_t bytes = 0;           // 0: there is no arena
  std::uint64_t separate_bytes = 0;  // what the same tensors would take if each were allocated by itself
  // The offsets of values that kernels write.
  std::unordered_map<const Value*, std::uint64_t> offsets;
};

// An arena for tensors whose sizes are expressions of the dimensions of `main`'s inputs. It is laid out
// during the run.
struct ShapeArena {
  struct Block {
    const Value* value = nullptr;
    Shape dims;
    std::vector<std::size_t> on;  // earlier blocks: this one begins where the last of them ends
  };
  std::vector<Block> blocks;  // empty: there is no arena
  // Definitions of symbols in sizes that are no dimensions of inputs. Each is expressed by such dimensions
  // and by earlier symbols.
  std::vector<std::pair<std::string, DimExpr>> symbols;
};

// The device that a model is compiled for, beside the host.
struct TargetDevice {
  std::int32_t type = 0;  // DLDeviceType
  std::int32_t id = 0;
  // Nodes that hang together run on the device only with so much work, counted in elements that are computed.
  std::int64_t least_work = 0;
};

class KernelTraits;

// Weights that a pass has made 0.
struct ZeroedWeights {
  std::string constant;
  std::string node;  // that multiplies them: "Conv 'conv1'"
  std::size_t count = 0;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  // The same with values and nodes of its own. Constants share their bytes. The arenas must not be planned.
  Graph Copy() const;

  Block main;
  // The traits of the kernels that nodes call. Null: nothing.
  std::shared_ptr<const KernelTraits> kernels;
  std::optional<TargetDevice> device;
  // Passes change nothing but the order of sums (passes/passes.h).
  bool strict = false;
  bool bf16 = false;   // products by constant weights of f32 may compute in bf16
  bool tiles = false;  // on a CPU that multiplies bf16 by tiles, ten times as fast as floats
  std::vector<ZeroedWeights> zeroed_weights;
  // Constants of the model that become parameters of the executable, with their own elements.
  struct Parameter {
    const Value* value = nullptr;
    HostTensor tensor;
  };
  std::vector<Parameter> parameters;
  // The arenas of tensors on the host and of those on the device.
  Arena arena, device_arena;
  ShapeArena shape_arena, device_shape_arena;
  Arena& ArenaOn(bool device) { return device ? device_arena : arena; }
  ShapeArena& ShapeArenaOn(bool device) { return device ? device_shape_arena : shape_arena; }
  // Nodes that run once, when a Program is linked, such as packing of weights. Outputs that `main` uses
  // become computed constants. These nodes use only constants and each other. The block has no parameters or
  // results.
  Block init;
  std::vector<std::string> input_names, output_names;
  // The largest sizes of the inputs' dimensions. The executable refuses larger ones.
  std::map<std::string, std::int64_t> max_dims;

  Value* NewValue(std::string name, Type type);
  Node* NewNode(NodeKind kind);
  // A constant with the elements of another one under other dimensions.
  Value* NewView(const std::string& name, Value* constant, const std::vector<std::int64_t>& dims);
  // Returns a symbol with a new name.
  std::string FreshSymbol(const std::string& hint);
  // Declares `name` as dimension `axis` of `value`. The first declaration counts.
  void DefineSymbol(const std::string& name, const Value* value, std::uint32_t axis);
  const std::map<std::string, SymbolSource>& symbols() const { return symbols_; }

  // The symbol is read from that value from now on.
  void MoveSymbol(const std::string& name, const Value* value, std::uint32_t axis) {
    symbols_.insert_or_assign(name, SymbolSource{value, axis});
  }
  // Moves symbols of merged values: a symbol that was read from a merged value is now read from the value it
  // became.
  void MoveSymbols(const std::unordered_map<const Value*, Value*>& merged);

  // The same when a value became another one with permuted axes: axis i of `to` is axis perm[i] of `from`.
  void MoveSymbols(const Value* from, Value* to, const std::vector<std::int64_t>& perm);

  // Replaces each dimension that is not a simple expression by a symbol, of this value or of an earlier one
  // of the same block with the same expression. This keeps expressions from growing along a chain of nodes.
  Shape OwnDims(Value* value, const Shape& dims, const Block* block);
  // The same expression without such symbols.
  DimExpr WithoutOwnSymbols(const DimExpr& dim) const;
  // Replaces each dimension that is not constant by a new symbol.
  Type WithFreshDims(Type type);
  // Makes symbols for the dimensions of a value of which only the rank is known.
  void DefineDims(Value* value, int rank);

 private:
  std::deque<Value> values_;
  std::deque<Node> nodes_;
  std::map<std::string, SymbolSource> symbols_;
  std::map<std::string, DimExpr> own_symbols_;  // what they stand for
  std::map<std::pair<const Block*, std::string>, std::string> symbol_of_text_;
  std::uint64_t next_symbol_ = 0;
};

// The graph as text, one line per node. --dump writes this.
std::string GraphText(const Graph& graph);

}  // namespace rewire::compiler
