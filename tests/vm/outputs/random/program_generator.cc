// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/outputs/random/program_generator.h"

#include <algorithm>
#include <utility>

namespace rewire::test {
namespace {

// What the generator knows of a register; signatures may say less.
struct Type {
  enum Kind : std::uint8_t { kTensor, kShape, kInteger, kTag, kTuple, kClosure };
  Kind kind = kTensor;
  std::vector<std::int64_t> shape;  // kTensor: f32; kShape: {rank}, i64
  std::vector<Type> fields;         // kTuple
  std::uint32_t function = 0;       // kClosure
  std::uint32_t captured = 0;

  bool operator==(const Type& other) const {
    return kind == other.kind && shape == other.shape && fields == other.fields &&
           function == other.function && captured == other.captured;
  }
};

const std::vector<std::vector<std::int64_t>> kShapes = {{4}, {2, 2}, {1, 4}, {6}, {2, 3}, {3, 2}};

Type TensorOf(std::vector<std::int64_t> shape) { return {Type::kTensor, std::move(shape), {}, 0, 0}; }
Type TupleOf(std::vector<Type> fields) { return {Type::kTuple, {}, std::move(fields), 0, 0}; }

std::int64_t Elements(const Type& type) {
  std::int64_t count = 1;
  for (const std::int64_t dim : type.shape) count *= dim;
  return count;
}

std::string Joined(const std::vector<std::int64_t>& dims, const char* between) {
  std::string text;
  for (const std::int64_t dim : dims) text += (text.empty() ? "" : between) + std::to_string(dim);
  return text;
}

std::string ShapeConstant(const Type& type) { return "shape_" + Joined(type.shape, "_"); }

std::string Text(const Type& type) {
  switch (type.kind) {
    case Type::kTensor:
      return "f32[" + Joined(type.shape, ", ") + "]";
    case Type::kShape:
      return "i64[" + Joined(type.shape, ", ") + "]";
    case Type::kInteger:
    case Type::kTag:
      return "integer";
    case Type::kClosure:
      return "closure";
    case Type::kTuple: {
      std::string text;
      for (const Type& field : type.fields) text += (text.empty() ? "" : ", ") + Text(field);
      return "(" + text + ")";
    }
  }
  return {};
}

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

const Type kCondition = {Type::kShape, {}, {}, 0, 0};  // i64[]

class ProgramWriter {
 public:
  explicit ProgramWriter(std::uint64_t seed) : dice_(seed) { program_.seed = seed; }

  RandomProgram Write() {
    program_.text = R"(
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
    const std::size_t helpers = dice_.Below(4);
    std::string body;
    for (std::size_t i = 0; i < helpers; ++i) body += dice_.Percent(20) ? Recursive(i) : Helper(i);
    program_.text += Main() + body;
    return std::move(program_);
  }

 private:
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

  // What a result is made of: mostly the tensor made last.
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

  Dice dice_;
  RandomProgram program_;
  std::vector<FunctionInfo> functions_;  // that may be called
  // Of the function that is being written:
  std::string code_;
  std::vector<Variable> scope_;
  std::size_t block_begin_ = 0;  // where the current block's own variables start
  int depth_ = 0;
  std::size_t budget_ = 0;  // statements left
  std::size_t leaves_ = 0;  // named so far
  std::size_t next_name_ = 0;
};

}  // namespace

RandomProgram GenerateProgram(std::uint64_t seed) { return ProgramWriter(seed).Write(); }

}  // namespace rewire::test
