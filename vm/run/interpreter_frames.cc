// SPDX-License-Identifier: Apache-2.0
// Calls, returns and failures of the interpreter.
#include <cstring>

#include "rewire/base/likely.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/run/interpreter_run.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

// Few functions need this before they begin. Memory for loops is taken where there is any: a loop does
// without, too.
bool Interpreter::PrepareFrame(Word function) {
  if (rep_.functions[function].register_count >= LinkedFunction::kLongFrame && !CheckInterrupts())
    return false;
  const LoopBlocks& loops = rep_.code->loops[function];
  for (const LoopBlocks::Class& blocks : loops.classes) heap_.pool().Reserve(blocks.bytes, blocks.count);
  if (loops.temporaries > 0) (void)vm_.run.temporaries.Reserve(loops.temporaries);
  return true;
}

bool Interpreter::FailDepth() {
  return Fail(StatusCode::kDepthLimit,
              "the limit of {} active calls is reached; raise Limits::depth if the program needs more",
              vm_.limits.depth);
}

bool Interpreter::LoopObserved() {
  const bool ok = AskObserver() && Loop();
  vm_.interrupts.Clear(Interrupts::kObserved);
  return ok;
}

// The caller of an asynchronous run waits later. An observer has waited at every instruction.
bool Interpreter::EndWork(bool ok) {
  const bool later = ok && vm_.async && vm_.observer == nullptr;
  const Status finished = later ? LeaveWork() : FinishWork(ok);
  if (!ok || finished) return ok;
  heap_.Release(result_);
  status_ = finished;
  return false;
}

// So few registers are cleared one by one: a CPU waits that reads a register soon after memset has written
// it.
constexpr std::uint32_t kFewRegisters = 8;

// A frame of `count` registers, for which there is room.
REWIRE_INLINE void Interpreter::Begin(const LinkedFunction& callee, const Frame& frame) {
  const std::uint32_t count = callee.register_count;
  const std::uint32_t inputs = callee.input_count;
  RewireFFIAny* const registers = vm_.run.stack.Extend(count);
  *vm_.run.frames.Extend(1) = frame;
  registers_ = registers;
  code_ = frame.code;
  pc_ = frame.code;
  destinations_ = frame.destinations;
  FindPlan(frame.function);
  RewireFFIAny* const rest = registers + inputs;
  if (REWIRE_UNLIKELY(count > inputs + kFewRegisters)) {
    std::memset(rest, 0, (count - inputs) * sizeof(RewireFFIAny));
    return;
  }
  for (RewireFFIAny* reg = rest; reg < registers + count; ++reg) {
    *reg = {};
    asm("" : "+r"(reg));  // else the compiler makes the loop a memset
  }
}

// The caller of this fills the registers of the callee's inputs, and nothing may fail before it has. The
// fast path calls nothing, so that it need not save registers of the CPU.
bool Interpreter::Enter(Word function, const Word* return_pc, Word dst, std::uint32_t destinations) {
  const LinkedFunction& callee = rep_.functions[function];
  const bool fast = vm_.run.frames.size() < vm_.limits.depth && !callee.prepares &&
                    vm_.run.stack.HasRoom(callee.register_count) && vm_.run.frames.HasRoom(1);
  const Frame frame = {callee.code, return_pc, function, vm_.run.stack.size(), dst, destinations};
  if (REWIRE_UNLIKELY(!fast)) return EnterSlowPath(frame);
  Begin(callee, frame);
  return true;
}

bool Interpreter::EnterSlowPath(Frame frame) {
  const LinkedFunction& callee = rep_.functions[frame.function];
  const std::uint32_t count = callee.register_count;
  if (vm_.run.frames.size() >= vm_.limits.depth) return FailDepth();
  if (callee.prepares && !PrepareFrame(frame.function)) return false;
  if (!vm_.run.stack.Reserve(count)) return FailMemory(count * sizeof(RewireFFIAny));
  if (!vm_.run.frames.Reserve(1)) return FailMemory(sizeof(Frame));
  Begin(callee, frame);
  return true;
}

bool Interpreter::EnterCall() {
  const Word* pc = pc_;
  const Word function = pc[WordOf(Opcode::kInvoke, "function")];
  const Span<const Word> args = ReadsView(pc + WordOf(Opcode::kInvoke, "args"));
  const std::uint32_t caller = vm_.run.frames.back().base;
  std::uint32_t destinations = kNone;
  if (destinations_ != kNone && !CarryDestinations(&destinations)) return false;
  if (!Enter(function, pc + WordsOf(*pc), pc[WordOf(Opcode::kInvoke, "dst")], destinations)) return false;
  const RewireFFIAny* from = vm_.run.stack.data() + caller;
  for (std::size_t i = 0; i < args.size(); ++i) {
    ObjectHeap::Retain(from[args[i]]);
    registers_[i] = from[args[i]];
  }
  return true;
}

bool Interpreter::EnterClosure() {
  const Word* pc = pc_;
  const Word closure_register = pc[WordOf(Opcode::kInvokeClosure, "closure")];
  if (Reg(closure_register).type_index != kClosureKind) return FailKind(closure_register, "a closure");
  const TupleObject* closure = TupleOf(Reg(closure_register));
  const Span<const Word> args = ReadsView(pc + WordOf(Opcode::kInvokeClosure, "args"));
  if (closure->program != rep_.number) {
    return Fail(StatusCode::kRuntimeFailed,
                "the closure belongs to another Program; only values that are no closures "
                "can be passed between Programs");
  }
  const Word function = closure->tag;
  const std::uint32_t expected = rep_.functions[function].input_count;
  if (closure->count + args.size() != expected) {
    return Fail(StatusCode::kRuntimeFailed,
                "the closure of {} takes {} arguments after its {} captured values, given {}",
                rep_.module().functions[function].name, expected - closure->count, closure->count,
                args.size());
  }
  const std::uint32_t caller = vm_.run.frames.back().base;
  if (!Enter(function, pc + WordsOf(*pc), pc[WordOf(Opcode::kInvokeClosure, "dst")], kNone)) return false;
  for (std::uint32_t i = 0; i < closure->count; ++i) {
    ObjectHeap::Retain(closure->fields()[i]);
    registers_[i] = closure->fields()[i];
  }
  const RewireFFIAny* from = vm_.run.stack.data() + caller;
  for (std::size_t i = 0; i < args.size(); ++i) {
    ObjectHeap::Retain(from[args[i]]);
    registers_[closure->count + i] = from[args[i]];
  }
  return true;
}

void Interpreter::Unwind() {
  DropTemporaries();
  while (vm_.run.stack.size() > 0) {
    heap_.Release(vm_.run.stack.back());
    vm_.run.stack.Pop(vm_.run.stack.size() - 1);
  }
  vm_.run.frames.Clear();
  vm_.run.destinations.Clear();
}

// "main@12 (invoke_packed add(%0, %1), outputs=1) [conv_3]: ..."
bool Interpreter::Fail(StatusCode code, const Message& what) {
  if (vm_.run.frames.empty()) {
    status_ = rewire::Fail(code, what);
    return false;
  }
  const Function& function = rep_.module().functions[vm_.run.frames.back().function];
  const auto pc = static_cast<std::uint32_t>(pc_ - code_);
  std::string message =
      Format("{}@{} ({})", function.name, pc, ShortInstructionText(rep_.module(), function, pc));
  for (const SourceNote& note : function.notes) {
    if (note.pc == pc) Append(&message, {" [{}]", note.text});
  }
  status_ = rewire::Fail(code, "{}: {}", message, what.Text());
  return false;
}

bool Interpreter::FailMemory(std::uint64_t bytes) {
  if (const Status device = heap_.TakeDeviceFailure(); !device) {
    return Fail(device.code(), "{} bytes more asked for: {}", bytes, device.error().message());
  }
  const std::uint64_t used = vm_.memory.account->used();
  const std::uint64_t limit = vm_.memory.account->limit();
  if (bytes > limit || vm_.memory.account->over_limit()) {
    return Fail(StatusCode::kMemoryLimit,
                "{} bytes more asked for, {} of the limit of {} are in use; raise Limits::bytes if the "
                "program needs more",
                bytes, used, limit);
  }
  return Fail(StatusCode::kOutOfMemory, "the allocator has no {} bytes", bytes);
}

namespace {

std::string Describe(const RewireFFIAny& value) {
  switch (value.type_index) {
    case kRewireFFINone:
      return "nothing";
    case kInt32Kind:
    case kInt64Kind:
      return Format("the integer {}", value.v_int64);
    case kTensorKind:
      return Format("a tensor {}", TensorText(TensorOf(value)->tensor));
    case kAdtKind:
      return Format("an ADT with tag {} and {} fields", TupleOf(value)->tag, TupleOf(value)->count);
    case kClosureKind:
      return "a closure";
    case kStorageKind:
      return "a storage";
    default:
      return "an object of a kernel library";
  }
}

}  // namespace

bool Interpreter::FailKind(Word index, const char* expected) {
  const Function& function = rep_.module().functions[vm_.run.frames.back().function];
  return Fail(StatusCode::kRuntimeFailed, "{} holds {}, {} is expected", RegisterText(function, index),
              Describe(Reg(index)), expected);
}

}  // namespace rewire
