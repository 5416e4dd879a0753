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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/ir/shape_rules.h"
#include "rewire/compiler/lower/lowering.h"

namespace rewire::compiler {

using Attributes = std::vector<Attribute>;
using Ints = std::vector<std::int64_t>;

class Op {
 public:
  Op(const onnx::NodeProto& node, std::int64_t opset, Scope* scope, Lowering* lowering);

  const std::string& type() const;
  const std::string& domain() const { return domain_; }
  std::int64_t opset() const { return opset_; }

  // Inputs; null for one that is left out.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  Value* in(int i) const { return i < inputs() ? inputs_[static_cast<std::size_t>(i)] : nullptr; }
  bool HasPoison() const;
  int outputs() const;
  // True if something uses the output.
  bool Wants(int i) const;
  void Set(int i, Value* value);

  const onnx::NodeProto& node() const { return node_; }

  // Attributes; `fallback` is returned for a missing one. An attribute of another type is a failure of the
  // node.
  bool HasAttribute(const std::string& name) const { return Find(name) != nullptr; }
  // The attribute itself. In the body of a function, the attribute of the call or the function's default.
  const onnx::AttributeProto* Find(const std::string& name) const;
  // True if the attribute has been read.
  bool HasRead(const onnx::AttributeProto& attribute) const { return read_.contains(&attribute); }
  std::int64_t Int(const std::string& name, std::int64_t fallback) const;
  double Float(const std::string& name, double fallback) const;
  std::string String(const std::string& name, const std::string& fallback) const;
  std::vector<std::int64_t> IntList(const std::string& name, const Ints& fallback = {}) const;
  std::vector<double> FloatList(const std::string& name) const;
  std::vector<std::string> StringList(const std::string& name) const;
  Result<HostTensor> TensorAttribute(const std::string& name) const;
  const onnx::GraphProto* GraphAttribute(const std::string& name) const;
  const onnx::TypeProto* TypeAttribute(const std::string& name) const;
  // The dtype that an integer attribute names, such as Cast's `to`.
  Result<DLDataType> DTypeAttribute(const std::string& name, DLDataType fallback) const;

  // Failures; they end up in the list of unsupported nodes.
  template <typename... Args>
  Status Unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return Fail(StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return Fail(StatusCode::kInvalidFile, fmt::format(format, std::forward<Args>(args)...));
  }

  // How the rules of kernels/contract report inputs whose shapes do not fit.
  auto ShapeError() const {
    return [this](const auto&... parts) { return Invalid("{}", RuleText(parts...)); };
  }

  // Calls of kernels. The type of an output says what is allocated for it. Dimensions that are not constant
  // are computed during the run. If the kernel does not take these dtypes, it gets casts of the inputs to
  // wider ones, and what it writes is cast back (lower/call_casts.h).
  struct KernelCall {
    std::string kernel;
    std::vector<Value*> inputs;
    Attributes attributes;
    std::vector<Type> outputs;
    // For outputs whose dimensions only the run knows: values that hold them (i64[rank]). The dimensions in
    // the type are then only hints.
    std::vector<Value*> shapes;
    bool returns = false;  // the kernel allocates its single output itself
    bool objects = false;  // it takes whole sequences and optionals
  };
  std::vector<Value*> Call(KernelCall call);
  Value* Call(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes, Type output);
  // The dimensions of an output, as far as they are known before the run; nullopt for those that are not. An
  // operator states all that it knows: what comes behind it may need it.
  using OpenShape = std::vector<std::optional<DimExpr>>;
  // `dims` without those at these axes, which may be negative.
  static OpenShape Open(const Shape& dims, const Ints& axes);
  // No dimension is known.
  static OpenShape AllOpen(int rank) { return OpenShape(static_cast<std::size_t>(rank)); }
  // Calls a kernel whose output has the dimensions that `shape`, i64[rank], holds during the run.
  Value* CallSized(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                   DLDataType dtype, Value* shape, const OpenShape& known = {});
  // The number of elements of a list of dimensions or axes. Fails if it is unknown, or larger than the
  // highest rank of a tensor. `what` names the list.
  Result<std::int64_t> Length(const Value* list, const char* what) const;

  // A kernel whose output shape another kernel computes. That is done now if its arguments are constants, and
  // otherwise during the run.
  struct ShapeCall {
    std::string kernel;
    std::vector<Value*> inputs;
    Attributes attributes;
  };
  Value* CallShaped(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                    DLDataType dtype, const OpenShape& known, ShapeCall shape);
  Value* ShapeValue(ShapeCall shape, int rank);

  // Inputs `first` to `last`, for a kernel with optional arguments. A missing one in the middle is a tensor
  // without elements, with the dtype of input 0. Missing ones at the end are left out.
  std::vector<Value*> Arguments(int first, int last);
  Value* Missing(DLDataType dtype);

  // Makes the constant of a node Constant, which may become a parameter.
  Value* OwnConstant(HostTensor tensor) {
    return lowering_.ModelConstant(node_.output(0), std::move(tensor), scope_);
  }
  Value* Constant(HostTensor tensor) { return lowering_.Constant(NextName(), std::move(tensor)); }
  Value* IntsValue(const Ints& values);           // i64[n]
  Value* IntValue(std::int64_t value);            // i64[]
  Value* Scalar(DLDataType dtype, double value);  // of a float or integer type, rank 0

  Value* ShapeOf(Value* x);  // i64[rank]
  Value* Reshape(Value* x, Shape dims);
  // `shape` is i64[rank].
  Value* ReshapeTo(Value* x, Value* shape, int rank);
  // `shape` is i64[n]; n is known only during the run.
  Value* ReshapeUnranked(Value* x, Value* shape);
  // `of_narrow` says how floats of 8 bits round; the kernel of other dtypes does not get it.
  Value* Cast(Value* x, DLDataType dtype, Attributes of_narrow = {});
  // Integers as f64, for what is defined of floats; others as they are.
  Value* WithoutIntegers(Value* x);
  // Reduces over these axes: mean, sum and so on.
  Value* Reduce(const std::string& kernel, Value* x, const Ints& axes, bool keepdims);
  Value* Transpose(Value* x, const Ints& perm);
  // The parts one behind the other. A failure is kept, as Apply does.
  Value* Concat(const std::vector<Value*>& parts, int axis);
  Value* Unary(const std::string& kernel, Value* x, Attributes attributes = {});
  Result<Value*> Binary(const std::string& kernel, Value* a, Value* b);
  Result<Value*> BinaryTo(const std::string& kernel, Value* a, Value* b, DLDataType dtype);
  // The same inside a decomposition, where shapes should match. If it fails, the failure is kept, and the
  // node is reported when its function returns.
  Value* Apply(const std::string& kernel, Value* a, Value* b);
  Value* Compare(const std::string& kernel, Value* a, Value* b);
  const Status& failure() const { return failure_; }
  Value* MakeAdt(std::vector<Value*> fields, Type type);
  Value* Field(Value* adt, std::uint32_t index, Type type);
  // Makes an i64[n] tensor with these expressions as elements, by one kernel call or as a constant.
  Value* DimsValue(const Shape& dims);

  // Converts an axis in [-rank, rank) to [0, rank).
  Result<int> Axis(std::int64_t axis, int rank) const;
  Result<Shape> Broadcast(ShapeSpan a, ShapeSpan b) const;

  Lowering& lowering() { return lowering_; }
  const Lowering& lowering() const { return lowering_; }
  Scope& scope() { return scope_; }
  const std::string& source() const { return lowering_.source(); }
  std::string NextName();

 private:
  std::vector<Value*> MakeCall(KernelCall call);
  Value* AddedCast(Value* x, DLDataType dtype);
  void CheckDims(const Type& type);
  // Checks that dimensions that are computed during the run are not too long.
  void CheckLengths(const Shape& dims);
  // Find for an attribute of this type (an AttributeProto.AttributeType); otherwise null.
  const onnx::AttributeProto* FindTyped(const std::string& name, int type) const;

  const onnx::NodeProto& node_;
  std::string domain_;
  std::int64_t opset_;
  Scope& scope_;
  Lowering& lowering_;
  std::vector<Value*> inputs_;
  int made_ = 0;
  mutable std::set<const onnx::AttributeProto*> read_;
  mutable Status failure_;  // also set by attributes that are read
};

// The elements of an integer constant, or of a value whose elements are all known; else nullopt.
std::optional<Ints> KnownInts(const Value* value);
// The elements of an integer tensor of rank 0 or 1, as expressions.
std::optional<Shape> KnownElements(const Value* value);
// Records the elements of a value, unless there are too many or they are too long.
void SetElements(Value* value, Shape elements);
// The elements of a float constant.
std::optional<std::vector<double>> KnownFloats(const Value* value);
bool IsFloat(DLDataType dtype);

}  // namespace rewire::compiler
