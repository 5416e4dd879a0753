// SPDX-License-Identifier: Apache-2.0
// Writes the statements of one function of a random program after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/vm/outputs/random/value_writer.h"

namespace rewire::test::generated {

class StatementWriter : protected ValueWriter {
 protected:
  using ValueWriter::ValueWriter;
  ~StatementWriter() = default;

  void Block(std::size_t most) {
    const std::size_t outer = std::exchange(block_begin_, scope_.size());
    ++depth_;
    for (std::size_t i = 1 + dice_.Below(most); i-- > 0;) Statement();
    --depth_;
    block_begin_ = outer;
  }

  void Statement() override {
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
    if (style_ == ProgramStyle::kDevices && tensor && dice_.Percent(50)) {
      WorkOnDevices(some);
      return;
    }
    if (kind < 64 && tensor) {
      const Type type = SameSize(some.type);
      Define("reshape_tensor " + some.name + ", " + Constant(ShapeConstant(type)), type, some.fresh);
    } else if (kind < 68) {
      Define("move " + some.name, some.type, some.fresh);
    } else if (kind < 72 && tensor) {
      CopyBetweenDevices(some);
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

  // On the host, or to one or two other devices and back.
  void CopyBetweenDevices(const Variable& tensor) {
    if (dice_.Percent(50)) {
      Define("device_copy " + tensor.name + ", cpu, cpu", tensor.type, true);
      return;
    }
    std::string there = NewName();
    Emit(there + " = device_copy " + tensor.name + ", cpu, other");
    Type type = tensor.type;
    if (dice_.Percent(30)) {
      type = SameSize(type);
      const std::string view = NewName();
      Emit(view + " = reshape_tensor " + there + ", " + Constant(ShapeConstant(type)));
      there = view;
    }
    if (dice_.Percent(30)) {
      const std::string copy = NewName();
      Emit(copy + " = device_copy " + there + ", other, other");
      there = copy;
    }
    std::string device = "other";
    if (dice_.Percent(30)) {
      const std::string further = NewName();
      Emit(further + " = device_copy " + there + ", other, second");
      there = further;
      device = "second";
    }
    Define("device_copy " + there + ", " + device + ", cpu", type, true);
  }

  // A copy of a tensor on the host that is let go while it is still read, some work on devices, and a copy
  // back. What the work has used may be let go before it is done.
  void WorkOnDevices(const Variable& tensor) {
    std::string here = tensor.name;
    const bool own = dice_.Percent(60);
    if (own) {
      here = Allocate(tensor.type);
      Emit("invoke_packed inc(" + tensor.name + ", " + here + "), outputs=1");
    }
    std::string device = AnyDevice();
    std::string there = NewName();
    Emit(there + " = device_copy " + here + ", cpu, " + device);
    if (own && dice_.Percent(70)) Emit("kill " + here);
    OnDevices(&there, &device, tensor.type);
    const std::string back = Define("device_copy " + there + ", " + device + ", cpu", tensor.type, true);
    if (dice_.Percent(60)) Emit("kill " + there);
    if (dice_.Percent(15)) {
      Emit("kill " + back);
      scope_.pop_back();
    }
  }

  std::string AnyDevice() {
    if (style_ == ProgramStyle::kRecordable) return "other";
    static const std::vector<std::string> kNames = {"other", "second", "third"};
    return dice_.Of(kNames);
  }

  // Steps of work on a tensor of a device.
  void OnDevices(std::string* there, std::string* device, const Type& type) {
    for (std::size_t i = dice_.Below(4); i-- > 0;) {
      const std::string next = NewName();
      const std::string before = *there;
      if (dice_.Percent(60)) {
        const std::string storage = NewName();
        Emit(storage + " = alloc_storage _, alignment=64, " + Text(type) + ", " + *device);
        Emit(next + " = alloc_tensor " + storage + ", _, " + Text(type));
        if (dice_.Percent(50)) Emit("kill " + storage);
        Emit("invoke_packed dev_inc(" + before + ", " + next + "), outputs=1");
      } else {
        const std::string target = AnyDevice();
        Emit(next + " = device_copy " + before + ", " + *device + ", " + target);
        *device = target;
      }
      if (dice_.Percent(50)) Emit("kill " + before);
      *there = next;
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
};

}  // namespace rewire::test::generated
