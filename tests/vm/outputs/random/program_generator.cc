// SPDX-License-Identifier: Apache-2.0
// Functions and whole programs; statement_writer.h has what is in them.
#include "rewire/tests/vm/outputs/random/program_generator.h"

#include <utility>

#include "rewire/tests/vm/outputs/random/statement_writer.h"

namespace rewire::test {
namespace generated {
namespace {

class ProgramWriter : private StatementWriter {
 public:
  ProgramWriter(std::uint64_t seed, ProgramStyle style) : StatementWriter(seed, style) {}

  RandomProgram Write() {
    program_.text = R"(
.device other = ext_dev:0
.device second = ext_dev:1
.const k4: f32[4] = {1.5, 2.5, 3.5, 4.5}
.const k6: f32[6] = {6, 5, 4, 3, 2, 1}
)";
    for (const auto& shape : kShapes) {
      const Type type = TensorOf(shape);
      program_.text += ".const " + ShapeConstant(type) + ": i64[" + std::to_string(shape.size()) + "] = {" +
                       Joined(shape, ", ") + "}\n";
    }
    for (const char* name : {"fill_1", "fill_2", "inc", "mean", "copy", "sum", "like", "two", "fill_all",
                             "give", "first", "next", "previous"}) {
      program_.text += std::string(".kernel ") + name + " = \"" + name + "\"\n";
    }
    program_.text += ".kernel inc_over = \"inc\" in_place\n";
    if (style_ != ProgramStyle::kUsual) program_.text += ".device third = vulkan:0\n.kernel dev_inc\n";
    if (style_ == ProgramStyle::kRecordable) {
      program_.text += Recordable();
      return std::move(program_);
    }
    const std::size_t helpers = dice_.Below(4);
    std::string body;
    for (std::size_t i = 0; i < helpers; ++i) body += dice_.Percent(20) ? Recursive(i) : Helper(i);
    program_.text += Main() + body;
    return std::move(program_);
  }

 private:
  // --- functions ---

  void Begin(const std::vector<Variable>& inputs, std::size_t budget) {
    code_.clear();
    scope_ = inputs;
    block_begin_ = inputs.size();
    depth_ = 0;
    budget_ = budget;
  }

  Type AnyResult() {
    if (dice_.Percent(60)) return AnyTensorType();
    return TupleOf(
        {AnyTensorType(), dice_.Percent(30) ? TupleOf({AnyTensorType(), AnyTensorType()}) : AnyTensorType()});
  }

  std::string Helper(std::size_t number) {
    FunctionInfo info{"f" + std::to_string(number), {}, AnyResult()};
    std::vector<Variable> inputs;
    std::string signature;
    for (std::size_t i = dice_.Below(3); i-- > 0;) {
      const Type type = dice_.Percent(80) ? AnyTensorType() : TupleOf({AnyTensorType(), AnyTensorType()});
      inputs.push_back({"%a" + std::to_string(i), type, false});
      info.inputs.push_back(type);
      signature += "a" + std::to_string(i) + ": " + (dice_.Percent(85) ? Text(type) : "value") + ", ";
    }
    info.inputs.push_back(kCondition);
    Begin(inputs, 8);
    Block(4);
    if (dice_.Percent(25)) {
      program_.branches = true;
      const std::string value = Integer(static_cast<std::int64_t>(dice_.Below(3)));
      Emit("if %c == " + value + " goto early else late");
      Label("early");
      const std::vector<Variable> outer = scope_;
      Emit("ret " + LastOrNew(info.result));
      scope_ = outer;
      Label("late");
    }
    Emit("ret " + LastOrNew(info.result));
    std::string result = dice_.Percent(85) ? Text(info.result) : "value";
    std::string text =
        ".func " + info.name + "(" + signature + "c: i64[]) -> " + result + "\n" + code_ + ".end\n";
    functions_.push_back(std::move(info));
    return text;
  }

  // Counts `i` down to zero.
  std::string Recursive(std::size_t number) {
    FunctionInfo info{"f" + std::to_string(number), {AnyTensorType(), kCondition, kCondition}, {}};
    info.result = dice_.Percent(70) ? AnyTensorType() : TupleOf({AnyTensorType(), AnyTensorType()});
    // Callers outside pass c for the counter too: at most two rounds.
    Begin({{"%a", info.inputs[0], false}}, 8);
    program_.calls = true;
    program_.branches = true;
    const std::string zero = Integer(0);
    Emit("if %i == " + zero + " goto base else more");
    Label("base");
    std::vector<Variable> outer = scope_;
    Emit("ret " + LastOrNew(info.result));
    scope_ = outer;
    Label("more");
    Block(3);
    const std::string j = AllocateCounter();
    Emit("invoke_packed previous(%i, " + j + "), outputs=1");
    Define("invoke " + info.name + "(" + Pick(info.inputs[0]) + ", " + j + ", %c)", info.result);
    if (dice_.Percent(60)) Block(2);
    Emit("ret " + LastOrNew(info.result));
    std::string text = ".func " + info.name + "(a: " + Text(info.inputs[0]) + ", i: i64[], c: i64[]) -> " +
                       Text(info.result) + "\n" + code_ + ".end\n";
    functions_.push_back(std::move(info));
    return text;
  }

  // Chooses what a result is made of: mostly the tensor made last.
  std::string LastOrNew(const Type& type) {
    if (type.kind == Type::kTuple) {
      std::string fields;
      for (const Type& field : type.fields) fields += (fields.empty() ? "" : ", ") + LastOrNew(field);
      return Tuple(fields);
    }
    for (std::size_t i = scope_.size(); i-- > 0 && dice_.Percent(70);) {
      if (scope_[i].type == type) {
        std::string name = scope_[i].name;
        // Once, as a rule: twice is a rule of its own.
        if (dice_.Percent(96)) scope_.erase(scope_.begin() + static_cast<std::ptrdiff_t>(i));
        return name;
      }
    }
    std::string made = dice_.Percent(85) ? Make(type) : Pick(type);
    if (type.kind != Type::kTensor || dice_.Percent(98)) return made;
    return Define("invoke_packed give(" + made + "), outputs=0", type);
  }

  // One leaf of main's result, or a tree of them.
  Type ResultTree(int levels, std::string* text) {
    const auto named = [this](const std::string& type) {
      return "y" + std::to_string(leaves_++) + ": " + type;
    };
    if (levels > 0 && dice_.Percent(levels == 3 ? 65 : 25)) {
      Type tuple = TupleOf({});
      std::string fields;
      for (std::size_t i = 1 + dice_.Below(3); i-- > 0;) {
        std::string field;
        tuple.fields.push_back(ResultTree(levels - 1, &field));
        fields += (fields.empty() ? "" : ", ") + field;
      }
      *text = "(" + fields + ")";
      return tuple;
    }
    const std::size_t kind = dice_.Below(100);
    if (kind < 4) {
      *text = named("value");
      return TupleOf({AnyTensorType(), AnyTensorType()});
    }
    Type type = kind < 8    ? Type{Type::kInteger, {}, {}, 0, 0}
                : kind < 12 ? Type{Type::kShape, {static_cast<std::int64_t>(1 + dice_.Below(2))}, {}, 0, 0}
                            : AnyTensorType();
    *text = named(kind > 94                     ? "value"
                  : kind > 90                   ? "f32[*]"
                  : type.kind == Type::kInteger ? "i64[]"
                                                : Text(type));
    return type;
  }

  std::string Main() {
    Begin({{"%x", TensorOf({4}), false},
           {"%y", TensorOf({6}), false},
           {"%t", TupleOf({TensorOf({4}), TensorOf({6})}), false}},
          16);
    std::string signature;
    const Type result = ResultTree(3, &signature);
    Block(8);
    if (dice_.Percent(15)) {
      program_.branches = true;
      Emit("if %c == " + Integer(1) + " goto early else late");
      Label("early");
      const std::vector<Variable> outer = scope_;
      Emit("ret " + LastOrNew(result));
      scope_ = outer;
      Label("late");
    }
    Emit("ret " + LastOrNew(result));
    return ".func main(x: f32[4], y: f32[6], t: (f32[4], f32[6]), c: i64[]) -> " + signature + "\n" + code_ +
           ".end\n";
  }

  // Work on one device between the inputs and the results.
  std::string Recordable() {
    Begin({}, 0);
    std::string fields;
    std::string signature;
    for (std::size_t leaf = 0, leaves = 1 + dice_.Below(3); leaf < leaves; ++leaf) {
      const bool x = dice_.Percent(50);
      const Type type = TensorOf({x ? 4 : 6});
      std::string device = "other";
      std::string there = NewName();
      Emit(there + " = device_copy " + (x ? "%x" : "%y") + ", cpu, other");
      OnDevices(&there, &device, type);
      const std::string back = NewName();
      Emit(back + " = device_copy " + there + ", other, cpu");
      if (dice_.Percent(50)) Emit("kill " + there);
      fields += (leaf == 0 ? "" : ", ") + back;
      signature += (leaf == 0 ? "y" : ", y") + std::to_string(leaf) + ": " + Text(type);
    }
    const std::string result = Tuple(fields);
    Emit("ret " + result);
    return ".func main(x: f32[4], y: f32[6], t: (f32[4], f32[6]), c: i64[]) -> (" + signature + ")\n" +
           code_ + ".end\n";
  }

  std::size_t leaves_ = 0;  // of main's result, named so far
};

}  // namespace
}  // namespace generated

RandomProgram GenerateProgram(std::uint64_t seed, ProgramStyle style) {
  return generated::ProgramWriter(seed, style).Write();
}

}  // namespace rewire::test
