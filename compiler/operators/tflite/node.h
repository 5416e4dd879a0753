// SPDX-License-Identifier: Apache-2.0
//
// An operator of a .tflite file while it is lowered: its tensors with their scales and zero points
// (import/read_tflite.h has the order of a node's inputs).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/operators/decomposition.h"

namespace rewire::compiler {

class TfliteNode {
 public:
  // Scales and zeros are constants, with one element or one for each channel. Null for floats and for what
  // the file does not quantize.
  struct Operand {
    Value* value = nullptr;
    Value* scale = nullptr;
    Value* zero = nullptr;

    bool IsBytes() const;   // 8-bit integers
    bool IsFloats() const;  // f32
    // The only scale and zero; nothing if there are several or none.
    std::optional<float> OneScale() const;
    std::optional<std::int64_t> OneZero() const;
  };

  explicit TfliteNode(Op& op) : parts(op), op_(op), inputs_((op.inputs() - 2 * op.outputs()) / 3) {}

  // Checks the number of inputs, without scales and zeros, and of outputs. The first `least` inputs must be
  // there, and all scales must be constants of f32.
  Status Check(int least, int most, int outputs = 1) const;

  int inputs() const { return inputs_; }
  // An input that the node lacks has a null value.
  Operand in(int i) const;
  // The output's scale and zero. Its value is null.
  Operand out(int i = 0) const;

  // Errors: kUnsupported unless the first operand is f32 and so are the others, or all are bytes with one
  // scale each. `per_channel` is the input that may have a scale for each channel.
  Status CheckAllOneKind(const std::vector<int>& inputs, int per_channel = -1) const;

  // The bytes between which an activation holds the output, or the range of floats, and which it is. Nothing
  // if it changes nothing.
  Result<std::string> Activated(const std::string& result, bool bytes);

  std::string Transposed(const std::string& value, const Ints& perm);

  Status Set(const std::string& result);
  Status Set(Value* value);

  Decomposition parts;

 private:
  Op& op_;
  int inputs_;
};

// Strides, padding and dilations of a window, as ONNX has them.
Result<std::vector<onnx::AttributeProto>> WindowOf(const Op& op);

// A part's form with these attributes.
Decomposition::Form FormOf(std::vector<onnx::AttributeProto> attributes);
onnx::AttributeProto TextAttribute(const std::string& name, const std::string& value);

}  // namespace rewire::compiler
