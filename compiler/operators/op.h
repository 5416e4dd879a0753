// SPDX-License-Identifier: Apache-2.0
// Op: one node of an ONNX model while it is lowered. An operator's function reads inputs and attributes from
// it, calls kernels through it, and sets its outputs:
//
//   Status LowerSoftmax(Op& op) {
//     Value* x = op.in(0);
//     op.Set(0, op.Call("rewire.softmax", {x}, {{"axis", op.Int("axis", -1)}}, x->type));
//     return {};
//   }
//
// The table in registry.cc has checked the number of inputs, that required ones are there and, unless it says
// otherwise, that all are tensors of known rank.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ir/graph.h"
#include "compiler/lower/lowering.h"

namespace rewire::compiler {

using Attributes = std::vector<Attribute>;
using Ints = std::vector<std::int64_t>;

class Op {
 public:
  Op(const onnx::NodeProto& node, std::int64_t opset, Scope* scope, Lowering* lowering);

  const std::string& type() const;
  const std::string& domain() const { return domain_; }
  std::int64_t opset() const { return opset_; }

  // Inputs; null where one is left out.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  Value* in(int i) const { return i < inputs() ? inputs_[static_cast<std::size_t>(i)] : nullptr; }
  bool HasPoison() const;
  int outputs() const;
  // Whether anything is named after the output.
  bool Wants(int i) const;
  void Set(int i, Value* value);

  // Attributes; the fallback where one is missing or of another type.
  bool HasAttribute(const std::string& name) const { return Find(name) != nullptr; }
  std::int64_t Int(const std::string& name, std::int64_t fallback) const;
  double Float(const std::string& name, double fallback) const;
  std::string String(const std::string& name, const std::string& fallback) const;
  std::vector<std::int64_t> IntList(const std::string& name, const Ints& fallback = {}) const;
  std::vector<double> FloatList(const std::string& name) const;
  std::vector<std::string> StringList(const std::string& name) const;
  Result<HostTensor> TensorAttribute(const std::string& name) const;
  const onnx::GraphProto* GraphAttribute(const std::string& name) const;
  const onnx::TypeProto* TypeAttribute(const std::string& name) const;
  // The element type that an integer attribute names, as Cast's `to`.
  Result<DLDataType> DTypeAttribute(const std::string& name, DLDataType fallback) const;

  // Failures, which end up in the list of what is unsupported.
  template <typename... Args>
  Status Unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return Fail(StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return Fail(StatusCode::kInvalidFile, fmt::format(format, std::forward<Args>(args)...));
  }

  // Calls of kernels. An output's type says what is allocated for it; its dimensions are computed when the
  // program runs where they are not constants.
  struct KernelCall {
    std::string kernel;
    std::vector<Value*> inputs;
    Attributes attributes;
    std::vector<Type> outputs;
    // For outputs whose dimensions are known at run time only: values that hold them (i64[rank]); the
    // dimensions in the type are then taken as hints.
    std::vector<Value*> shapes;
    bool returns = false;  // the kernel makes its one output itself
    bool objects = false;  // it takes sequences and optionals whole
  };
  std::vector<Value*> Call(KernelCall call);
  Value* Call(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes, Type output);
  // A tensor of `rank` dimensions that `shape`, i64[rank], holds at run time.
  Value* CallSized(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                   DLDataType dtype, Value* shape);
  // How many elements a list of dimensions or axes has. Fails where it is not known, or more than a tensor
  // has dimensions; `what` names the list.
  Result<std::int64_t> Length(const Value* list, const char* what) const;
  // A tensor that the kernel makes, of which the dtype and rank are known.
  Value* CallReturning(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                       DLDataType dtype, int rank);

  // A kernel whose output's shape another kernel computes: now, where that one's arguments are constants,
  // otherwise when the program runs.
  struct ShapeCall {
    std::string kernel;
    std::vector<Value*> inputs;
    Attributes attributes;
  };
  Value* CallShaped(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                    DLDataType dtype, int rank, ShapeCall shape);
  Value* ShapeValue(ShapeCall shape, int rank);

  // Inputs `first` to `last` for a kernel with optional arguments: those missing in the middle stand as
  // tensors without elements, of the dtype of input 0, those at the end are left out.
  std::vector<Value*> Arguments(int first, int last);
  Value* Missing(DLDataType dtype);

  Value* Constant(HostTensor tensor) { return lowering_.Constant(NextName(), std::move(tensor)); }
  Value* IntsValue(const Ints& values);           // i64[n]
  Value* IntValue(std::int64_t value);            // i64[]
  Value* Scalar(DLDataType dtype, double value);  // of a float or integer type, rank 0

  Value* ShapeOf(Value* x);  // i64[rank]
  Value* Reshape(Value* x, Shape dims);
  // `shape` is i64[rank].
  Value* ReshapeTo(Value* x, Value* shape, int rank);
  Value* Cast(Value* x, DLDataType dtype);
  // The mean, sum, ... over these axes.
  Value* Reduce(const std::string& kernel, Value* x, const Ints& axes, bool keepdims);
  Value* Transpose(Value* x, const Ints& perm);
  Value* Unary(const std::string& kernel, Value* x, Attributes attributes = {});
  Result<Value*> Binary(const std::string& kernel, Value* a, Value* b);
  Result<Value*> BinaryTo(const std::string& kernel, Value* a, Value* b, DLDataType dtype);
  // The same inside a decomposition, where shapes should fit: a failure is kept, and the node is reported
  // with it when its function has returned.
  Value* Apply(const std::string& kernel, Value* a, Value* b);
  Value* Compare(const std::string& kernel, Value* a, Value* b);
  const Status& failure() const { return failure_; }
  Value* MakeAdt(std::vector<Value*> fields, Type type);
  Value* Field(Value* adt, std::uint32_t index, Type type);
  // A tensor of i64[n] whose elements are these expressions, as one kernel call or a constant.
  Value* DimsValue(const Shape& dims);

  // Axis in [-rank, rank) to [0, rank).
  Result<int> Axis(std::int64_t axis, int rank) const;
  Result<Shape> Broadcast(const Shape& a, const Shape& b) const;

  Lowering& lowering() { return lowering_; }
  Scope& scope() { return scope_; }
  const std::string& source() const { return lowering_.source(); }
  std::string NextName();

 private:
  void CheckDims(const Type& type);
  const onnx::AttributeProto* Find(const std::string& name) const;

  const onnx::NodeProto& node_;
  std::string domain_;
  std::int64_t opset_;
  Scope& scope_;
  Lowering& lowering_;
  std::vector<Value*> inputs_;
  int made_ = 0;
  Status failure_;
};

// The elements of an integer constant, or of a value whose elements are all known; nothing otherwise.
std::optional<Ints> KnownInts(const Value* value);
// The elements as expressions, of an integer tensor of rank 0 or 1.
std::optional<Shape> KnownElements(const Value* value);
// The elements of a float constant.
std::optional<std::vector<double>> KnownFloats(const Value* value);
bool IsFloat(DLDataType dtype);

}  // namespace rewire::compiler
