// SPDX-License-Identifier: Apache-2.0
//
// Lowers a node as if other nodes stood in its place. For operators that are defined by other operators:
//
//   Decomposition parts(op);
//   const std::string x = parts.Add("DequantizeLinear", {parts.In(0), parts.In(1)});
//   op.Set(0, parts.ValueOf(parts.Add("Sigmoid", {x})));
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

class Decomposition {
 public:
  // The operator set of the parts, unless Add is told another one.
  static constexpr std::int64_t kOpset = 21;

  explicit Decomposition(Op& op) : op_(op), scope_(InnerScope(op.scope())) { scope_.of_model = false; }

  // The name of the node's input; "" if it is left out.
  std::string In(int i);
  std::string Name(Value* value);

  // The form of a part: what it has besides inputs. `copied` names attributes that it takes from the node,
  // where the node has them.
  struct Form {
    std::vector<onnx::AttributeProto> attributes;
    std::vector<std::string> copied;
    std::int64_t opset = kOpset;
    int outputs = 1;
  };
  // Lowers a part and returns the name of its first output. After a failure it does nothing more.
  std::string Add(const std::string& type, const std::vector<std::string>& inputs, const Form& form);
  std::string Add(const std::string& type, const std::vector<std::string>& inputs);

  // The value of a part's output. Check status() first.
  Value* ValueOf(const std::string& name) { return scope_.Find(name); }
  // The output behind the one of this name.
  static std::string Output(const std::string& name, int i);
  const Status& status() const { return status_; }

 private:
  Op& op_;
  Scope scope_;
  Status status_;
  int count_ = 0;
};

onnx::AttributeProto IntAttribute(const std::string& name, std::int64_t value);
onnx::AttributeProto IntsAttribute(const std::string& name, const std::vector<std::int64_t>& values);

}  // namespace rewire::compiler
