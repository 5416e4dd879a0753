// SPDX-License-Identifier: Apache-2.0
// Calls of functions, closures and kernels, jumps, and the choice among instructions.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/static_program.h"
#include "rewire/executable_format/instruction.h"

namespace rewire::aot {
namespace {

using Kind = Value::Kind;

}  // namespace

Status StaticProgram::Step(State* state, Next* next) {
  const auto reg = [&](std::uint32_t word) -> Value& { return (*state)[code_[word]]; };
  switch (OpcodeOf(*code_)) {
    case Opcode::kMove: {
      Value value = reg(WordOf(Opcode::kMove, "src"));
      reg(WordOf(Opcode::kMove, "dst")) = std::move(value);
      return {};
    }
    case Opcode::kRet:
      *next = Next::kEnd;
      return Return(frame_, reg(WordOf(Opcode::kRet, "result")));
    case Opcode::kInvoke: {
      std::vector<Value> arguments;
      for (const std::uint32_t arg : ReadsView(code_ + WordOf(Opcode::kInvoke, "args"))) {
        arguments.push_back((*state)[arg]);
      }
      return Invoke(state, next, code_[WordOf(Opcode::kInvoke, "function")], std::move(arguments), true);
    }
    case Opcode::kInvokeClosure:
      return InvokeClosure(state, next);
    case Opcode::kInvokePacked:
      return InvokePacked(state, next);
    case Opcode::kAllocTensor: {
      const DimsView shape(code_ + WordOf(Opcode::kAllocTensor, "shape"));
      std::vector<std::int64_t> dims;
      for (std::uint32_t i = 0; i < shape.size(); ++i) dims.push_back(shape[i]);
      return AllocTensor(state, next, dims);
    }
    case Opcode::kAllocTensorReg: {
      std::vector<std::int64_t> dims;
      Status read = ReadShape(reg(WordOf(Opcode::kAllocTensorReg, "shape")), true, &dims, next);
      if (!read || *next == Next::kEnd) return read;
      return AllocTensor(state, next, dims);
    }
    case Opcode::kAllocADT:
      return AllocTuple(state, Kind::kAdt, code_[WordOf(Opcode::kAllocADT, "tag")],
                        code_ + WordOf(Opcode::kAllocADT, "fields"), code_[WordOf(Opcode::kAllocADT, "dst")]);
    case Opcode::kAllocClosure:
      return AllocTuple(state, Kind::kClosure, code_[WordOf(Opcode::kAllocClosure, "function")],
                        code_ + WordOf(Opcode::kAllocClosure, "captured"),
                        code_[WordOf(Opcode::kAllocClosure, "dst")]);
    case Opcode::kGetField: {
      const std::uint32_t object = code_[WordOf(Opcode::kGetField, "object")];
      const std::uint32_t index = code_[WordOf(Opcode::kGetField, "index")];
      if (Status kind = NeedKind(*state, object, Kind::kAdt, next); !kind || *next == Next::kEnd) return kind;
      const std::vector<Value>& fields = (*state)[object].fields;
      if (index >= fields.size()) {
        return Fails(StatusCode::kRuntimeFailed,
                     fmt::format("field {} asked for, the ADT has {} fields", index, fields.size()), next);
      }
      Value field = fields[index];
      reg(WordOf(Opcode::kGetField, "dst")) = std::move(field);
      return {};
    }
    case Opcode::kGetTag: {
      const std::uint32_t object = code_[WordOf(Opcode::kGetTag, "object")];
      if (Status kind = NeedKind(*state, object, Kind::kAdt, next); !kind || *next == Next::kEnd) return kind;
      const Number tag = (*state)[object].number;
      Value value = IntegerValue(static_cast<std::int32_t>(tag.value), true);
      value.number.known = tag.known;
      value.number.variable = tag.variable;
      reg(WordOf(Opcode::kGetTag, "dst")) = std::move(value);
      return {};
    }
    case Opcode::kIf:
      return Branch(state, next);
    case Opcode::kLoadConst: {
      const std::uint32_t index = code_[WordOf(Opcode::kLoadConst, "constant")];
      const Constant& constant = module_.constants[index];
      const Result<const Literals::Decoded*> decoded = literals_->Decode(index);
      if (!decoded) return Refuse(decoded.error().message());
      Value value;
      value.kind = Kind::kTensor;
      value.dtype = constant.type.dtype;
      value.dims = (*decoded)->dims;
      value.bytes = (*decoded)->bytes.size();
      value.is_read_only = true;
      value.place = {Place::Base::kConstant, index, 0};
      reg(WordOf(Opcode::kLoadConst, "dst")) = std::move(value);
      return {};
    }
    case Opcode::kGoto:
      *next = Next::kEnd;
      return Reach(frame_, pc_ + code_[WordOf(Opcode::kGoto, "target")], *state);
    case Opcode::kLoadConsti:
      reg(WordOf(Opcode::kLoadConsti, "dst")) =
          IntegerValue(DecodeInt64(code_ + WordOf(Opcode::kLoadConsti, "value")), false);
      return {};
    case Opcode::kFatal: {
      const std::uint32_t note = code_[WordOf(Opcode::kFatal, "note")];
      return Fails(StatusCode::kRuntimeFailed,
                   note == kNone ? "the program stopped itself" : module_.strings[note], next);
    }
    case Opcode::kAllocStorage:
      return AllocStorage(state, next);
    case Opcode::kShapeOf: {
      const Value& source = reg(WordOf(Opcode::kShapeOf, "tensor"));
      if (source.kind != Kind::kInteger) {
        const std::uint32_t tensor = code_[WordOf(Opcode::kShapeOf, "tensor")];
        if (Status kind = NeedKind(*state, tensor, Kind::kTensor, next); !kind || *next == Next::kEnd)
          return kind;
      }
      Value shape;
      shape.kind = Kind::kTensor;
      shape.dtype = kInt64;
      shape.dims = {static_cast<std::int64_t>(source.dims.size())};
      shape.bytes = source.dims.size() * 8;
      shape.is_unsure = true;  // a kernel may write it in the VM; here it is known and stays
      shape.place = {Place::Base::kLiteral, literals_->Add(kInt64, source.dims), 0};
      reg(WordOf(Opcode::kShapeOf, "dst")) = std::move(shape);
      return {};
    }
    case Opcode::kReshapeTensor:
      return Reshape(state, next);
    case Opcode::kDeviceCopy:
      return DeviceCopy(state, next);
    case Opcode::kKillRegister:
      reg(WordOf(Opcode::kKillRegister, "reg")) = {};
      return {};
  }
  return Refuse("the instruction is unknown");
}

// An ADT or a closure.
Status StaticProgram::AllocTuple(State* state, Kind kind, std::uint32_t number, const std::uint32_t* fields,
                                 std::uint32_t dst) {
  Value tuple;
  tuple.kind = kind;
  tuple.number.value = number;
  for (const std::uint32_t field : ReadsView(fields)) tuple.fields.push_back((*state)[field]);
  constexpr std::size_t kMostParts = 4096;
  std::size_t parts = 0;
  const auto count = [&](const Value&) { ++parts; };
  ForEachPart(tuple, count);
  if (parts > kMostParts) return Refuse("the value has too many parts; is it a list that grows?");
  (*state)[dst] = std::move(tuple);
  return {};
}

Status StaticProgram::Invoke(State* state, Next* next, std::uint32_t function, std::vector<Value> arguments,
                             bool carries_outputs) {
  Frame* const caller = frame_;
  const std::uint32_t pc = pc_;
  const std::uint32_t* const code = code_;
  if (caller->depth >= options_.depth) {
    return Fails(StatusCode::kDepthLimit, fmt::format("{} calls inside each other", options_.depth), next);
  }
  Frame* const callee = CalleeAt(caller, pc, function);
  if (instructions_ > options_.max_instructions) {
    return Refuse(fmt::format("with all calls expanded, there are more than {} instructions",
                              options_.max_instructions));
  }
  callee->caller_state = *state;
  if (pass_ == Pass::kStates) {
    std::vector<std::int32_t> destinations;
    const FunctionPlan& plan = plans_[caller->function];
    const std::uint32_t site = plan.SiteAt(pc);
    if (carries_outputs && site != FunctionPlan::kNotRewired) {
      for (const std::uint32_t leaf : plan.calls[site - 1]) {
        destinations.push_back(leaf == FunctionPlan::kNotRewired || leaf > caller->destinations.size()
                                   ? Frame::kNowhere
                                   : caller->destinations[leaf - 1]);
      }
    }
    if (callee->entries.empty() || callee->arguments != arguments || callee->destinations != destinations) {
      callee->arguments = std::move(arguments);
      callee->destinations = std::move(destinations);
      if (Status ran = RunFrame(callee); !ran) return ran;
    }
  } else {
    if (Status walked = WalkFrame(callee); !walked) return walked;
    if (pass_ == Pass::kSource) EmitLabel(LabelOf(callee, kReturn));
  }
  frame_ = caller;
  pc_ = pc;
  code_ = code;
  fresh_.clear();
  if (!callee->result) {
    *next = Next::kEnd;
    return {};
  }
  const Opcode op = OpcodeOf(*code_);
  (*state)[code_[op == Opcode::kInvoke ? WordOf(Opcode::kInvoke, "dst")
                                       : WordOf(Opcode::kInvokeClosure, "dst")]] = *callee->result;
  return {};
}

Status StaticProgram::InvokeClosure(State* state, Next* next) {
  constexpr Opcode kOp = Opcode::kInvokeClosure;
  const std::uint32_t closure_register = code_[WordOf(kOp, "closure")];
  if (Status kind = NeedKind(*state, closure_register, Kind::kClosure, next); !kind || *next == Next::kEnd) {
    return kind;
  }
  const Value& closure = (*state)[closure_register];
  std::vector<Value> arguments = closure.fields;
  for (const std::uint32_t arg : ReadsView(code_ + WordOf(kOp, "args"))) arguments.push_back((*state)[arg]);
  const auto function = static_cast<std::uint32_t>(closure.number.value);
  const std::size_t expected = module_.functions[function].inputs.size();
  if (arguments.size() != expected) {
    return Fails(StatusCode::kRuntimeFailed,
                 fmt::format("the closure of {} takes {} arguments with its captured values, given {}",
                             module_.functions[function].name, expected, arguments.size()),
                 next);
  }
  return Invoke(state, next, function, std::move(arguments), false);
}

Status StaticProgram::InvokePacked(State* state, Next* next) {
  constexpr Opcode kOp = Opcode::kInvokePacked;
  const std::uint32_t index = code_[WordOf(kOp, "kernel")];
  const KernelImport& import = module_.kernels[index];
  KernelCall call{import, index, {}, code_[WordOf(kOp, "outputs")]};
  const bool objects = (import.flags & kKernelObjects) != 0;
  if (code_[WordOf(kOp, "dst")] != kNone) {
    return Refuse(fmt::format("kernel {} returns a value, which has no static memory", import.name));
  }
  if (!objects && ComputeNow(state, import)) return {};
  std::vector<Value> given;
  for (const std::uint32_t arg : ReadsView(code_ + WordOf(kOp, "args"))) {
    const Value& value = (*state)[arg];
    if (value.kind == Kind::kAdt && objects) {
      return Refuse(fmt::format("kernel {} takes an ADT as an object", import.name));
    }
    if (value.kind != Kind::kAdt) {
      given.push_back(value);
      continue;
    }
    for (const Value& field : value.fields) {
      if (field.kind == Kind::kAdt) {
        return Fails(StatusCode::kRuntimeFailed, "a field of an ADT argument is an ADT itself", next);
      }
      given.push_back(field);
    }
  }
  for (Value& value : given) {
    if (value.kind == Kind::kInteger && !objects) {
      if (!value.number.known && value.is_narrow) {
        return Refuse("a kernel reads a tag that is known only when the program runs");
      }
      value = BoxInteger(value);
    }
    if (value.kind != Kind::kTensor && value.kind != Kind::kInteger) {
      return Fails(StatusCode::kRuntimeFailed,
                   "an argument is a closure or a storage, which kernels do not take", next);
    }
  }
  if (call.outputs > given.size()) {
    return Fails(StatusCode::kRuntimeFailed,
                 fmt::format("{} outputs declared, {} arguments given", call.outputs, given.size()), next);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool written = i >= given.size() - call.outputs ||
                         std::binary_search(import.also_written.begin(), import.also_written.end(), i);
    if (written && given[i].kind == Kind::kTensor) {
      if (given[i].is_unsure)
        return Refuse(fmt::format("argument {} may be memory that cannot be written", i));
      if (given[i].is_read_only) {
        return Fails(StatusCode::kRuntimeFailed, fmt::format("argument {} is written, but is read-only", i),
                     next);
      }
    }
    const DLDataType dtype = given[i].dtype;
    if (given[i].kind == Kind::kTensor && import.alignment > ElementBytes({dtype.code, dtype.bits, 1})) {
      return Refuse(
          fmt::format("kernel {} needs memory that is aligned to {} bytes, and only that of an element is "
                      "certain",
                      import.name, import.alignment));
    }
    CallArgument argument{given[i], {}, written};
    if (given[i].kind == Kind::kTensor && aot::ElementsOf(given[i].dims) <= CallArgument::kMostKnown) {
      argument.integers = ElementsOf(given[i]);
      argument.floats = FloatsOf(given[i]);
    }
    call.arguments.push_back(std::move(argument));
  }
  most_arguments_ = std::max(most_arguments_, static_cast<std::uint32_t>(given.size()));
  // With one output that has no elements there is nothing to compute.
  const bool is_skipped = call.outputs == 1 && import.also_written.empty() && !objects && !given.empty() &&
                          given.back().kind == Kind::kTensor && aot::ElementsOf(given.back().dims) == 0;
  if (is_skipped) return {};
  if (Status placed = PlaceWorkspace(*state, &call); !placed) return placed;
  if (pass_ == Pass::kMemory) NoteInPlace(*state, call);
  if (pass_ != Pass::kSource) return {};
  for (CallArgument& argument : call.arguments) {
    if (!calls_->Reads(call, static_cast<std::size_t>(&argument - call.arguments.data()))) continue;
    argument.text = argument.value.kind == Kind::kTensor ? Address(argument.value.place)
                                                         : NumberText(argument.value.number);
  }
  std::string setup;
  const Result<std::string> text = calls_->Call(call, &setup);
  if (!text) return Refuse(text.error().message());
  if (!setup.empty()) Emit(setup);
  if (text->empty()) return {};
  Emit(fmt::format("  if ({} != 0) {{", *text));
  EmitFailure(StatusCode::kKernelFailed, Where() + ": the kernel failed", "    ");
  Emit("  }");
  return {};
}

// Gives the kernel memory that holds something during the call alone: beside all that is still of use
// afterwards, and beside the arguments.
Status StaticProgram::PlaceWorkspace(const State& state, KernelCall* call) {
  const std::uint64_t bytes = calls_->WorkspaceBytes(*call);
  if (bytes == 0) return {};
  const std::uint32_t site = SiteHere(bytes);
  if (pass_ == Pass::kMemory) {
    sites_[site].is_used = true;
    if (Status noted = NoteLive(site, state); !noted) return noted;
    for (const CallArgument& argument : call->arguments) NoteBeside(site, argument.value.place);
  }
  call->workspace = Address({Place::Base::kStorage, site, 0});
  return {};
}

Status StaticProgram::Branch(State* state, Next* next) {
  constexpr Opcode kOp = Opcode::kIf;
  Number numbers[2];
  std::string texts[2];
  const char* const operands[2] = {"test", "target"};
  for (int i = 0; i < 2; ++i) {
    const Value& value = (*state)[code_[i == 0 ? WordOf(kOp, "test") : WordOf(kOp, "target")]];
    Status read = ReadInteger(value, operands[i], &numbers[i], &texts[i], next);
    if (!read || *next == Next::kEnd) return read;
  }
  *next = Next::kEnd;
  const std::uint32_t targets[2] = {pc_ + code_[WordOf(kOp, "if_true")],
                                    pc_ + code_[WordOf(kOp, "if_false")]};
  if (numbers[0].known && numbers[1].known) {
    return Reach(frame_, targets[numbers[0].value == numbers[1].value ? 0 : 1], *state);
  }
  if (pass_ == Pass::kSource) Emit(fmt::format("  if ({} == {}) {{", texts[0], texts[1]));
  if (Status reached = Reach(frame_, targets[0], *state); !reached) return reached;
  if (pass_ == Pass::kSource) Emit("  }");
  return Reach(frame_, targets[1], *state);
}

}  // namespace rewire::aot
