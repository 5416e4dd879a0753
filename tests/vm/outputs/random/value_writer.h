// SPDX-License-Identifier: Apache-2.0
// Writes the values of a random program's functions: how tensors, tuples and closures come into registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/vm/outputs/random/generated_type.h"
#include "rewire/tests/vm/outputs/random/program_generator.h"

namespace rewire::test::generated {

struct Variable {
  std::string name;
  Type type;
  bool fresh = false;  // surely a tensor that this function has made: it may be written
};

struct FunctionInfo {
  std::string name;
  std::vector<Type> inputs;  // the last one is c
  Type result;
};

inline const Type kCondition = {Type::kShape, {}, {}, 0, 0};  // i64[]

class ValueWriter {
 public:
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

 protected:
  ValueWriter(std::uint64_t seed, ProgramStyle style) : style_(style), dice_(seed) { program_.seed = seed; }
  ~ValueWriter() = default;

  // --- text ---

  void Emit(const std::string& line) { code_ += "  " + line + "\n"; }
  void Label(const std::string& label) { code_ += label + ":\n"; }
  std::string NewName() { return "%v" + std::to_string(next_name_++); }
  std::string NewLabel() { return "l" + std::to_string(next_name_++); }
  std::string Constant(const std::string& name) {
    std::string reg = NewName();
    Emit(reg + " = load_const " + name);
    return reg;
  }
  std::string Integer(std::int64_t value) {
    std::string reg = NewName();
    Emit(reg + " = load_consti " + std::to_string(value));
    return reg;
  }
  std::string Tuple(const std::string& fields, std::size_t tag = 0) {
    std::string reg = NewName();
    Emit(reg + " = alloc_adt tag=" + std::to_string(tag) + "(" + fields + ")");
    return reg;
  }
  std::string Args(const std::vector<Type>& types, std::size_t begin, std::size_t end) {
    std::string args;
    for (std::size_t i = begin; i < end; ++i) args += (args.empty() ? "" : ", ") + Pick(types[i]);
    return args;
  }

  // --- tensors ---

  // A tensor with memory of its own, not written yet.
  std::string Allocate(const Type& type) {
    const std::string dims = Text(type);
    std::string tensor = NewName();
    const std::string storage = NewName();
    switch (dice_.Below(6)) {
      case 0: {
        const std::string shape = Constant(ShapeConstant(type));
        Emit(storage + " = alloc_storage " + Integer(64) + ", alignment=64, f32, cpu");
        Emit(tensor + " = alloc_tensor_reg " + storage + ", _, " + shape + ", f32");
        break;
      }
      case 1:
        Emit(storage + " = alloc_storage " + Integer(128) + ", alignment=64, f32, cpu");
        Emit(tensor + " = alloc_tensor " + storage + ", " + Integer(64) + ", " + dims);
        break;
      default:
        Emit(storage + " = alloc_storage _, alignment=64, " + dims + ", cpu");
        Emit(tensor + " = alloc_tensor " + storage + ", _, " + dims);
        break;
    }
    return tensor;
  }
  std::string AllocateCounter() {
    const std::string storage = NewName();
    Emit(storage + " = alloc_storage _, alignment=64, i64[], cpu");
    std::string counter = NewName();
    Emit(counter + " = alloc_tensor " + storage + ", _, i64[]");
    return counter;
  }

  std::string AnyTensor() {
    std::vector<std::string> names;
    for (const Variable& variable : scope_) {
      if (variable.type.kind == Type::kTensor) names.push_back(variable.name);
    }
    return names.empty() ? Constant("k4") : dice_.Of(names);
  }

  // Some kernel writes all of the tensor, and nothing has read it before.
  void WriteTo(std::string tensor, const Type& type) {
    if (dice_.Percent(12)) {  // by way of a view
      const std::string view = NewName();
      Emit(view + " = reshape_tensor " + tensor + ", " + Constant(ShapeConstant(SameSize(type))));
      tensor = view;
    }
    switch (dice_.Below(20)) {
      case 0:  // an ADT is flattened: what the kernel writes cannot be told apart
        Emit("invoke_packed fill_all(" + Tuple(tensor) + "), outputs=1");
        break;
      case 1: {  // handed to a kernel that does not read it
        const std::string other = Allocate(type);
        Emit("invoke_packed like(" + tensor + ", " + other + "), outputs=1");
        Emit("invoke_packed copy(" + other + ", " + tensor + "), outputs=1");
        break;
      }
      case 2:
      case 3:
        Emit("invoke_packed fill_" + std::to_string(1 + dice_.Below(2)) + "(" + tensor + "), outputs=1");
        break;
      case 4:
        Emit("invoke_packed copy(" + AnyTensor() + ", " + tensor + "), outputs=1");
        break;
      case 5:
        Emit("invoke_packed sum(" + Tuple(AnyTensor() + ", " + AnyTensor()) + ", " + tensor + "), outputs=1");
        break;
      case 6:
      case 7:
      case 8:
        Emit("invoke_packed inc_over(" + AnyTensor() + ", " + tensor + "), outputs=1");
        break;
      case 9:
      case 10:
      case 11:
      case 12:
        Emit("invoke_packed inc(" + AnyTensor() + ", " + tensor + "), outputs=1");
        break;
      default:
        Emit("invoke_packed mean(" + AnyTensor() + ", " + AnyTensor() + ", " + tensor + "), outputs=1");
        break;
    }
  }

  Type AnyTensorType() { return TensorOf(dice_.Of(kShapes)); }
  Type SameSize(const Type& type) {
    for (;;) {
      Type other = AnyTensorType();
      if (Elements(other) == Elements(type)) return other;
    }
  }

  Variable NewTensor(const Type& type) {
    Variable made{Allocate(type), type, true};
    if (dice_.Percent(15) && depth_ < 4) {
      // In between: kills nothing that whoever asked for the tensor is about to use.
      const std::size_t outer = std::exchange(block_begin_, scope_.size());
      Statement();
      block_begin_ = outer;
    }
    WriteTo(made.name, type);
    scope_.push_back(made);
    return made;
  }

  // A register that holds such a value: one of the scope, or a new one.
  std::string Pick(const Type& type) {
    std::vector<std::string> names;
    for (const Variable& variable : scope_) {
      if (variable.type == type) names.push_back(variable.name);
    }
    if (!names.empty() && dice_.Percent(80)) return dice_.Of(names);
    return Make(type);
  }
  std::string Make(const Type& type) {
    switch (type.kind) {
      case Type::kTensor:
        return NewTensor(type).name;
      case Type::kShape:
        if (type.shape.empty()) return "%c";
        return Define("shape_of " + Pick(TensorOf(type.shape[0] == 1 ? kShapes[0] : kShapes[1])), type, true);
      case Type::kInteger:
        return Integer(static_cast<std::int64_t>(dice_.Below(3)));
      case Type::kTag:
        return Define("get_tag " + Tuple("", dice_.Below(3)), type);
      case Type::kTuple: {
        std::string fields = Args(type.fields, 0, type.fields.size());
        return Define("alloc_adt tag=" + std::to_string(dice_.Below(3)) + "(" + fields + ")", type);
      }
      case Type::kClosure: {
        const std::string captured = Args(functions_[type.function].inputs, 0, type.captured);
        return Define("alloc_closure " + functions_[type.function].name + "(" + captured + ")", type);
      }
    }
    return {};
  }
  std::string Define(const std::string& value, const Type& type, bool fresh = false) {
    std::string reg = NewName();
    Emit(reg + " = " + value);
    scope_.push_back({reg, type, fresh});
    return reg;
  }

  // Anything that a function can do; some of it between a tensor's making and its writing.
  virtual void Statement() = 0;

  const ProgramStyle style_;
  Dice dice_;
  RandomProgram program_;
  std::vector<FunctionInfo> functions_;  // that may be called
  // The state of the function that is being written:
  std::string code_;
  std::vector<Variable> scope_;
  std::size_t block_begin_ = 0;  // where the current block's own variables start
  int depth_ = 0;
  std::size_t budget_ = 0;  // statements left
  std::size_t next_name_ = 0;
};

}  // namespace rewire::test::generated
