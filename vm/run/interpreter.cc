// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/interpreter.h"

#include <cstring>
#include <exception>
#include <type_traits>

#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/vm/run/interpreter_alloc.h"

namespace rewire {
namespace {

// Word of an operand: `At<Opcode::kMove>("src")` is a constant.
#define REWIRE_AT(op, operand) (std::integral_constant<std::uint32_t, WordOf(Opcode::op, operand)>::value)

// The bytes of one tensor, to be compared with those of others.
class Extent {
 public:
  REWIRE_INLINE explicit Extent(const TensorObject& tensor)
      : before_(std::uintptr_t{tensor.bytes} - 1),
        last_(reinterpret_cast<std::uintptr_t>(tensor.tensor.data) + before_) {}

  // Whether it shares a byte with the other tensor. If one of them has none, the answer may be yes too. It
  // takes a single comparison: it begins less than its own size before the other one, and less than the
  // other's size behind that one's first byte.
  REWIRE_INLINE bool MayOverlap(const TensorObject& other) const {
    return last_ - reinterpret_cast<std::uintptr_t>(other.tensor.data) < other.bytes + before_;
  }

 private:
  std::uintptr_t before_;  // size minus one
  std::uintptr_t last_;    // address of the last byte
};

// The words of an instruction, but for the elements of a list. A list is the last operand and has its count
// before it.
constexpr std::uint32_t FixedWords(Opcode opcode) {
  std::uint32_t words = 1;
  for (std::size_t i = 0; i < Info(opcode).operand_count; ++i) {
    const OperandKind kind = Info(opcode).operands[i].kind;
    if (IsList(kind) && i + 1 != Info(opcode).operand_count)
      isa_internal::RefuseToCompile("a list is the last operand");
    words += IsList(kind) ? 1 : OperandWords(kind);
  }
  return words;
}

// The instruction after one of this opcode.
template <Opcode kOpcode>
REWIRE_INLINE const std::uint32_t* After(const std::uint32_t* pc) {
  constexpr std::uint32_t kFixed = FixedWords(kOpcode);
  constexpr OperandKind kLast = Info(kOpcode).operands[Info(kOpcode).operand_count - 1].kind;
  pc += kFixed;
  if constexpr (IsList(kLast)) pc += std::size_t{pc[-1]} * OperandWords(kLast);
  return pc;
}

// Copies the registers that `reads` names, up to `last`: a call's arguments but the last, which is `out`.
// Returns false if one holds no tensor. Adds their addresses to the bits of `addresses`, for the alignment,
// and notes in `overlap` if one may share memory with `out`. Only kernels whose arguments must lie `apart`
// have them compared.
template <bool kApart>
REWIRE_INLINE bool Gather(const RewireFFIAny* registers, const std::uint32_t* reads,
                          const std::uint32_t* last, const TensorObject& out, RewireFFIAny* args,
                          std::uintptr_t* addresses, bool* overlap) {
  const Extent extent(out);
  for (; reads != last; ++reads, ++args) {
    const RewireFFIAny& value = registers[*reads];
    if (REWIRE_UNLIKELY(value.type_index != kTensorKind)) return false;
    *addresses |= reinterpret_cast<std::uintptr_t>(TensorOf(value)->tensor.data);
    if (kApart) *overlap |= extent.MayOverlap(*TensorOf(value));
    // Not copied whole: a CPU waits that reads at once what was just written in two parts.
    *args = MakeAny(kTensorKind, TensorOf(value));
  }
  return true;
}

// Looks at the written arguments [begin, end) too. False if one may not be written, or has no elements.
__attribute__((noinline)) bool LookAtOutputs(const RewireFFIAny* args, std::uint32_t begin, std::uint32_t end,
                                             bool* overlap) {
  for (std::uint32_t i = begin; i < end; ++i) {
    if ((TensorOf(args[i])->flags & TensorObject::kNotPlain) != 0) return false;
    const Extent written(*TensorOf(args[i]));
    for (std::uint32_t k = 0; k < i; ++k) *overlap |= written.MayOverlap(*TensorOf(args[k]));
  }
  return true;
}

// True if the one written argument, the last, shares memory only with arguments that it exactly covers, and
// its kernel works in place on these. Most calls with shared memory are such, so they are told quickly.
__attribute__((noinline)) bool IsInPlace(const LinkedKernel& kernel, const RewireFFIAny* args,
                                         std::uint32_t count, std::uint32_t outputs) {
  if (outputs != 1) return false;
  const TensorObject& out = *TensorOf(args[count - 1]);
  const Extent extent(out);
  std::uint32_t may = kernel.in_place;
  for (std::uint32_t k = 0; k + 1 < count; ++k, may >>= 1) {
    const TensorObject& in = *TensorOf(args[k]);
    if (!extent.MayOverlap(in)) continue;
    const bool covered = in.tensor.data == out.tensor.data && in.bytes == out.bytes;
    if (!covered || (may & 1) == 0) return false;
  }
  return true;
}

}  // namespace

// A call that passes tensors only, of which it writes the last ones, and whose kernel is plain. All other
// calls take the slow path. `kOneOutput`: the call writes one, and there is no register for a returned value.
template <bool kOneOutput>
REWIRE_INLINE bool Interpreter::CallFastPath(const Word* pc, RewireFFIAny* registers,
                                             const LinkedKernel& kernel) {
  // Read where it is needed, so that no place on the stack keeps it.
  const auto count = [pc] { return pc[REWIRE_AT(kInvokePacked, "args")]; };
  const Word* const reads = pc + REWIRE_AT(kInvokePacked, "args") + 1;
  RewireFFIAny* args = vm_.run.args.data();  // room for max_args was made when the run began
  // Most calls write one argument. It is there: the verifier has looked (flow.outputs).
  const Word outputs = kOneOutput ? 1 : pc[REWIRE_AT(kInvokePacked, "outputs")];
  if (!kOneOutput && outputs - 1 >= count()) return CallKernelSlowPath(pc);
  // The last argument, mostly the only written one, is compared with the others on the way.
  const Word* const last = reads + (count() - 1);
  const RewireFFIAny& written = Reg(registers, *last);
  if (REWIRE_UNLIKELY(written.type_index != kTensorKind)) return CallKernelSlowPath(pc);
  const TensorObject& out = *TensorOf(written);
  args[count() - 1] = MakeAny(kTensorKind, TensorOf(written));
  auto addresses = reinterpret_cast<std::uintptr_t>(out.tensor.data);
  bool overlap = false;
  const bool tensors = kernel.apart ? Gather<true>(registers, reads, last, out, args, &addresses, &overlap)
                                    : Gather<false>(registers, reads, last, out, args, &addresses, &overlap);
  if (REWIRE_UNLIKELY(!tensors || (addresses & kernel.alignment_mask) != 0)) return CallKernelSlowPath(pc);
  if (REWIRE_UNLIKELY((out.flags & TensorObject::kNotPlain) != 0)) return CallKernelSlowPath(pc);
  if (!kOneOutput && outputs != 1) {
    bool others = false;
    if (!LookAtOutputs(args, count() - outputs, count() - 1, &others)) return CallKernelSlowPath(pc);
    overlap = overlap || others;
  }
  if (REWIRE_UNLIKELY(overlap) && kernel.apart && !IsInPlace(kernel, args, count(), outputs)) {
    pc_ = pc;
    if (!CheckOverlaps(kernel, count(), outputs)) return false;
  }
  if (const std::uint32_t interrupts = vm_.interrupts.flags(); REWIRE_UNLIKELY(interrupts != 0)) {
    if ((interrupts & Interrupts::kObserved) != 0) return CallKernelSlowPath(pc);
    pc_ = pc;
    if (!CheckBeforeCall(count(), count() - outputs)) return false;
  }
  vm_.current_call = pc;
  RewireFFIAny returned{};
  const PackedFunction& function = kernel.function;
  const auto given = static_cast<std::int32_t>(count());
  if (REWIRE_UNLIKELY(function.call(function.handle, vm_.run.args.data(), given, &returned) != 0)) {
    pc_ = pc;
    return FailKernel(pc[REWIRE_AT(kInvokePacked, "kernel")]);
  }
  // Nothing returned, nothing to release, no register for a result: one test of all four.
  static_assert(kRewireFFINone == 0 && kNone + 1 == 0);
  const Word result = kOneOutput ? 0 : pc[REWIRE_AT(kInvokePacked, "dst")] + 1;
  const std::uint32_t rest = static_cast<std::uint32_t>(returned.type_index) | vm_.run.temporaries.size() |
                             vm_.run.workspaces.size() | result;
  if (REWIRE_LIKELY(rest == 0)) return true;
  pc_ = pc;
  return FinishKernel(returned);
}

bool Interpreter::CallGeneral(const Word* pc, RewireFFIAny* registers, const LinkedKernel& kernel) {
  return kernel.plain ? CallFastPath<false>(pc, registers, kernel) : CallKernelSlowPath(pc);
}

REWIRE_INLINE bool Interpreter::CallKernel(const Word* pc, RewireFFIAny* registers) {
  const LinkedKernel& kernel = kernels_[pc[REWIRE_AT(kInvokePacked, "kernel")]];
  // One written argument and no register for a result: one comparison of two words.
  constexpr Word kOutputs = REWIRE_AT(kInvokePacked, "outputs");
  static_assert(REWIRE_AT(kInvokePacked, "dst") == kOutputs + 1);
  std::uint64_t words = 0;
  __builtin_memcpy(&words, pc + kOutputs, sizeof(words));
  constexpr Word kOneOutputWords[2] = {1, kNone};
  const bool fast = kernel.plain && words == __builtin_bit_cast(std::uint64_t, kOneOutputWords);
  if (REWIRE_UNLIKELY(!fast)) return CallGeneral(pc, registers, kernel);
  return CallFastPath<true>(pc, registers, kernel);
}

// False when the invoked function itself has returned: the run is over, and no error is set.
REWIRE_INLINE bool Interpreter::Leave(const RewireFFIAny& value) {
  Machine& vm = vm_;
  const Frame& frame = vm.run.frames.back();  // keeps its contents when it is popped
  const Word* const return_pc = frame.return_pc;
  if (return_pc == nullptr) {
    // A run that was cancelled in its last instruction, or whose deadline passed there, has no result either.
    bool ok = true;
    if (destinations_ != kNone) {
      ok = FinishOutputs(value);
      vm.run.destinations.Clear();
    }
    if (!ok || (vm.interrupts.flags() != 0 && !CheckInterrupts())) {
      heap_.Release(value);
      return false;
    }
  }
  // The frame's registers are the last ones on the stack.
  const RewireFFIAny* const end = vm.run.stack.data() + vm.run.stack.size();
#pragma GCC unroll 2
  for (const RewireFFIAny* reg = registers_; reg != end; ++reg) {
    if (REWIRE_UNLIKELY(IsObjectKind(reg->type_index))) heap_.Release(ObjectOf(*reg));
  }
  vm.run.stack.Pop(frame.base);
  vm.run.frames.Pop(vm.run.frames.size() - 1);
  if (return_pc == nullptr) {
    // Letting registers go may have waited for a device, too.
    if (vm.interrupts.flags() != 0 && !CheckInterrupts()) {
      heap_.Release(value);
      return false;
    }
    result_ = value;
    return false;
  }
  const Frame& caller = vm.run.frames.back();
  registers_ = vm.run.stack.data() + caller.base;
  code_ = caller.code;
  pc_ = return_pc;
  if (frame.destinations != kNone) vm_.run.destinations.Pop(frame.destinations);
  destinations_ = caller.destinations;
  FindPlan(caller.function);
  Put(frame.dst, value);
  return true;
}

// Each frequent instruction ends with a jump of its own to the next one
// (docs/decisions/0012-jumps-from-instruction-to-instruction.md). The other ones share the jump at the label
// `Next`. An instruction that may fail, or that reads its operands at pc_, sets pc_ first.
#define REWIRE_GO()                               \
  do {                                            \
    asm("" : "+r"(fuel));                         \
    if (REWIRE_UNLIKELY(--fuel == 0)) goto Empty; \
    goto* kCode[*pc & 0xFF];                      \
  } while (false)

bool Interpreter::Loop() {
  // The labels below by opcode: there is one for every row. The verifier has looked at all opcodes.
  static const void* const kCode[] = {
#define REWIRE_OPCODE(Name, ...) &&Name,
#include "rewire/executable_format/isa.def"
  };
  const Word* pc = pc_;
  RewireFFIAny* registers = registers_;
  // The first portion, where nothing is to be looked at.
  std::uint64_t fuel = 1;
  if (REWIRE_LIKELY(steps_left_ > kFuel && !wants_instructions_) && vm_.interrupts.flags() == 0) {
    steps_left_ -= kFuel;
    fuel = kFuel + 1;
  }
  REWIRE_GO();

Empty:
  pc_ = pc;
  fuel = Refuel();
  if (fuel == 0) return false;
  goto* kCode[*pc & 0xFF];

Next:
  pc += WordsOf(*pc);
  REWIRE_GO();

Elsewhere:  // a call or a return has changed the frame
  pc = pc_;
  registers = registers_;
  REWIRE_GO();

Move : {
  const RewireFFIAny value = Reg(registers, pc[REWIRE_AT(kMove, "src")]);
  ObjectHeap::Retain(value);
  Put(registers, pc[REWIRE_AT(kMove, "dst")], value);
  pc = After<Opcode::kMove>(pc);
  REWIRE_GO();
}
Ret : {
  pc_ = pc;
  const Word result = pc[REWIRE_AT(kRet, "result")];
  // Taken out of the register rather than copied: the frame is about to release the rest.
  const RewireFFIAny value = Reg(registers, result);
  Reg(registers, result) = {};
  if (Leave(value)) goto Elsewhere;
  return status_.has_value();
}
Invoke:
  pc_ = pc;
  if (EnterCall()) goto Elsewhere;
  return false;
InvokeClosure:
  pc_ = pc;
  if (EnterClosure()) goto Elsewhere;
  return false;
InvokePacked:  // sets pc_ where it needs it
  if (!CallKernel(pc, registers)) return false;
  pc = After<Opcode::kInvokePacked>(pc);
  REWIRE_GO();
AllocTensor:  // sets pc_ where it needs it
  if (!AllocTensor(pc, registers)) return false;
  pc = After<Opcode::kAllocTensor>(pc);
  REWIRE_GO();
AllocTensorReg:
  pc_ = pc;
  if (AllocTensorReg()) goto Next;
  return false;
AllocADT:
  pc_ = pc;
  if (AllocTuple(kAdtKind, pc[REWIRE_AT(kAllocADT, "tag")], pc[REWIRE_AT(kAllocADT, "dst")],
                 ReadsView(pc + REWIRE_AT(kAllocADT, "fields")))) {
    goto Next;
  }
  return false;
AllocClosure:
  pc_ = pc;
  if (AllocTuple(kClosureKind, pc[REWIRE_AT(kAllocClosure, "function")], pc[REWIRE_AT(kAllocClosure, "dst")],
                 ReadsView(pc + REWIRE_AT(kAllocClosure, "captured")))) {
    goto Next;
  }
  return false;
GetField:
  pc_ = pc;
  if (GetField()) goto Next;
  return false;
If : {
  pc_ = pc;
  bool taken = false;
  if (!If(&taken)) return false;
  pc += static_cast<std::int32_t>(pc[taken ? REWIRE_AT(kIf, "if_true") : REWIRE_AT(kIf, "if_false")]);
  REWIRE_GO();
}
LoadConst : {
  RewireFFIAny& reg = Reg(registers, pc[REWIRE_AT(kLoadConst, "dst")]);
  const RewireFFIAny before = reg;
  reg = constants_[pc[REWIRE_AT(kLoadConst, "constant")]];
  // In a loop the register has a constant of the round before.
  if (IsObjectKind(before.type_index) && ObjectOf(before)->local != kUncounted) DropOther(ObjectOf(before));
  pc = After<Opcode::kLoadConst>(pc);
  REWIRE_GO();
}
Goto:
  pc += static_cast<std::int32_t>(pc[REWIRE_AT(kGoto, "target")]);
  REWIRE_GO();
GetTag:
  pc_ = pc;
  if (GetTag()) goto Next;
  return false;
LoadConsti:
  Put(registers, pc[REWIRE_AT(kLoadConsti, "dst")],
      MakeInteger(kInt64Kind, DecodeInt64(pc + REWIRE_AT(kLoadConsti, "value"))));
  pc = After<Opcode::kLoadConsti>(pc);
  REWIRE_GO();
Fatal:
  pc_ = pc;
  return StopItself();
AllocStorage:  // sets pc_ where it needs it
  if (!AllocStorage(pc, registers)) return false;
  pc = After<Opcode::kAllocStorage>(pc);
  REWIRE_GO();
ShapeOf:
  pc_ = pc;
  if (ShapeOf()) goto Next;
  return false;
ReshapeTensor:
  pc_ = pc;
  if (ReshapeTensor()) goto Next;
  return false;
DeviceCopy:
  pc_ = pc;
  if (DeviceCopy()) goto Next;
  return false;
KillRegister : {
  RewireFFIAny& reg = Reg(registers, pc[REWIRE_AT(kKillRegister, "reg")]);
  const RewireFFIAny before = reg;
  reg = {};
  const bool released =
      REWIRE_LIKELY(before.type_index == kTensorKind) && heap_.ReleaseFastPath(TensorOf(before));
  if (REWIRE_UNLIKELY(!released)) heap_.Release(before);
  pc = After<Opcode::kKillRegister>(pc);
  REWIRE_GO();
}
}
#undef REWIRE_GO

void Interpreter::DropOther(Object* object) { heap_.Release(object); }

bool Interpreter::StopItself() {
  const Word note = pc_[REWIRE_AT(kFatal, "note")];
  return Fail(StatusCode::kRuntimeFailed,
              note == kNone ? std::string("the program stopped itself")
                            : Format("the program stopped itself: {}", rep_.module().strings[note]));
}

bool Interpreter::If(bool* taken) {
  std::int64_t test = 0;
  std::int64_t target = 0;
  if (!ReadInteger(Reg(pc_[REWIRE_AT(kIf, "test")]), "test", &test) ||
      !ReadInteger(Reg(pc_[REWIRE_AT(kIf, "target")]), "target", &target)) {
    return false;
  }
  *taken = test == target;
  return true;
}

bool Interpreter::AllocTuple(std::int32_t kind, Word tag, Word dst, Span<const Word> fields) {
  TupleObject* tuple = heap_.NewTuple(kind, tag, static_cast<std::uint32_t>(fields.size()));
  if (tuple == nullptr) return FailMemory(TupleObject::Bytes(static_cast<std::uint32_t>(fields.size())));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (REWIRE_UNLIKELY((i + 1) % kLongList == 0) && !CheckInterrupts()) {
      std::memset(tuple->fields() + i, 0, (fields.size() - i) * sizeof(RewireFFIAny));
      heap_.Release(MakeAny(kind, tuple));
      return false;
    }
    tuple->fields()[i] = Reg(fields[i]);
    ObjectHeap::Retain(tuple->fields()[i]);
  }
  if (kind == kClosureKind) tuple->program = rep_.number;
  Put(dst, MakeAny(kind, tuple));
  return true;
}

bool Interpreter::GetField() {
  const Word object = pc_[REWIRE_AT(kGetField, "object")];
  if (Reg(object).type_index != kAdtKind) return FailKind(object, "an ADT");
  const TupleObject* tuple = TupleOf(Reg(object));
  const Word index = pc_[REWIRE_AT(kGetField, "index")];
  if (index >= tuple->count) {
    return Fail(StatusCode::kRuntimeFailed, "field {} asked for, the ADT (tag {}) has {} fields", index,
                tuple->tag, tuple->count);
  }
  const RewireFFIAny field = tuple->fields()[index];
  ObjectHeap::Retain(field);
  Put(pc_[REWIRE_AT(kGetField, "dst")], field);
  return true;
}

bool Interpreter::GetTag() {
  const Word object = pc_[REWIRE_AT(kGetTag, "object")];
  if (Reg(object).type_index != kAdtKind) return FailKind(object, "an ADT");
  Put(pc_[REWIRE_AT(kGetTag, "dst")],
      MakeInteger(kInt32Kind, static_cast<std::int32_t>(TupleOf(Reg(object))->tag)));
  return true;
}

// Fuel is the step limit in portions. Between two portions the loop only counts in a register. An observer of
// instructions sees each, so the portions are of one.
std::uint64_t Interpreter::Refuel() {
  if (steps_left_ == 0) {
    Fail(StatusCode::kStepLimit,
         "the limit of {} instructions is used up; raise Limits::steps if the program needs more",
         vm_.limits.steps);
    return 0;
  }
  const std::uint64_t most = wants_instructions_ ? 1 : kFuel;
  const std::uint64_t portion = steps_left_ < most ? steps_left_ : most;
  steps_left_ -= portion;
  if (!CheckInterrupts() || (wants_instructions_ && !Observe())) return 0;
  return portion;
}

bool Interpreter::CheckInterrupts() {
  const std::uint32_t interrupts = vm_.interrupts.flags();
  if (REWIRE_LIKELY(interrupts == 0)) return true;
  const Status interrupted = vm_.interrupts.Check();
  return interrupted || Fail(interrupted.code(), interrupted.error().message());
}

bool Interpreter::AskObserver() {
  return CallHost("the observer", [&] {
    wants_instructions_ = vm_.observer->wants_instructions();
    wants_kernels_ = vm_.observer->wants_kernels();
    if (wants_kernels_) vm_.interrupts.Set(Interrupts::kObserved);
  });
}

bool Interpreter::Observe() {
  // It may read what the instruction before has given to a device.
  if (!WaitFor(nullptr, WaitCause::kObserver)) return false;
  const Frame& frame = vm_.run.frames.back();
  return CallHost("the observer", [&] {
    vm_.observer->OnInstruction({rep_.module(),
                                 frame.function,
                                 static_cast<std::uint32_t>(pc_ - code_),
                                 vm_.run.frames.size(),
                                 {registers_, rep_.functions[frame.function].register_count}});
  });
}

bool Interpreter::ObserveKernel(const Observer::KernelCall& call) {
  return CallHost("the observer", [&] { vm_.observer->OnKernel(call); });
}

bool Interpreter::FailThrown(const char* who) {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const std::exception& thrown) {
    return Fail(StatusCode::kRuntimeFailed, "{} threw an exception: {}", who, thrown.what());
  } catch (...) {
  }
#endif
  return Fail(StatusCode::kRuntimeFailed, "{} threw an exception that is no std::exception", who);
}

}  // namespace rewire
