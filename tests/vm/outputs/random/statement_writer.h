// SPDX-License-Identifier: Apache-2.0
// Writes the statements of one function of a random program after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/outputs/random/generated_type.h"
#include "tests/vm/outputs/random/program_generator.h"

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

class StatementWriter {
 protected:
  explicit StatementWriter(std::uint64_t seed) : dice_(seed) { program_.seed = seed; }

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

  // --- statements ---

  void Block(std::size_t most) {
    const std::size_t outer = std::exchange(block_begin_, scope_.size());
    ++depth_;
    for (std::size_t i = 1 + dice_.Below(most); i-- > 0;) Statement();
    --depth_;
    block_begin_ = outer;
  }

  void Statement() {
    if (budget_ == 0) return;
    --budget_;
    const std::size_t kind = dice_.Below(100);
    if (kind < 34) {
      NewTensor(AnyTensorType());
    } else if (kind < 41) {
      Branch();
    } else if (kind < 44) {
      Loop();
    } else if (kind < 53) {
      Call();
    } else if (kind < 57) {
      CallClosure();
    } else {
      Plain(kind);
    }
  }

  void Plain(std::size_t kind) {
    if (scope_.empty()) return;
    const Variable some = dice_.Of(scope_);
    const bool tensor = some.type.kind == Type::kTensor;
    if (kind < 64 && tensor) {
      const Type type = SameSize(some.type);
      Define("reshape_tensor " + some.name + ", " + Constant(ShapeConstant(type)), type, some.fresh);
    } else if (kind < 68) {
      Define("move " + some.name, some.type, some.fresh);
    } else if (kind < 72 && tensor) {
      Define("device_copy " + some.name + ", cpu, cpu", some.type, true);
    } else if (kind < 75 && tensor) {
      Define("shape_of " + some.name,
             {Type::kShape, {static_cast<std::int64_t>(some.type.shape.size())}, {}, 0, 0}, true);
    } else if (kind < 81) {
      Make(TupleOf({some.type, dice_.Of(scope_).type}));
    } else if (kind < 85) {
      ReadTuple();
    } else if (kind < 88 && tensor) {
      Define("invoke_packed give(" + some.name + "), outputs=0", some.type);
    } else if (kind < 90) {
      const bool small = dice_.Percent(50);
      Define(std::string("load_const ") + (small ? "k4" : "k6"), TensorOf({small ? 4 : 6}));
    } else if (kind < 93 && tensor && some.fresh) {
      Emit("invoke_packed mean(" + some.name + ", " + AnyTensor() + ", " + some.name + "), outputs=1");
    } else if (kind < 95) {
      Kill();
    } else if (kind < 97) {
      Trap();
    } else {
      Overwrite();
    }
  }

  void ReadTuple() {
    std::vector<Variable> tuples;
    for (const Variable& variable : scope_) {
      if (variable.type.kind == Type::kTuple) tuples.push_back(variable);
    }
    if (tuples.empty()) return;
    const Variable tuple = dice_.Of(tuples);
    if (dice_.Percent(25)) {
      Define("get_tag " + tuple.name, {Type::kTag, {}, {}, 0, 0});
      return;
    }
    const std::size_t index = dice_.Below(tuple.type.fields.size());
    Define("get_field " + tuple.name + ", index=" + std::to_string(index), tuple.type.fields[index]);
  }

  // Only what this block has made: another round of a loop may need the rest.
  void Kill() {
    if (scope_.size() <= block_begin_) return;
    const std::size_t index = block_begin_ + dice_.Below(scope_.size() - block_begin_);
    Emit("kill " + scope_[index].name);
    scope_.erase(scope_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // A place that stops the program, which no run reaches.
  void Trap() {
    const std::string trap = NewLabel();
    const std::string on = NewLabel();
    const std::string never = Integer(7);
    Emit("if %c == " + never + " goto " + trap + " else " + on);
    Label(trap);
    Emit("fatal \"never\"");
    Label(on);
    program_.branches = true;
  }

  // A register that is in use gets another tensor of its type.
  void Overwrite() {
    std::vector<std::size_t> tensors;
    for (std::size_t i = 0; i < scope_.size(); ++i) {
      if (scope_[i].type.kind == Type::kTensor) tensors.push_back(i);
    }
    if (tensors.empty()) return;
    const std::size_t index = dice_.Of(tensors);
    const Type type = scope_[index].type;
    const std::string made = Pick(type);
    const auto source = std::find_if(scope_.begin(), scope_.end(),
                                     [&](const Variable& variable) { return variable.name == made; });
    scope_[index].fresh = scope_[index].fresh && source->fresh && depth_ <= 1;
    Emit(scope_[index].name + " = move " + made);
  }

  // Both arms leave a tensor in one register.
  void Branch() {
    if (depth_ > 3) return;
    program_.branches = true;
    const std::string yes = NewLabel();
    const std::string no = NewLabel();
    const std::string done = NewLabel();
    const std::string joined = NewName();
    const Type type = AnyTensorType();
    const std::string value = Integer(static_cast<std::int64_t>(dice_.Below(3)));
    Emit("if %c == " + value + " goto " + yes + " else " + no);
    const std::vector<Variable> outer = scope_;
    for (const std::string& label : {yes, no}) {
      Label(label);
      Block(3);
      Emit(joined + " = move " + Pick(type));
      if (label == yes) Emit("goto " + done);
      scope_ = outer;
      // An arm may have put what is not fresh into an outer register.
      for (Variable& variable : scope_) variable.fresh = false;
    }
    Label(done);
    scope_.push_back({joined, type, false});
  }

  // One to three rounds, with or without a tensor carried from one to the next.
  void Loop() {
    if (depth_ > 2) return;
    program_.loops = true;
    const std::string again = NewLabel();
    const std::string done = NewLabel();
    const std::string carried = NewName();
    const Type type = AnyTensorType();
    const bool carries = dice_.Percent(60);
    if (carries) Emit(carried + " = move " + Pick(type));
    const std::string rounds = Integer(1 + static_cast<std::int64_t>(dice_.Below(3)));
    const std::string i = AllocateCounter();
    Emit("invoke_packed first(" + i + "), outputs=1");
    for (Variable& variable : scope_) variable.fresh = false;  // the body may put other values there
    const std::vector<Variable> outer = scope_;
    if (carries) scope_.push_back({carried, type, false});
    Label(again);
    Block(4);
    if (carries && dice_.Percent(50)) {  // two buffers that take turns
      const std::string made = Allocate(type);
      Emit("invoke_packed mean(" + carried + ", " + AnyTensor() + ", " + made + "), outputs=1");
      Emit(carried + " = move " + made);
    } else if (carries) {
      Emit(carried + " = move " + Pick(type));
    }
    const std::string j = AllocateCounter();
    Emit("invoke_packed next(" + i + ", " + j + "), outputs=1");
    Emit(i + " = move " + j);
    Emit("if " + i + " == " + rounds + " goto " + done + " else " + again);
    Label(done);
    if (dice_.Percent(50)) {
      scope_ = outer;
      if (carries) scope_.push_back({carried, type, false});
    }
    for (Variable& variable : scope_) variable.fresh = false;
  }

  void Call() {
    if (functions_.empty()) return;
    program_.calls = true;
    const FunctionInfo callee = dice_.Of(functions_);
    const std::string args = Args(callee.inputs, 0, callee.inputs.size());
    Define("invoke " + callee.name + "(" + args + ")", callee.result);
  }

  void CallClosure() {
    if (functions_.empty()) return;
    program_.calls = true;
    const auto index = static_cast<std::uint32_t>(dice_.Below(functions_.size()));
    const FunctionInfo callee = functions_[index];
    const auto captured = static_cast<std::uint32_t>(dice_.Below(callee.inputs.size()));
    const std::string closure = Pick({Type::kClosure, {}, {}, index, captured});
    const std::string args = Args(callee.inputs, captured, callee.inputs.size());
    Define("invoke_closure " + closure + "(" + args + ")", callee.result);
  }

  Dice dice_;
  RandomProgram program_;
  std::vector<FunctionInfo> functions_;  // that may be called
  // Of the function that is being written:
  std::string code_;
  std::vector<Variable> scope_;
  std::size_t block_begin_ = 0;  // where the current block's own variables start
  int depth_ = 0;
  std::size_t budget_ = 0;  // statements left
  std::size_t next_name_ = 0;
};

}  // namespace rewire::test::generated
